"""When machines may be up: not before a moment, and only in windows of the day. Pure.

A window has its own time zone as data: since when which offset from UTC holds, looked up when the
run is submitted. So every controller decides the same, whatever its computer knows of zones, and a
night in which clocks change is as long as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import inf

from msgspec import Struct

DAY_S = 86_400
ALL_DAYS = (0, 1, 2, 3, 4, 5, 6)
NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_FAR = 400
"""Days that are looked ahead: every window opens at least once a week."""
_LONG_S = 8 * DAY_S
"""No machine is up for longer than a week at a time (WEEK_S in lifecycle/money.py)."""


class Window(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, cache_hash=True):
    start_s: int
    """Of the day, by the clock there."""
    end_s: int
    """Not after `start_s`: on the next day."""
    days: tuple[int, ...] = ALL_DAYS
    """On which it begins; 0 is Monday."""
    zone: str = "UTC"
    offsets: tuple[tuple[int, int], ...] = ((0, 0),)
    """From which moment on, since 1970, how many seconds the clock there is ahead of UTC."""

    @property
    def length_s(self) -> int:
        return self.end_s - self.start_s + (DAY_S if self.end_s <= self.start_s else 0)

    @property
    def words(self) -> str:
        days = "" if self.days == ALL_DAYS else ",".join(NAMES[day] for day in self.days) + " "
        return f"{days}{_clock(self.start_s)}-{_clock(self.end_s)} {self.zone}"

    def spans(self, since_s: float) -> Iterator[tuple[float, float]]:
        """In UTC, those that end after `since_s`, in order."""
        return _spans((self,), since_s)

    def begun(self, day: int) -> list[tuple[float, float]]:
        """Those that begin on this day of UTC, of which the clock there may show another."""
        found = []
        for there in (day - 1, day, day + 1):
            if (there + 3) % 7 not in self.days:  # the first of January 1970 was a Thursday
                continue
            local_s = there * DAY_S + self.start_s
            begin = self._utc(local_s)
            if begin // DAY_S == day:
                end = self._utc(local_s + self.length_s)
                if end > begin:
                    found.append((begin, end))
        return found

    def offset_s(self, moment_s: float) -> int:
        found = bisect_right(self.offsets, (moment_s, inf)) - 1
        return self.offsets[max(found, 0)][1]

    def _utc(self, local_s: int) -> float:
        """What the clock never shows, because it is set forward there, is when it is."""
        for (_, before), (since_s, after) in pairwise(self.offsets):
            if since_s + min(before, after) <= local_s < since_s + max(before, after):
                return float(since_s if after > before else local_s - before)
        guess = local_s - self.offset_s(local_s)
        return float(local_s - self.offset_s(guess))


class Schedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    not_before_s: float | None = None
    windows: tuple[Window, ...] = ()
    """In any of them. Empty: at any time."""

    def __bool__(self) -> bool:
        return bool(self.windows) or self.not_before_s is not None

    @property
    def words(self) -> str:
        return " or ".join(window.words for window in self.windows)

    def spans(self, since_s: float, enough_s: float = inf) -> Iterator[tuple[float, float]]:
        """When machines may be up, from `since_s` on, in order and apart from each other. One that
        is longer than `enough_s` is cut there, and the last: where windows leave no gap, years
        would be joined."""
        begin_s = max(since_s, self.not_before_s if self.not_before_s is not None else since_s)
        if not self.windows:
            yield begin_s, inf
            return
        held: tuple[float, float] | None = None
        for begin, end in _spans(self.windows, begin_s):
            begin = max(begin, begin_s)
            if held is not None and begin <= held[1]:
                held = held[0], max(held[1], end)
            else:
                if held is not None:
                    yield held
                held = begin, end
            if held[1] - held[0] > enough_s:
                break
        if held is not None:
            yield held

    def closes_s(self, now: float) -> float | None:
        """Until when machines may be up, where that is within _LONG_S, and else a moment after it;
        None where they may not be now."""
        if not self:
            return inf
        begin, end = next(self.spans(now, _LONG_S), (inf, inf))
        return end if begin <= now else None

    def opens_s(self, now: float) -> float:
        """When machines may be up next; now, where they may be."""
        return next(self.spans(now, 0.0), (inf, inf))[0]

    def opens_after_s(self, close_s: float) -> float:
        return next((begin for begin, _ in self.spans(close_s) if begin > close_s), inf)

    def usable_s(self, now: float, until: float, again_s: float = 0.0) -> float:
        """How much time there is from `now` until then, less `again_s` of each window but the
        first: to start anew, and to save at its end."""
        if not self:
            return until - now
        total = 0.0
        for number, (begin, end) in enumerate(self.spans(now)):
            if begin >= until:
                break
            total += max(min(end, until) - begin - (again_s if number else 0.0), 0.0)
        return total

    def done_s(self, now: float, needed_s: float, again_s: float = 0.0) -> float:
        """When so much time has gone by in windows, reckoned as in `usable_s`."""
        if not self:
            return now + needed_s
        left, end = needed_s, now
        for number, (begin, end) in enumerate(self.spans(now)):
            lost = again_s if number else 0.0
            if end - begin - lost >= left:
                return begin + lost + left
            left -= max(end - begin - lost, 0.0)
        return end + left


def _spans(windows: tuple[Window, ...], since_s: float) -> Iterator[tuple[float, float]]:
    first = int(since_s) // DAY_S - 2
    for day in range(first, first + _FAR):
        for span in _begun(windows, day):
            if span[1] > since_s:
                yield span


@lru_cache(maxsize=2048)
def _begun(windows: tuple[Window, ...], day: int) -> tuple[tuple[float, float], ...]:
    """Those of a day, in order. A decision asks a dozen times, and the next one asks the same."""
    return tuple(sorted(span for window in windows for span in window.begun(day)))


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds % 3600 // 60:02d}"
