"""Who takes the batches: a `for` statement whose body makes the steps, or something in between.

In the first case no batch is fetched ahead, however many were passed over before the first step.
Between them may be a `zip`, with other iterators that no checkpoint has.
"""

from __future__ import annotations

import dis
import gc
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, GeneratorType
from typing import Any
from weakref import ref

_OURS = str(Path(__file__).resolve().parents[2])
_FOR = dis.opmap["FOR_ITER"]


def taker() -> FrameType | None:
    """The frame whose `for` statement asks for a batch just now; None where it is no such
    statement, but a call of `next`, for instance."""
    frame = _theirs()
    if frame is None or frame.f_lasti < 0 or frame.f_code.co_code[frame.f_lasti] != _FOR:
        return None
    return frame


def inside(frame: FrameType | None) -> bool:
    """Whether this is done in the body of that statement, or called from there."""
    here: FrameType | None = _theirs()
    while here is not None and frame is not None:
        if here is frame:
            return True
        here = here.f_back
    return False


def zipped(batches: ref[Any] | None) -> list[str]:
    """What gives something for each of these batches, and begins at its beginning again. What only
    counts is seen by its numbers."""
    here, found = batches() if batches is not None else None, []
    for _ in range(_WRAPPED):
        above = gc.get_referrers(here) if here is not None else []
        here = next((each for each in above if isinstance(each, _WRAPPERS)), None)
        for each in above:
            if type(each) is tuple:  # such as a zip holds
                others = [other for other in each if isinstance(other, Iterator)]
                found += [type(o).__name__ for o in others if _begins_again(o)]
    return found


_WRAPPED = 3
_WRAPPERS = (enumerate, map, filter, itertools.islice)
_COUNTERS = (itertools.count, itertools.repeat, type(iter(range(0))), enumerate)


def _begins_again(iterator: Any) -> bool:
    if isinstance(iterator, GeneratorType):
        return not iterator.gi_code.co_filename.startswith(_OURS)
    return not isinstance(iterator, _COUNTERS) and not type(iterator).__module__.startswith(
        "tradewind"
    )


def _theirs() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame
