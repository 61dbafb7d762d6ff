"""One case, carried out by a policy, exactly by these rules:

1. On spot, and the tick has no capacity: the machine is gone; work done so far is kept.
2. The policy picks nothing, spot where there is capacity, or on-demand, for the tick.
3. Another machine than the one that is held needs a whole restart first; what was left of an
   earlier one does not count. A tick burns the restart first, then works.
4. A tick with a machine is billed whole, at its zone's price in that tick.
5. The case is late if the work is not complete by the deadline, to the second.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.base import clock
from tradewind.policy.base import Known, Option, Policy, Spell
from tradewind.spot.cases import Case

MEMORY = 40
"""So many spells of a zone are told to the policy."""


class Outcome(NamedTuple):
    cost: int
    """Micro-dollars an hour times seconds: 3600 of them are a micro-dollar."""
    late: bool
    restarts: int
    """Starts beyond the first."""
    finish_s: int | None
    decisions: int
    decide_s: float
    held: list[int]
    """The zone of each tick; −1: nothing; the number of zones: on-demand."""


def simulate(case: Case, policy: Policy) -> Outcome:
    """A policy that picks what is not there is wrong, and that is an error."""
    gap_s, overhead_s = case.gap_s, case.config.overhead_s
    work_s, deadline_s = case.config.work_s, case.config.deadline_s
    zones = len(case.zones)
    watched = [_Zone(name, ups[0]) for name, ups in zip(case.zones, case.up, strict=True)]
    left_s, residual_s, held, since = work_s, 0, -1, 0
    cost = starts = decisions = 0
    decide_s = 0.0
    rows: list[int] = []
    for tick in range(len(case.up[0])):
        if tick:
            for zone, ups in zip(watched, case.up, strict=True):
                zone.look(ups[tick], gap_s)
        if 0 <= held < zones and not watched[held].up:
            held = -1
        prices = [series[tick] for series in case.prices]
        known = _known(case, watched, prices, tick, left_s, held, residual_s, since)
        began = clock.stopwatch()
        choice = policy(known).option
        decide_s += clock.stopwatch() - began
        decisions += 1
        pick = -1 if choice is None else choice
        if pick != held:
            starts += pick >= 0
            residual_s, since = overhead_s, tick
        held = pick
        rows.append(held)
        if held < 0:
            continue
        if held < zones:
            assert watched[held].up, f"{case.zones[held]} is not available"
            cost += prices[held] * gap_s
        else:
            cost += case.on_demand * gap_s
        if residual_s + left_s <= gap_s:
            finish_s = tick * gap_s + residual_s + left_s
            return Outcome(
                cost, finish_s > deadline_s, starts - 1, finish_s, decisions, decide_s, rows
            )
        burned = min(residual_s, gap_s)
        residual_s -= burned
        left_s -= gap_s - burned
    return Outcome(cost, True, max(starts - 1, 0), None, decisions, decide_s, rows)


class _Zone:
    """What has been seen of a zone since the case began."""

    __slots__ = ("for_s", "history", "name", "up")

    def __init__(self, name: str, up: bool) -> None:
        self.name, self.up, self.for_s = name, up, 0.0
        self.history: tuple[Spell, ...] = ()

    def look(self, up: bool, gap_s: int) -> None:
        self.for_s += gap_s
        if up != self.up:
            self.history = (*self.history[-MEMORY:], (self.up, self.for_s))
            self.up, self.for_s = up, 0.0


def _known(
    case: Case,
    watched: list[_Zone],
    prices: list[int],
    tick: int,
    left_s: int,
    held: int,
    residual_s: int,
    since: int,
) -> Known:
    overhead_s = float(case.config.overhead_s)
    options = [
        Option(
            zone.name,
            "spot",
            prices[n],
            1.0,
            float(residual_s) if n == held else overhead_s,
            again_s=overhead_s,
            up=zone.up,
            up_s=zone.for_s,
            history=zone.history,
        )
        for n, zone in enumerate(watched)
    ]
    options.append(
        Option(
            "on-demand",
            "on_demand",
            case.on_demand,
            1.0,
            float(residual_s) if held == len(watched) else overhead_s,
            again_s=overhead_s,
            up=True,
        )
    )
    now_s = tick * case.gap_s
    return Known(
        float(left_s),
        tuple(options),
        float(case.config.deadline_s - now_s),
        holding=held if held >= 0 else None,
        held_s=float((tick - since) * case.gap_s),
        tick_s=float(case.gap_s),
        all_work=float(case.config.work_s),
        all_s=float(case.config.deadline_s),
    )
