"""The same cases, harsher and more real. What differs from `simulate`:

- Capacity is seen only where we hold or try to. A refused try costs a minute at the zone's price;
  what is held meanwhile is kept.
- A start fails now and then: the tick is billed, and nothing is held after it. On-demand is refused
  now and then.
- A machine that is taken takes the work since its last save with it, unless a notice came in time.
  Saves take time on every machine; their cadence follows the hazards, how many losses are noticed,
  and the slack.

Policies are told the time until the deadline less a reserve for such things, machines' speed with
their saves, and how much of the work is not saved.
"""

from __future__ import annotations

from math import inf
from typing import Any

from tradewind.base import clock
from tradewind.policy import cadence
from tradewind.policy.base import Known, Option, Policy, Spell
from tradewind.spot.cases import Case
from tradewind.spot.simulate import MEMORY, Outcome

NOTICED = 0.9
FAILS = 0.05
REFUSED = 0.05
SAVE_S = 60
TRY_S = 60
RESERVE_TICKS = 7
"""Six failures of on-demand in a row (less than once in a million), and the tick that is lost."""
SPOT_RATE = 0.97
SAFE_RATE = 1 - SAVE_S / cadence.every_s(SAVE_S, 0.0, spot=False, any_loss_h=inf)


def simulate(case: Case, policy: Policy, number: int) -> Outcome:
    run = _Run(case, number)
    for tick in range(len(case.up[0])):
        if run.step(tick, policy):
            break
    return run.outcome()


class _Run:
    def __init__(self, case: Case, number: int) -> None:
        self.case, self.zones = case, len(case.zones)
        self.random: Any = clock.generator(number * 1009 + case.config.deadline_s)
        self.seen = [_Glimpses(name) for name in case.zones]
        self.held, self.since = -1, 0
        self.left_s, self.unsaved_s = float(case.config.work_s), 0.0
        self.residual_s = self.saving_s = 0.0
        self.cost = self.starts = self.decisions = 0
        self.decide_s = 0.0
        self.finish_s: float | None = None
        self.rows: list[int] = []

    def outcome(self) -> Outcome:
        finish_s = None if self.finish_s is None else round(self.finish_s)
        late = self.finish_s is None or self.finish_s > self.case.config.deadline_s
        restarts = max(self.starts - 1, 0)
        return Outcome(
            self.cost, late, restarts, finish_s, self.decisions, self.decide_s, self.rows
        )

    def step(self, tick: int, policy: Policy) -> bool:
        looked: dict[int, bool] = {}
        if 0 <= self.held < self.zones:
            looked[self.held] = self.case.up[self.held][tick]
            if not looked[self.held]:
                self._taken()
        known = self._known(tick, looked)
        began = clock.stopwatch()
        choice = policy(known).option
        self.decide_s += clock.stopwatch() - began
        self.decisions += 1
        pick = -1 if choice is None else choice
        if pick != self.held:
            self._move(pick, tick, looked)
        self.rows.append(self.held)
        done = self.held >= 0 and self._work(tick)
        for n, zone in enumerate(self.seen):
            zone.look(looked.get(n), self.case.gap_s)
        return done

    def _taken(self) -> None:
        self.held, self.saving_s = -1, 0.0
        if self.random.random() >= NOTICED:
            self.left_s += self.unsaved_s
        self.unsaved_s = 0.0

    def _move(self, pick: int, tick: int, looked: dict[int, bool]) -> None:
        """Whatever is left saves first: that takes no longer than the new machine's start."""
        if 0 <= pick < self.zones:
            looked[pick] = self.case.up[pick][tick]
            if not looked[pick]:
                self.cost += self.case.prices[pick][tick] * TRY_S
                return
        elif pick == self.zones and self.random.random() < REFUSED:
            return
        self.unsaved_s = self.saving_s = 0.0
        self.held, self.since = pick, tick
        self.residual_s = float(self.case.config.overhead_s)
        if pick >= 0:
            self.starts += 1
            if self.random.random() < FAILS:
                self._bill(tick)
                self.held = -1

    def _bill(self, tick: int) -> None:
        on_demand = self.held == self.zones
        price = self.case.on_demand if on_demand else self.case.prices[self.held][tick]
        self.cost += price * self.case.gap_s

    def _work(self, tick: int) -> bool:
        self._bill(tick)
        gap_s = float(self.case.gap_s)
        burned = min(self.residual_s, gap_s)
        self.residual_s -= burned
        time_s = gap_s - burned
        age_s = (tick - self.since) * gap_s
        spot = self.held < self.zones
        slack_s = self._time_s(tick) - self.left_s / SAFE_RATE - self.case.config.overhead_s
        every_s = -SAVE_S + cadence.every_s(
            SAVE_S, age_s, spot=spot, noticed=cadence.NOTICED, slack_s=slack_s, any_loss_h=inf
        )
        while time_s > 0:
            if self.saving_s > 0:
                part = min(time_s, self.saving_s)
                self.saving_s -= part
                if self.saving_s <= 0:
                    self.unsaved_s = 0.0
            else:
                part = min(time_s, max(every_s - self.unsaved_s, 0.0), self.left_s)
                self.left_s -= part
                self.unsaved_s += part
                if self.left_s <= 0:
                    self.finish_s = (tick + 1) * gap_s - time_s + part
                    return True
                if self.unsaved_s >= every_s:
                    self.saving_s = float(SAVE_S)
            time_s -= part
        return False

    def _time_s(self, tick: int) -> float:
        """Until the deadline, less the reserve."""
        gap_s = float(self.case.gap_s)
        return self.case.config.deadline_s - (tick + RESERVE_TICKS) * gap_s - SAVE_S

    def _known(self, tick: int, looked: dict[int, bool]) -> Known:
        case, gap_s = self.case, float(self.case.gap_s)
        overhead_s = float(case.config.overhead_s)
        options = [
            Option(
                zone.name,
                "spot",
                case.prices[n][tick],
                SPOT_RATE,
                self.residual_s if n == self.held else overhead_s,
                again_s=overhead_s,
                up=looked.get(n),
                up_s=zone.since(looked.get(n)),
                history=zone.before(looked.get(n)),
            )
            for n, zone in enumerate(self.seen)
        ]
        safe_start_s = self.residual_s if self.held == self.zones else overhead_s
        options.append(
            Option(
                "on-demand",
                "on_demand",
                case.on_demand,
                SAFE_RATE,
                safe_start_s,
                again_s=overhead_s,
            )
        )
        return Known(
            self.left_s,
            tuple(options),
            self._time_s(tick),
            holding=self.held if self.held >= 0 else None,
            held_s=(tick - self.since) * gap_s,
            tick_s=gap_s,
            all_work=float(case.config.work_s),
            all_s=float(case.config.deadline_s),
            unsaved=self.unsaved_s if 0 <= self.held < self.zones else 0.0,
        )


class _Glimpses:
    """What was seen of a zone: True or False where somebody looked, None where nobody did."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: bool | None = None
        self.for_s = 0.0
        self.ended: tuple[Spell, ...] = ()

    def look(self, state: bool | None, gap_s: int) -> None:
        if state is not self.state:
            self.ended, self.state, self.for_s = self.before(state)[-MEMORY:], state, 0.0
        self.for_s += gap_s

    def before(self, state: bool | None) -> tuple[Spell, ...]:
        """The history as told while this is the state now."""
        if state is self.state or not self.for_s:
            return self.ended
        return (*self.ended, (self.state, self.for_s))

    def since(self, state: bool | None) -> float:
        return self.for_s if state is self.state else 0.0
