"""Waiting for what other processes do: for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], *, within_s: float = 60.0) -> T:
    """The first answer that is true. The limit is for broken code: it is far beyond what slow
    computers need."""
    until = time.monotonic() + within_s
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > until:
            raise AssertionError(f"after {within_s} s it is still {answer!r}")
        time.sleep(0.01)
