"""Figures as files: each rank of a training writes `<rank>.json` into one folder, again and again,
and whoever wants to know reads them: a supervisor for its heartbeats, `tradewind top` for people.

They are the job's, so nothing in them is trusted: what cannot be read is as if it were not there.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tradewind.base.decoding import decoder
from tradewind.model.figures import Figures

FOLDER = "telemetry"
"""Below the folder of checkpoints."""
_MOST_FILES = 64
_MOST_BYTES = 4096


_decode = decoder(Figures)


def read(folder: Path, now_s: float, *, most: int = _MOST_FILES) -> tuple[Figures, ...]:
    """The newest of each rank, by rank. `now_s` is the computer's own time since 1970, as its files
    have it."""
    found = []
    try:
        paths = [path for path in folder.iterdir() if path.suffix == ".json"]
    except OSError:
        return ()
    for path in sorted(paths, key=_rank)[:most]:
        try:
            with path.open("rb") as stream:
                told = _decode(stream.read(_MOST_BYTES))
            age_s = max(now_s - path.stat().st_mtime, 0.0)
        except OSError:
            continue
        if told is None:
            continue
        found.append(replace(told, age_s=round(age_s, 1), last_s=round(told.last_s + age_s, 1)))
    return _of_one(found)


def _of_one(found: list[Figures]) -> tuple[Figures, ...]:
    """Without ranks that an earlier, larger training has left there."""
    if not found:
        return ()
    newest = min(found, key=lambda each: each.age_s)
    return tuple(each for each in found if each.rank < newest.world)


def _rank(path: Path) -> tuple[int, str]:
    return (int(path.stem) if path.stem.isdecimal() else 1 << 30, path.name)
