"""Which checkpoints there are, which of them may be read, and which are removed.

A run's manifests sort by leg and step, so the greatest key is the newest: of the newest leg that
saved anything, however far an older one that was replaced may have come. A leg may read its own,
and of earlier legs only up to the one that its supervisors have agreed on (`resume`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tradewind.base.errors import BadFile, NotFound, TradewindError
from tradewind.model import bounds
from tradewind.torch.checkpoint import files
from tradewind.torch.checkpoint.manifest import Manifest, decode
from tradewind.torch.checkpoint.place import Place


@dataclass(frozen=True, slots=True)
class Found:
    """A complete checkpoint."""

    key: str
    manifest: Manifest
    folder: Path | None
    """Where plain PyTorch can read it; None if it is in a bucket."""

    @property
    def name(self) -> str:
        """Of the folder with its files, which differs each time that a step is saved."""
        return self.manifest.name

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
    """Raises BadFile, NotFound, or InvalidValue if it is too new for us."""
    manifest = decode(place.store.get(key, most=bounds.CHECKPOINT), key)
    return Found(key, manifest, place.folder(manifest.name))


def keys(place: Place) -> list[str]:
    """Of all manifests that may be read, the newest first."""
    mine = f"{place.checkpoints}{place.leg:06d}/"
    found = _listed(place)
    if place.resume is not None:
        found = [key for key in found if key.startswith(mine) or key <= place.resume]
    return found


def sound(
    place: Place, before: str | None, bad: set[str], warn: Callable[[str], object]
) -> Iterator[Found]:
    """Those whose files are there in full size, the newest first; the others are warned of."""
    for key in keys(place):
        if key in bad or (before is not None and key >= before):
            continue
        try:
            found = open_key(place, key)
            wrong = files.Files(place, found.manifest).wrong_size()
            if not wrong:
                yield found
                continue
        except NotFound:
            continue
        except BadFile as error:
            wrong = error.message
        bad.add(key)
        warn(f"the checkpoint {key} is not used: {wrong}")


def expired(place: Place, keep: int, bad: set[str], newest: str) -> list[str]:
    """The manifests of those that may go, now that the one with this key is whole. What is newer
    does not count: a leg that was replaced may still save."""
    if place.replaced():
        return []  # another leg reads what we might remove
    listed = _listed(place)
    return [*bad.intersection(listed), *_counted(listed, bad, newest)[place.least(keep) :]]


def full(place: Place, keep: int, bad: set[str], newest: str) -> bool:
    """Whether the next save makes one expire."""
    return len(_counted(_listed(place), bad, newest)) >= place.least(keep)


def staying(place: Place, keep: int, bad: set[str], newest: str) -> list[str]:
    return _counted(_listed(place), bad, newest)[: place.least(keep)]


def _counted(listed: list[str], bad: set[str], newest: str) -> list[str]:
    return [key for key in listed if key not in bad and key <= newest]


def prune(place: Place, keep: int, bad: set[str], newest: str, name: str) -> None:
    """Removes all but the newest, and those known to be damaged. A manifest goes before its files:
    what is left if this is cut short is no checkpoint. `name` is that of the newest's files."""
    for key in expired(place, keep, bad, newest):
        place.store.delete(key)
        bad.discard(key)
    if not place.replaced():
        sweep(place, {_name(place, key) for key in _listed(place)}, name)


def clear(place: Place, life: str) -> None:
    """What unfinished saves and removed checkpoints have left. `life` is ours: it may save now."""
    known = kept(place)
    for name in files.names(place) - known:
        if f"-{life}-" not in name:
            files.remove(place, name)


def sweep(place: Place, known: set[str], newest: str) -> None:
    """As clear, but only what is older: a newer one may be under way."""
    for name in files.names(place) - known:
        if name < newest:
            files.remove(place, name)


def sweep_here(place: Place, known: set[str], newest: str) -> None:
    """On this machine only, where the store is another's."""
    for name in files.names_here(place) - known:
        if name < newest:
            files.remove_here(place, name)


def kept(place: Place) -> set[str]:
    """The names of the folders that a manifest speaks of."""
    return {_name(place, key) for key in _listed(place)}


def _listed(place: Place) -> list[str]:
    """Of this leg and those before it, the newest first."""
    last = f"{place.checkpoints}{place.leg + 1:06d}/"
    return [key for key in place.store.list_after(place.checkpoints) if key < last][::-1]


def _name(place: Place, key: str) -> str:
    """ "" for a manifest that is damaged: nobody will find its files."""
    try:
        return open_key(place, key).manifest.name
    except (NotFound, BadFile):
        return ""


# -- what goes with a checkpoint besides its state -------------------------------------------------

_BESIDE = "beside"
_MOST_BESIDE = 64 << 20


def put_beside(place: Place, name: str, data: bytes) -> None:
    """Among its files, and removed with them."""
    if data:
        place.store.replace(f"{place.shards}{name}/{_BESIDE}", data)


def beside(place: Place, name: str) -> bytes:
    """b"" where there is none, or it cannot be had."""
    try:
        return bytes(place.store.get(f"{place.shards}{name}/{_BESIDE}", most=_MOST_BESIDE))
    except TradewindError:
        return b""
