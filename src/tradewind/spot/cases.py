"""Cases: so much work, a deadline, a restart's time, and a window of one or several series.

Time and money are whole numbers, so that a policy's cost and the optimum can be compared exactly:
seconds, and micro-dollars an hour times seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.spot.series import Series

if TYPE_CHECKING:
    import random  # noqa: TID251

    import numpy as np
    from numpy.typing import NDArray

AFTER_S = 3600
"""A window goes on for so long after the deadline, to see by how much a case is late."""
SUBSETS = (2, 3, 5)
EACH = 2  # subsets of a size
MOST_DAYS = 366


@dataclass(frozen=True)
class Config:
    work_s: int
    deadline_s: int
    overhead_s: int

    def __post_init__(self) -> None:
        hours = f"{self.work_s / 3600:g} h of work and {self.overhead_s / 3600:g} h to start"
        if self.work_s <= 0:
            raise InvalidValue("the task has no work", hint="--task takes hours above 0")
        if self.overhead_s < 0:
            raise InvalidValue("a restart cannot take less than no time")
        if self.deadline_s < self.work_s + self.overhead_s:
            raise InvalidValue(
                f"a deadline of {self.deadline_s / 3600:g} h is too short for {hours}",
                hint="even on-demand from the first second would be late",
            )
        if self.deadline_s > MOST_DAYS * 86400:
            raise InvalidValue(f"a deadline of {self.deadline_s / 86400:g} days is too far away")

    @property
    def name(self) -> str:
        return f"{self.deadline_s / 3600:g}h/{self.overhead_s / 3600:g}h"

    def window(self, gap_s: int) -> int:
        """Ticks of a window."""
        return -(-(self.deadline_s + AFTER_S) // gap_s)


@dataclass(frozen=True)
class Group:
    """Series that are simulated together, of one gap and aligned: their common ticks."""

    name: str
    zones: tuple[str, ...]
    gap_s: int
    up: NDArray[np.bool_]
    """Zone × tick."""
    prices: NDArray[np.int64]
    on_demand: int

    def pick(self, zones: Sequence[int]) -> Group:
        chosen = list(zones)
        names = tuple(self.zones[n] for n in chosen)
        if len(chosen) == len(self.zones):
            return self
        return Group(
            f"{self.name}[{'+'.join(names)}]",
            names,
            self.gap_s,
            self.up[chosen],
            self.prices[chosen],
            self.on_demand,
        )


@dataclass(frozen=True)
class Case:
    config: Config
    zones: tuple[str, ...]
    gap_s: int
    up: list[list[bool]]
    """Of each zone, for each tick."""
    prices: list[list[int]]
    on_demand: int


def single(series: Series, nodes: int) -> Group:
    return Group(
        series.trace_id,
        (series.zone,),
        series.gap_s,
        series.up(nodes)[None],
        series.prices[None],
        series.on_demand,
    )


def groups(all_series: Sequence[Series], nodes: int) -> list[Group]:
    """Series of one provider, accelerator and gap that overlap in time; those alone are left out.
    Where any of them has prices, those without are left out too: they could not be compared."""
    import numpy as np

    found: list[Group] = []
    for together in overlapping(all_series):
        if any(s.priced for s in together):
            together = [s for s in together if s.priced]
        if len(together) < 2:
            continue
        gap_s = together[0].gap_s
        start_s = max(s.start_s for s in together)
        skip = [(start_s - s.start_s) // gap_s for s in together]
        ticks = min(s.ticks - skipped for s, skipped in zip(together, skip, strict=True))
        cut = [slice(skipped, skipped + ticks) for skipped in skip]
        found.append(
            Group(
                _group_name(together[0], [group.name for group in found]),
                _names(together),
                gap_s,
                np.stack([s.up(nodes)[c] for s, c in zip(together, cut, strict=True)]),
                np.stack([s.prices[c] for s, c in zip(together, cut, strict=True)]),
                max(s.on_demand for s in together),
            )
        )
    return found


def _group_name(first: Series, taken: Sequence[str]) -> str:
    """Each group has another: results are told by it."""
    name = f"{first.provider} {first.accelerator} {first.trace_id.rsplit('-', 1)[-1]}"
    if name in taken:
        name += f" {first.gap_s} s"
    number = 2
    while name in taken:
        name, number = f"{name.removesuffix(f' #{number - 1}')} #{number}", number + 1
    return name


def _names(together: Sequence[Series]) -> tuple[str, ...]:
    zones = [s.zone for s in together]
    return tuple(zones) if len(set(zones)) == len(zones) else tuple(s.trace_id for s in together)


def overlapping(all_series: Sequence[Series]) -> Iterator[list[Series]]:
    alike: dict[tuple[str, str, int], list[Series]] = {}
    for series in all_series:
        alike.setdefault((series.provider, series.accelerator, series.gap_s), []).append(series)
    for members in alike.values():
        together: list[Series] = []
        end_s = 0
        for series in sorted(members, key=lambda s: s.start_s):
            if together and series.start_s >= end_s:
                yield together
                together = []
            ends = series.start_s + series.ticks * series.gap_s
            # The common part shrinks with every member: a series that leaves too little of it
            # begins a group of its own.
            end_s = min(end_s, ends) if together else ends
            together.append(series)
        yield together


def subsets(group: Group, rng: random.Random) -> list[Group]:
    """The whole group, and seeded random subsets of it."""
    found = [group]
    for size in SUBSETS:
        if size >= len(group.zones):
            continue
        possible = list(combinations(range(len(group.zones)), size))
        for zones in sorted(rng.sample(possible, min(EACH, len(possible)))):
            found.append(group.pick(zones))
    return found


def starts(ticks: int, window: int, windows: int) -> list[int]:
    """First ticks of the windows, evenly spaced; none if the series is too short."""
    last = ticks - window
    if last < 0:
        return []
    if windows == 1:
        return [0]
    return [round(n * last / (windows - 1)) for n in range(windows)]


def cut(group: Group, config: Config, windows: int) -> Iterator[Case]:
    """One after the other: all at once may not fit the memory."""
    window = config.window(group.gap_s)
    for start in starts(group.up.shape[1], window, windows):
        part = slice(start, start + window)
        yield Case(
            config,
            group.zones,
            group.gap_s,
            group.up[:, part].tolist(),
            group.prices[:, part].tolist(),
            group.on_demand,
        )
