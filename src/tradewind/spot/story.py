"""One case told tick by tick: what was held, how far the work was, what was spent."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.policy.base import Policy
from tradewind.spot.cases import Case
from tradewind.spot.simulate import Outcome, simulate


@dataclass(frozen=True)
class Story:
    policy: str
    outcome: Outcome
    done_s: list[float]
    """Work done by the end of each tick."""
    cost: list[float]
    """Micro-dollars by then."""


def tell(case: Case, name: str, policy: Policy) -> Story:
    outcome = simulate(case, policy)
    zones, gap_s = len(case.zones), case.gap_s
    held, residual_s, done_s, cost = -1, 0, 0, 0
    all_done: list[float] = []
    all_cost: list[float] = []
    for tick, now in enumerate(outcome.held):
        if now != held:
            residual_s = case.config.overhead_s
        held = now
        if now >= 0:
            price = case.on_demand if now == zones else case.prices[now][tick]
            cost += price * gap_s
            burned = min(residual_s, gap_s)
            residual_s -= burned
            done_s = min(done_s + gap_s - burned, case.config.work_s)
        all_done.append(float(done_s))
        all_cost.append(cost / 3600)
    assert cost == outcome.cost
    return Story(name, outcome, all_done, all_cost)
