"""What would have been paid by whoever had known beforehand when machines can be had.

Exact, for the work and the restarts that were measured, in ticks: `spot/optimum.py` says how. All
machines must do the work equally fast, as processes of one computer do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_hours
from tradewind.model.run import Way
from tradewind.report.capacity import Spans

MOST_TICKS = 2000
_LONGEST = 10
"""Times as long as the run took: further ahead, more time hardly makes anything cheaper."""


class Effort(Struct, frozen=True, kw_only=True):
    """What the work took, as measured."""

    work_s: float
    """Once: what was made again elsewhere is not counted."""
    start_s: float
    """From asking for a machine to its first step."""


def foresight(
    ways: Sequence[Way],
    there: Mapping[str, Spans],
    effort: Effort,
    submitted: datetime,
    ended: datetime,
    deadline: datetime | None,
    speed: float = 1.0,
) -> tuple[int | None, str]:
    """Micro-dollars, and in words how they were reckoned, or why not. The words are in the time of
    the run's world, which goes `speed` times as fast as ours."""
    took_s = (ended - submitted).total_seconds()
    until_s = took_s
    if deadline is not None:
        until_s = max(took_s, min((deadline - submitted).total_seconds(), _LONGEST * took_s))
    spot = [way for way in ways if way.market == "spot" and (way.zone or way.region) in there]
    if not spot:
        return None, "no machine of the plan has a trace"
    safe = min((way.price_all for way in ways if way.market == "on_demand"), default=None)
    gap_s = max(1, -(-int(until_s) // MOST_TICKS))
    begun_s = submitted.timestamp()
    ticks = -(-int(until_s) // gap_s) + 1
    up = [
        _ticks(there[way.zone or way.region], begun_s, gap_s, ticks, covered=safe is None)
        for way in spot
    ]
    try:
        micros = _least(up, [way.price_all for way in spot], safe, gap_s, effort, until_s)
    except ImportError:
        return None, "NumPy is not installed, which it needs"
    except InvalidValue as error:
        return None, error.message
    within = f"within {format_hours(until_s * speed / 3600)} of the submission"
    if micros is None:
        return None, f"spot alone could not have done it {within}, whatever was known before"
    words = (
        f"{format_hours(effort.work_s * speed / 3600)} of work and"
        f" {format_hours(effort.start_s * speed / 3600)} for each start, as measured, {within},"
        f" in ticks of {format_hours(gap_s * speed / 3600)}"
    )
    return micros, words


def _ticks(spans: Spans, begun_s: float, gap_s: int, ticks: int, *, covered: bool) -> list[bool]:
    """Whether there were machines in each tick: for all of it, where nothing else is to be had."""
    found = [False] * ticks
    for start, end in spans:
        first, last = (start - begun_s) / gap_s, (end - begun_s) / gap_s
        low, high = int(first // 1), int(-(-last // 1))
        if covered:
            low, high = int(-(-first // 1)), int(last // 1)
        for tick in range(max(low, 0), min(high, ticks)):
            found[tick] = True
    return found


def _least(
    up: Sequence[Sequence[bool]],
    prices: Sequence[int],
    safe: int | None,
    gap_s: int,
    effort: Effort,
    until_s: float,
) -> int | None:
    import numpy as np

    from tradewind.spot.cases import Config
    from tradewind.spot.optimum import optimum

    work_s = max(int(effort.work_s // gap_s), 1) * gap_s
    start_s = int(effort.start_s // gap_s) * gap_s
    due_s = max(-(-int(until_s) // gap_s) * gap_s, work_s + start_s)
    there = np.array([up], dtype=bool)
    wanted = -(-due_s // gap_s)
    if there.shape[2] < wanted:
        there = np.pad(there, ((0, 0), (0, 0), (0, wanted - there.shape[2])))
    each = np.broadcast_to(np.array(prices, dtype=np.int64)[None, :, None], there.shape)
    # Where there is nothing on demand, it costs more than everything else could.
    dear = safe if safe is not None else 10**12
    least = float(optimum(there, each, dear, gap_s, Config(work_s, due_s, start_s))[0])
    if least == inf or (safe is None and least >= dear * gap_s):
        return None
    return round(least / 3600)
