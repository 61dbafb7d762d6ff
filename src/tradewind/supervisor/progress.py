"""How far the job is, as it writes it: `{"step": 1200, "saved": 1000, "rate": 1.5}`.

The file is the job's, so nothing in it is trusted: what is no number, or cannot be read, is as if
it had not been written.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from tradewind.base.decoding import decoder
from tradewind.model.plausible import Amount, Signed

_MOST_BYTES = 4096
_RATES = (1e-12, 1e15)
_MOST = 1e15
"""A name in a store may have more digits than any step: see model/plausible.py."""


class Progress(Struct, frozen=True):
    step: Amount = 0.0
    saved: Amount = 0.0
    rate: Signed | None = None


_decode = decoder(Progress)


def read(path: Path, last: Progress) -> Progress:
    """What is there, or `last` where that is nothing new. What was saved stays saved."""
    try:
        with path.open("rb") as stream:
            told = _decode(stream.read(_MOST_BYTES))
    except OSError:
        return last
    if told is None:
        return last
    rate = told.rate if told.rate is not None and _RATES[0] <= told.rate <= _RATES[1] else None
    return Progress(told.step, max(told.saved, last.saved), rate)


def of_checkpoint(key: str) -> Progress:
    """Where a job that resumes from there begins."""
    name = key.rsplit("/", 1)[-1].removesuffix(".json")
    step = min(float(name), _MOST) if name.isdecimal() else 0.0
    return Progress(step, step)
