"""The machine's disk: room for the job's output, and whose fault it is that there is none."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_LITTLE = 1 << 20
"""With less than that nothing can be done any more."""


def reserve(handle: int, start: int, many: int) -> None:
    """Takes room on the disk for so many bytes from there on, without making the file longer. What
    is reserved can be written when the disk is full. Where there is no such thing, nothing is."""
    _fallocate(handle, _KEEP_SIZE, start, many)


def drop(handle: int, start: int, end: int) -> None:
    """Gives the room of these bytes back; they read as zeros, and all others keep their place."""
    if end > start:
        _fallocate(handle, _KEEP_SIZE | _PUNCH_HOLE, start, end - start)


def is_full_of_others(folder: Path) -> bool:
    """Whether the disk is full, and that not with what lies in this folder: then the same job has
    a chance on another machine, or later."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return False
    return usage.free < _LITTLE and _taken(folder) < usage.used / 2


def _taken(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(f"{path}/{name}").st_blocks * 512
    return total


def _fallocate(handle: int, mode: int, start: int, many: int) -> None:
    call = _call()
    if call is not None:
        call(handle, mode, start, many)  # what it answers changes nothing for us


@cache
def _call() -> Any:
    import ctypes

    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate64
    except (OSError, AttributeError):  # not Linux's
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return call
