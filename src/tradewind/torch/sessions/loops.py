"""Who takes the batches: a `for` statement whose body makes the steps, or something in between.

In the first case no batch is fetched ahead, however many were passed over before the first step.
"""

from __future__ import annotations

import dis
import sys
from pathlib import Path
from types import FrameType

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


def _theirs() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame
