"""What this room says while a training runs: lines on standard error."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from tradewind.base import clock
from tradewind.base.units import format_bytes

Say = Callable[[str], None]


def say(words: str) -> None:
    """Past Python's own buffers: what is said by several processes must not come torn."""
    rank = os.environ.get("RANK", "0")
    whose = f" rank {rank}:" if rank not in ("", "0") else ""
    with suppress(OSError):
        os.write(2, f"tradewind.torch:{whose} {words}\n".encode())


def sized(number: int) -> str:
    return format_bytes(number, digits=3)


def first() -> bool:
    """Whether this is the rank that speaks for all of a host."""
    return os.environ.get("LOCAL_RANK", "0") in ("", "0")


class Seldom:
    """Says the first trouble at once, and then at most one each `every_s`: a store that fails for
    an hour must be heard of, and not fill the log."""

    def __init__(self, say: Say, every_s: float = 10.0) -> None:
        self._say, self._every_s = say, every_s
        self._last: float | None = None
        self._unsaid = 0
        self._lock = threading.Lock()

    def __call__(self, words: str) -> None:
        now_s = clock.monotonic()
        with self._lock:
            if self._last is not None and now_s - self._last < self._every_s:
                self._unsaid += 1
                return
            unsaid, self._unsaid, self._last = self._unsaid, 0, now_s
        self._say(f"{words} ({unsaid} more of the kind)" if unsaid else words)
