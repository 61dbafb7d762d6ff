"""The equipment's own clock, and what is due when.

It goes as fast as the world's, and a test can put it forward, or let it stand still but for that:
launches, ends, prices and the `Date` of every answer are told by it. Known lie: what runs in a body
sees the computer's real clock.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    def __init__(self) -> None:
        self.ahead_s = 0.0
        self._held: float | None = None

    def now(self) -> float:
        return (time.time() if self._held is None else self._held) + self.ahead_s

    def hold(self) -> None:
        self._held = time.time()

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("this clock only goes forward")
        self.ahead_s += seconds


class Agenda:
    """What happens later, in the order of its time. The caller holds the world's lock."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def at(self, moment: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (moment, next(self._count), act))

    def settle(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            heapq.heappop(self._due)[2]()


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
