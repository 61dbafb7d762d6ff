"""How far the job is, as it writes it: `{"step": 1200, "saved": 1000, "rate": 1.5}`.

The file is the job's, so nothing in it is trusted: what is no number, or cannot be read, is as if
it had not been written.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, json

_MOST_BYTES = 4096


class Progress(Struct, frozen=True):
    step: float = 0.0
    saved: float = 0.0
    rate: float | None = None


def read(path: Path, last: Progress) -> Progress:
    """What is there, or `last` where that is nothing new. What was saved stays saved."""
    try:
        with path.open("rb") as stream:
            told = json.decode(stream.read(_MOST_BYTES), type=Progress)
    except (OSError, DecodeError, ValidationError):
        return last
    if not (isfinite(told.step) and isfinite(told.saved)):
        return last
    rate = told.rate if told.rate is not None and isfinite(told.rate) and told.rate > 0 else None
    return Progress(told.step, max(told.saved, last.saved), rate)


def of_checkpoint(key: str) -> Progress:
    """Where a job that resumes from there begins."""
    name = key.rsplit("/", 1)[-1].removesuffix(".json")
    step = float(name) if name.isdigit() else 0.0
    return Progress(step, step)
