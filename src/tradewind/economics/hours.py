"""When to run: which hours of the day, and which days, have been cheaper, and whether that is more
than chance. Pure.

What was seen is hours: how much of each a machine could be had in, and for what price. A window is
so many hours that begin at the same hour of each day. It is held against all hours of the same
days, day by day: the mean of these differences has a range. The best of 24 windows
always looks good, so it must be further from nought than any one of them would have to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt
from statistics import mean, stdev

from msgspec import Struct

from tradewind.model.event import Commit, LaunchRefused, LegOver, LegRequested, LegUp

HOUR_S = 3600
_DAY_H = 24
_WIDE = 1.2816  # of a normal distribution, eight of ten lie within
_WIDER = 2.64
"""The same for the best of 24 windows: one of them looks good by chance in most series."""
_TAKEN = ("interrupted", "ended_early")
LEAST_DAYS = 5
"""With fewer nothing is said of what is more than chance."""


class Hour(Struct, frozen=True):
    up: float
    """The share of looks, or of its time, in which it could be had."""
    price: float | None
    """Dollars an hour, where that was seen."""


class Cell(Struct, frozen=True, kw_only=True):
    """Hours that are alike: the same of the day, or the same day of the week."""

    up: float
    price: float | None
    hours: int


class Choice(Struct, frozen=True, kw_only=True):
    start: int
    """Hour of the day at which it begins."""
    length: int
    up: float
    price: float | None
    """Dollars for an hour in which it could be had."""
    saved: float | None
    """The share of the price, against all hours; None where no prices were seen."""
    low: float | None = None
    """Of `saved`, in eight of ten cases."""
    high: float | None = None
    off: float | None = None
    """By so much it must be above nought to be more than chance."""
    days: int
    exact: bool = False
    """It is a tariff's, and no sample."""

    @property
    def sure(self) -> bool:
        if self.exact:
            return bool(self.saved and self.saved > 0)
        return self.off is not None and self.saved is not None and self.saved > self.off

    @property
    def end(self) -> int:
        return (self.start + self.length) % _DAY_H


Hours = Mapping[int, Hour]
"""By hour since 1970."""


def gathered(looks: Iterable[tuple[float, float, float | None]]) -> dict[int, Hour]:
    """From single looks: when, whether it could be had, and for what price."""
    found: dict[int, list[tuple[float, float | None]]] = {}
    for at_s, up, price in looks:
        found.setdefault(int(at_s // HOUR_S), []).append((up, price))
    hours = {}
    for hour, each in found.items():
        prices = [price for _, price in each if price is not None]
        hours[hour] = Hour(mean(up for up, _ in each), mean(prices) if prices else None)
    return hours


def of_journals(
    runs: Iterable[Sequence[Commit]], wanted: Callable[[str], bool]
) -> list[tuple[float, float, float | None]]:
    """Looks at spot machines by runs: what came up, was refused for want of capacity, or was taken.
    `wanted`: of which instance types."""
    looks: list[tuple[float, float, float | None]] = []
    for commits in runs:
        prices: dict[int, float] = {}
        for commit in commits:
            at = commit.at.timestamp()
            for event in commit.events:
                if isinstance(event, LegRequested):
                    way = event.request.way
                    if way.market == "spot" and wanted(way.instance_type):
                        prices[event.request.leg] = way.price / 1e6
                elif isinstance(event, LegUp) and event.leg in prices:
                    looks.append((at, 1.0, prices[event.leg]))
                elif isinstance(event, LaunchRefused) and event.leg in prices:
                    if event.kind == "no_capacity":
                        looks.append((at, 0.0, None))
                elif isinstance(event, LegOver) and event.leg in prices and event.cause in _TAKEN:
                    looks.append((at, 0.0, None))
    return looks


def by_hour(hours: Hours, offset: Callable[[int], int]) -> dict[int, Cell]:
    """By hour of the day there: `offset` is how far its clock is ahead at a moment."""
    return _cells(hours, lambda hour: _local(hour, offset) % _DAY_H)


def by_day(hours: Hours, offset: Callable[[int], int]) -> dict[int, Cell]:
    """By day of the week; 0 is Monday."""
    return _cells(hours, lambda hour: (_local(hour, offset) // _DAY_H + 3) % 7)


def _local(hour: int, offset: Callable[[int], int]) -> int:
    return (hour * HOUR_S + offset(hour * HOUR_S)) // HOUR_S


def _cells(hours: Hours, key: Callable[[int], int]) -> dict[int, Cell]:
    groups: dict[int, list[Hour]] = {}
    for hour, seen in hours.items():
        groups.setdefault(key(hour), []).append(seen)
    return {name: _cell(group) for name, group in sorted(groups.items())}


def _cell(group: Sequence[Hour]) -> Cell:
    prices = [(seen.price, seen.up) for seen in group if seen.price is not None]
    weight = sum(up for _, up in prices)
    price = None
    if prices:
        price = (
            sum(price * up for price, up in prices) / weight
            if weight
            else mean(price for price, _ in prices)
        )
    return Cell(up=mean(seen.up for seen in group), price=price, hours=len(group))


def choices(
    hours: Hours, length: int, offset: Callable[[int], int], *, exact: bool = False
) -> list[Choice]:
    """Every window of that many hours, the best first: by price where prices were seen, else by how
    often it could be had."""
    local = {_local(hour, offset): seen for hour, seen in hours.items()}
    # Single looks, as runs have them, are never a whole window of a day.
    dense = bool(local) and len(local) >= (max(local) - min(local) + 1) / 2
    found = [
        choice
        for start in range(_DAY_H)
        if (choice := _choice(local, start, length, exact, dense)) is not None
    ]
    return sorted(found, key=_best)


def _best(choice: Choice) -> tuple[float, float, int]:
    saved = choice.saved if choice.saved is not None else 0.0
    return -round(saved, 9), -round(choice.up, 9), choice.start


def _choice(
    local: Mapping[int, Hour], start: int, length: int, exact: bool, dense: bool
) -> Choice | None:
    least, most = (length, _DAY_H * 3 // 4) if dense else (1, 2)
    days = sorted({hour // _DAY_H for hour in local})
    inside: list[Hour] = []
    differences: list[float] = []
    both: list[tuple[Cell, Cell]] = []
    for day in days:
        first = day * _DAY_H + start
        window = [local[first + n] for n in range(length) if first + n in local]
        whole = [local[first + n] for n in range(_DAY_H) if first + n in local]
        if len(window) < least or len(whole) < most:
            continue  # it began before anybody looked, or ends after
        inside += window
        here, there = _cell(window), _cell(whole)
        both.append((here, there))
        if here.price is not None and there.price:
            differences.append(1 - here.price / there.price)
    if not inside:
        return None
    cell = _cell(inside)
    saved = mean(differences) if differences else None
    low = high = off = None
    if saved is not None and not exact and len(differences) >= LEAST_DAYS:
        error = stdev(differences) / sqrt(len(differences))
        low, high, off = saved - _WIDE * error, saved + _WIDE * error, _WIDER * error
    return Choice(
        start=start,
        length=length,
        up=cell.up,
        price=cell.price,
        saved=saved,
        low=low,
        high=high,
        off=off,
        days=len(both),
        exact=exact,
    )
