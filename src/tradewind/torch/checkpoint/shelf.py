"""Which checkpoints there are, which of them may be read, and which are removed.

A run's manifests sort by leg and step, so the greatest key is the newest: of the newest leg that
saved anything, however far an older one that was replaced may have come. A leg may read its own, and
of earlier legs only up to the one that its supervisors have agreed on (`resume`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tradewind.errors import BadFile, NotFound
from tradewind.torch.checkpoint import files
from tradewind.torch.checkpoint.manifest import Manifest, decode
from tradewind.torch.checkpoint.place import Place


@dataclass(frozen=True, slots=True)
class Found:
    """A complete checkpoint."""

    key: str
    manifest: Manifest
    folder: Path | None
    """Where it is on this machine, for plain PyTorch to read; None for a bucket without one."""

    @property
    def step(self) -> int:
        return self.manifest.step

    @property
    def leg(self) -> int:
        return self.manifest.leg

    @property
    def world(self) -> int:
        """How many ranks wrote it."""
        return self.manifest.world


def open_key(place: Place, key: str) -> Found:
    """Raises BadFile, or NotFound."""
    manifest = decode(place.store.get(key), key)
    folder = place.files / manifest.name if place.files is not None else None
    return Found(key, manifest, folder)


def keys(place: Place) -> list[str]:
    """Of all manifests that may be read, the newest first."""
    mine = f"{place.checkpoints}{place.leg:06d}/"
    last = f"{place.checkpoints}{place.leg + 1:06d}/"
    found = [key for key in place.store.list_after(place.checkpoints) if key < last]
    if place.resume is not None:
        found = [key for key in found if key.startswith(mine) or key <= place.resume]
    return found[::-1]


def sound(
    place: Place, before: str | None, bad: set[str], warn: Callable[[str], None]
) -> Iterator[Found]:
    """Those whose files are there in full size, the newest first; the others are warned of."""
    for key in keys(place):
        if key in bad or (before is not None and key >= before):
            continue
        try:
            found = open_key(place, key)
            wrong = files.Files(place, found.manifest).wrong_size()
        except NotFound:
            continue
        except BadFile as error:
            found, wrong = None, error.message  # type: ignore[assignment]
        if wrong:
            bad.add(key)
            warn(f"the checkpoint {key} is not used: {wrong}")
            continue
        yield found


def prune(place: Place, keep: int, bad: set[str]) -> set[str]:
    """Removes all but the newest, and those known to be damaged. A manifest goes before its files:
    what is left if this is cut short is no checkpoint. Returns the names of those that stay."""
    listed = [key for key in place.store.list_after(place.checkpoints) if _not_after(place, key)]
    kept = [key for key in sorted(listed, reverse=True) if key not in bad][:keep]
    for key in listed:
        if key not in kept:
            place.store.delete(key)
            bad.discard(key)
    names = {_name(place, key) for key in kept} - {""}
    sweep(place, names)
    return names


def sweep(place: Place, kept: set[str]) -> None:
    """What unfinished saves and removed checkpoints have left."""
    for name in files.names(place) - kept:
        files.remove(place, name)


def kept(place: Place) -> set[str]:
    """The names of folders that a manifest speaks of. Raises what keeps one from being read: then
    nobody knows what may go."""
    found = [_name(place, key) for key in place.store.list_after(place.checkpoints)]
    return set(found) - {""}


def _not_after(place: Place, key: str) -> bool:
    return key < f"{place.checkpoints}{place.leg + 1:06d}/"


def _name(place: Place, key: str) -> str:
    try:
        return open_key(place, key).manifest.name
    except (NotFound, BadFile):
        return ""
