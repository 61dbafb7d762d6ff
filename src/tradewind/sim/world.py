"""The fake clock, what is to happen when, and the story of what did."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only

START_S = 1_800_000_000
"""When simulations begin, in seconds since 1970: a moment like any other."""


class Violation(Exception):
    """Something happened that never may."""


class World:
    def __init__(self, rng: Random, *, tell: bool) -> None:
        self.rng = rng
        self.now = START_S
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._tell = tell
        self.story: list[str] = []
        self.faults = 0
        self.steps = 0
        """That controllers took."""
        self.crash_at = 0
        """One of them at which to die, besides those by chance; after it is done, if negative."""
        self.crash_points = 0
        self.kinds: dict[str, int] = {}
        self.absent_until = START_S
        """Until then a controller is stopped for long, and another one has to be there."""

    def later(self, seconds: int, act: Callable[[], None]) -> None:
        self._count += 1
        heappush(self._queue, (self.now + seconds, self._count, act))

    def run(self, until_s: int, done: Callable[[], bool]) -> None:
        queue = self._queue
        while queue and queue[0][0] <= until_s:
            self.now, _, act = heappop(queue)
            act()
            if done():
                return
        self.now = until_s

    def fault(self, kind: str) -> None:
        self.faults += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    @property
    def telling(self) -> bool:
        return self._tell

    def tell(self, who: str, what: str) -> None:
        """Only where `telling` is true; making the words takes most of the time otherwise."""
        seconds = self.now - START_S
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        self.story.append(f"{clock}  {who:<12} {what}")
