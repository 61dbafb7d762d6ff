"""What the month will come to, and which runs cost far more than others of their kind. Pure.

A forecast is what is spent, and for each day that is left the mean of the last four weeks' days;
its range holds in eight of ten cases if days are alike and independent of each other. A run's kind
is its name: it is unusual if it cost several times the median of the others, of which there are
some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import mean, median, pstdev

from msgspec import Struct

from tradewind.ledger.periods import DAY_S, between, month_name, month_start, next_month
from tradewind.ledger.postings import Posting, RunCost

SEEN_DAYS = 28
TIMES = 3.0
"""As dear as that is unusual."""
FEW = 3
"""Others of its kind that there must be."""
_WIDE = 1.2816  # of a normal distribution, eight of ten lie within


class Forecast(Struct, frozen=True, kw_only=True):
    """Micro-dollars."""

    month: str
    spent: int
    likely: int
    low: int
    high: int
    days_left: float
    seen_days: int
    """On which it stands: days of the last four weeks since the first posting."""


class Unusual(Struct, frozen=True, kw_only=True):
    run_id: str
    name: str
    micros: int
    usual: int
    """The median of the others."""
    others: int

    @property
    def times(self) -> float:
        return self.micros / self.usual


def forecast(postings: Iterable[Posting], now_s: int) -> Forecast:
    posted = list(postings)
    start, end = month_start(now_s), next_month(now_s)
    spent = _sum(posted, start, now_s + 1)
    first = min((posting.from_s for posting in posted), default=now_s)
    days = max(min(SEEN_DAYS, (now_s - first) // DAY_S), 1)
    daily = [
        _sum(posted, now_s - (n + 1) * DAY_S, now_s - n * DAY_S) for n in range(days)
    ]  # fmt: skip
    left = (end - now_s) / DAY_S
    likely = spent + round(mean(daily) * left)
    # Of the days to come, and of the mean, which is of a few days only.
    off = _WIDE * pstdev(daily) * sqrt(left + left * left / days)
    return Forecast(
        month=month_name(now_s), spent=spent, likely=likely, low=max(round(likely - off), spent),
        high=round(likely + off), days_left=left, seen_days=days,
    )  # fmt: skip


def unusual(runs: Sequence[RunCost]) -> list[Unusual]:
    """The dearest first. Runs that go on count: they may be stopped yet."""
    kinds: dict[str, list[RunCost]] = {}
    for run in runs:
        if run.spec and run.spec.name and run.micros > 0:
            kinds.setdefault(run.spec.name, []).append(run)
    found = []
    for name, kind in kinds.items():
        for run in kind:
            others = [other.micros for other in kind if other is not run]
            usual = median(others) if len(others) >= FEW else 0
            if usual and run.micros >= TIMES * usual:
                found.append(
                    Unusual(
                        run_id=run.run_id, name=name, micros=run.micros, usual=round(usual),
                        others=len(others),
                    )
                )  # fmt: skip
    return sorted(found, key=lambda one: -one.micros)


def _sum(postings: Iterable[Posting], since_s: int, until_s: int) -> int:
    parts = (between(posting, since_s, until_s) for posting in postings)
    return sum(part.micros for part in parts if part)
