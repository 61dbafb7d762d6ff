"""What the ledger says was used: accelerators hour by hour, and the jobs that wanted them.

A leg of a run is one job: so many accelerators for so long. Runs of one name are one kind of job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from tradewind.base.errors import NotFound
from tradewind.economics.use import MONTH_H, Job, Use, of_hours
from tradewind.ledger.postings import MACHINE, Posting, RunCost

Chips = Callable[[str, str], float]
"""Accelerators of a provider's instance type."""
_HOUR_S = 3600


def use(runs: Iterable[RunCost], chips: Chips, now_s: int) -> Use:
    """From the first machine's hour until now."""
    spans: list[tuple[int, int, float]] = []
    legs: dict[tuple[str, str, int], list[Posting]] = {}
    for run in runs:
        name = run.spec.name if run.spec else run.run_id
        for posting in run.postings:
            if posting.kind == MACHINE and posting.seconds:
                many = chips(posting.provider, posting.instance_type)
                if many:
                    spans.append((posting.from_s, posting.from_s + posting.seconds, many))
                    legs.setdefault((name, run.run_id, posting.leg), []).append(posting)
    if not spans:
        raise NotFound("the ledger has no machine with accelerators", hint="a team's file instead")
    first = min(start for start, _, _ in spans)
    hours = max((now_s - first) / _HOUR_S, 1.0)
    return of_hours(
        _hourly(spans, first, hours), _jobs(legs, chips, hours),
        f"the ledger's last {hours / 24:,.0f} days",
    )  # fmt: skip


def _hourly(spans: list[tuple[int, int, float]], first: int, hours: float) -> list[float]:
    """The mean of each hour."""
    wanted = [0.0] * (int(hours) + 1)
    for start, end, many in spans:
        for hour in range((start - first) // _HOUR_S, (end - first) // _HOUR_S + 1):
            if 0 <= hour < len(wanted):
                begin = first + hour * _HOUR_S
                inside = min(end, begin + _HOUR_S) - max(start, begin)
                wanted[hour] += many * max(inside, 0) / _HOUR_S
    return wanted


def _jobs(legs: dict[tuple[str, str, int], list[Posting]], chips: Chips, hours: float) -> list[Job]:
    kinds: dict[str, list[tuple[float, float]]] = {}
    for (name, _, _), postings in legs.items():
        most = sum(chips(p.provider, p.instance_type) for p in postings)
        longest = max(p.seconds or 0 for p in postings) / _HOUR_S
        if longest > 0:
            kinds.setdefault(name, []).append((most, longest))
    found = []
    for name, all_of in kinds.items():
        work = sum(most * length for most, length in all_of)
        size = sum(most * most * length for most, length in all_of) / work
        found.append(Job(name, size, work / size / len(all_of), len(all_of) * MONTH_H / hours))
    return found


def hourly_by_type(
    runs: Iterable[RunCost], since_s: int, until_s: int
) -> dict[tuple[str, str, str], list[int]]:
    """Machines in each hour by (provider, region, type), of what is paid by the hour: the most that
    were up at once in it."""
    hours = max((until_s - since_s) // _HOUR_S, 1)
    moments: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    for run in runs:
        for posting in run.postings:
            if posting.kind != MACHINE or posting.market == "spot" or not posting.seconds:
                continue
            start, end = posting.from_s, posting.from_s + posting.seconds
            if end > since_s and start < until_s:
                key = (posting.provider, posting.region, posting.instance_type)
                moments.setdefault(key, []).extend(((start, 1), (end, -1)))
    return {key: _most(sorted(found), since_s, hours) for key, found in moments.items()}


def _most(moments: list[tuple[int, int]], since_s: int, hours: int) -> list[int]:
    found, up = [0] * hours, 0
    for (at, change), (then, _) in pairwise([*moments, (moments[-1][0], 0)]):
        up += change
        for hour in range(max((at - since_s) // _HOUR_S, 0), (then - 1 - since_s) // _HOUR_S + 1):
            if hour < hours and then > at:
                found[hour] = max(found[hour], up)
    return found
