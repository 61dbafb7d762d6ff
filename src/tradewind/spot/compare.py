"""Policies against perfect foresight, over all cases that series give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.policy import names
from tradewind.policy.base import Policy
from tradewind.spot.cases import Case, Config, Group, cut, starts
from tradewind.spot.optimum import optimum
from tradewind.spot.predict import predicted
from tradewind.spot.simulate import Outcome, simulate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OURS = "tradewind"
MOST_NUMBERS = 4e6
"""So many at once are worked on for the optimum."""
Simulate = Callable[[Case, Policy, int], Outcome]
"""With a number of the case, from which everything random follows."""


@dataclass
class Sum:
    cases: int = 0
    cost: float = 0.0
    optimum: float = 0.0
    on_demand: float = 0.0
    late: int = 0
    restarts: int = 0
    decisions: int = 0
    decide_s: float = 0.0
    predicted: float = 0.0
    """By the planner, before the cases began; 0: it says nothing of such cases."""

    def add(self, found: Outcome, best: float, on_demand: float) -> None:
        self.cases += 1
        self.cost += found.cost
        self.optimum += best
        self.on_demand += on_demand
        self.late += found.late
        self.restarts += found.restarts
        self.decisions += found.decisions
        self.decide_s += found.decide_s

    def figures(self) -> dict[str, Any]:
        return {
            "cost_vs_on_demand": round(self.cost / self.on_demand, 4),
            "gap_to_optimum": self._gap(),
            "late": self.late,
            "restarts": round(self.restarts / self.cases, 2),
            "decide_ms": round(1e3 * self.decide_s / max(self.decisions, 1), 4),
        }

    def planner(self) -> dict[str, Any]:
        """What the planner said these cases would cost, and how far off that was."""
        return {
            "cost_vs_on_demand": round(self.predicted / self.on_demand, 4),
            "error": round(self.predicted / self.cost - 1, 4) if self.cost else None,
        }

    def _gap(self) -> float | None:
        """None: spot is free and was always there, so that nothing can be said by a share."""
        if self.optimum:
            return round(self.cost / self.optimum - 1, 4)
        return None if self.cost else 0.0


@dataclass
class Comparison:
    policies: Sequence[str]
    sums: dict[tuple[str, str, str], Sum] = field(default_factory=dict)
    """By configuration, series and policy."""
    skipped: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        whole = self._total(lambda key: True)
        first = whole[self.policies[0]]
        configs = list(dict.fromkeys(key[0] for key in self.sums))
        series = list(dict.fromkeys(key[1] for key in self.sums))
        return {
            "cases": first.cases,
            "by_policy": {name: total.figures() for name, total in whole.items()},
            "by_config": {name: self._part(0, name) for name in configs},
            "by_series": {name: self._part(1, name) for name in series},
            "optimum_vs_on_demand": round(first.optimum / first.on_demand, 4),
            "skipped": list(dict.fromkeys(self.skipped)),
            **_planner(whole),
        }

    def _part(self, at: int, name: str) -> dict[str, Any]:
        found = self._total(lambda key: key[at] == name)
        first = found[self.policies[0]]
        return {
            "cases": first.cases,
            "optimum_vs_on_demand": round(first.optimum / first.on_demand, 4),
            "by_policy": {name: total.figures() for name, total in found.items()},
            **_planner(found),
        }

    def _total(self, wanted: Callable[[tuple[str, str, str]], bool]) -> dict[str, Sum]:
        found = {name: Sum() for name in self.policies}
        for key, part in self.sums.items():
            if wanted(key):
                total = found[key[2]]
                for name in vars(total):
                    setattr(total, name, getattr(total, name) + getattr(part, name))
        return found


def _planner(totals: Mapping[str, Sum]) -> dict[str, Any]:
    ours = totals.get(OURS)
    return {"planner": ours.planner()} if ours and ours.predicted else {}


def compare(
    groups: Sequence[Group],
    configs: Sequence[Config],
    windows: int,
    policies: Sequence[str],
    run: Simulate | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    nodes: int = 1,
) -> Comparison:
    """Of so many machines at once. InvalidValue: no series is long enough for any case."""
    chosen = {name: names.named(name) for name in policies}
    found = Comparison(policies)
    total, done = len(groups) * len(configs) * windows, 0
    for group in groups:
        for config in configs:
            best = _optima(group, config, windows)
            if not len(best):
                have_h = group.up.shape[1] * group.gap_s / 3600
                found.skipped.append(
                    f"{group.name}: {have_h:.0f} h are too short for a deadline of"
                    f" {config.deadline_s / 3600:g} h"
                )
            else:
                cases = zip(cut(group, config, windows), best, strict=True)
                for number, (case, least) in enumerate(cases):
                    _one(found, group.name, case, float(least), number, chosen, run)
                    if OURS in chosen and len(case.zones) == 1:
                        ours = found.sums[config.name, group.name, OURS]
                        ours.predicted += predicted(case, nodes)
                    progress(done + number, total)
            done += windows
    if not found.sums:
        raise InvalidValue(
            "no series is long enough for any case", hint="; ".join(dict.fromkeys(found.skipped))
        )
    return found


def _one(
    found: Comparison,
    series: str,
    case: Case,
    least: float,
    number: int,
    chosen: Mapping[str, Policy],
    run: Simulate | None,
) -> None:
    on_demand = float(case.on_demand * case.config.work_s)
    for name, policy in chosen.items():
        outcome = simulate(case, policy) if run is None else run(case, policy, number)
        # The optimum is of the plain rules; it is a bound for all others as well.
        assert outcome.late or outcome.cost >= least, (
            f"{name} beats perfect foresight in {series}, {case.config.name}, window {number}"
        )
        key = (case.config.name, series, name)
        found.sums.setdefault(key, Sum()).add(outcome, least, on_demand)


def _optima(group: Group, config: Config, windows: int) -> NDArray[np.float64]:
    import numpy as np

    window = config.window(group.gap_s)
    first = starts(group.up.shape[1], window, windows)
    # In parts that fit the memory: the state is zones × windows × slack, the market × ticks.
    slack = (config.deadline_s - config.work_s) // gcd(group.gap_s, config.overhead_s)
    size = max(1, int(MOST_NUMBERS / ((len(group.zones) + 2) * max(slack, window))))
    found = [np.empty(0)]
    for at in range(0, len(first), size):
        parts = [slice(start, start + window) for start in first[at : at + size]]
        up = np.stack([group.up[:, part] for part in parts])
        prices = np.stack([group.prices[:, part] for part in parts])
        found.append(optimum(up, prices, group.on_demand, group.gap_s, config))
    return np.concatenate(found)
