"""What a team uses: jobs that come again, and the accelerators that they want in each hour.

The hours are drawn: so many starts a month, at random hours of those in which such jobs start, with
one seed for one answer. All costs follow from how many hours want how many accelerators, so that is
what is kept of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

YEAR_H = 8760
MONTH_H = YEAR_H / 12
WEEK_H = 168
STARTS = ("any", "office", "night")
"""When jobs start: at any hour; Monday to Friday from 8 to 18; at night, from 20 to 4."""
PATTERNS = ("jobs", "steady", "office")
_MOST_LEVELS = 128
_MOST_STARTS = 2_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """One kind of work of a team."""

    name: str
    accelerators: float
    hours: float
    per_month: float
    when: str = "any"

    def __post_init__(self) -> None:
        for what, value in (
            ("accelerators", self.accelerators),
            ("hours", self.hours),
            ("per_month", self.per_month),
        ):
            if not 0 < value < 1e7:
                raise InvalidValue(
                    f"{self.name}: {what} cannot be {value:g}", hint="legal: more than 0"
                )
        if self.when not in STARTS:
            raise InvalidValue(
                f"{self.name}: jobs do not start {self.when!r}", hint=f"one of {', '.join(STARTS)}"
            )

    @property
    def hours_month(self) -> float:
        """Accelerator-hours."""
        return self.accelerators * self.hours * self.per_month


@dataclass(frozen=True, slots=True)
class Use:
    """`levels`: accelerators wanted at once; `shares`: of the hours, adding up to 1."""

    levels: tuple[float, ...]
    shares: tuple[float, ...]
    jobs: tuple[Job, ...] = ()
    origin: str = ""
    starts: tuple[tuple[float, int], ...] = field(default=(), repr=False)
    """When each job came that was drawn: the hour, and which of `jobs`."""
    hours: int = YEAR_H

    @property
    def mean(self) -> float:
        return sum(level * share for level, share in zip(self.levels, self.shares, strict=True))

    @property
    def peak(self) -> float:
        return max(self.levels)

    @property
    def hours_month(self) -> float:
        return self.mean * MONTH_H


def of_hours(wanted: Iterable[float], jobs: Sequence[Job] = (), origin: str = "") -> Use:
    """From what was wanted in each hour."""
    counts = Counter(round(float(level), 6) for level in wanted)
    total = sum(counts.values())
    if not total or max(counts) <= 0:
        raise InvalidValue("nothing is used: there is nothing to compare", hint="docs/own.md")
    pairs = sorted(counts.items())
    while len(pairs) > _MOST_LEVELS:  # neighbours become one: the sum stays
        joined = []
        for (a, n), (b, m) in zip(pairs[::2], pairs[1::2], strict=False):
            joined.append(((a * n + b * m) / (n + m), n + m))
        pairs = joined + ([pairs[-1]] if len(pairs) % 2 else [])
    return Use(
        tuple(level for level, _ in pairs), tuple(n / total for _, n in pairs), tuple(jobs), origin,
        hours=total,
    )  # fmt: skip


def of_pattern(hours_month: float, pattern: str) -> Use:
    """So many accelerator-hours a month, spread evenly over all hours or those of an office."""
    if not 0 < hours_month < 1e9:
        raise InvalidValue(
            f"{hours_month:g} accelerator-hours a month cannot be", hint="legal: more than 0"
        )
    if pattern == "steady":
        return Use((hours_month / MONTH_H,), (1.0,), origin=f"{hours_month:,.0f} hours, steady")
    open_h = len(_open("office"))
    share = open_h / WEEK_H
    busy = hours_month / MONTH_H / share
    return Use((0.0, busy), (1 - share, share), origin=f"{hours_month:,.0f} hours, in the office's")


def of_jobs(jobs: Sequence[Job], years: int, seed: int) -> Use:
    """Draws every hour of so many years."""
    import numpy as np

    if not jobs:
        raise InvalidValue("there is no job: nothing is used", hint="docs/own.md")
    hours = years * YEAR_H
    if sum(job.per_month for job in jobs) * 12 * years > _MOST_STARTS:
        raise InvalidValue("that are more than two million starts", hint="fewer jobs, or years")
    draw = clock.generator(seed)
    weeks, chance = hours // WEEK_H, draw.random
    starts: list[tuple[float, int]] = []
    for number, job in enumerate(jobs):
        open_hours = _open(job.when)
        many = len(open_hours)
        for _ in range(round(job.per_month * 12 * years)):
            hour = open_hours[int(chance() * many)]
            starts.append(
                (min(int(chance() * weeks) * WEEK_H + hour + chance(), hours - 1e-6), number)
            )
    starts.sort()
    begin = np.array([start for start, _ in starts])
    kinds = np.array([number for _, number in starts])
    size = np.array([job.accelerators for job in jobs])[kinds]
    end = begin + np.array([job.hours for job in jobs])[kinds]
    change: Any = np.zeros(hours + 2)
    _add(change, begin, np.minimum(end, hours), size)
    over = end > hours  # what is still on at the end was on at the beginning
    _add(change, np.zeros(over.sum()), np.minimum(end[over] - hours, hours), size[over])
    wanted = np.maximum(np.round(np.cumsum(change)[:hours], 6), 0)
    quantised = np.round(wanted * 4) / 4
    # Rounding to a quarter of an accelerator must not change the sum.
    scale = wanted.sum() / max(quantised.sum(), 1e-9)
    found = of_hours(quantised.tolist(), jobs)
    return Use(
        tuple(level * scale for level in found.levels), found.shares, tuple(jobs),
        f"{len(jobs)} kinds of job, drawn over {years} years (seed {seed})", tuple(starts), hours,
    )  # fmt: skip


def _add(change: Any, begin: Any, end: Any, amount: Any) -> None:
    """The mean of each hour, also of those that are touched in part."""
    import numpy as np

    for moment, sign in ((begin, 1.0), (end, -1.0)):
        hour = np.minimum(moment.astype(np.int64), len(change) - 2)
        part = moment - hour
        np.add.at(change, hour, sign * amount * (1 - part))
        np.add.at(change, hour + 1, sign * amount * part)


def _open(when: str) -> list[int]:
    """Hours of a week, from Monday's first."""
    if when == "office":
        return [24 * day + hour for day in range(5) for hour in range(8, 18)]
    if when == "night":
        return [24 * day + hour for day in range(7) for hour in (20, 21, 22, 23, 0, 1, 2, 3)]
    return list(range(WEEK_H))
