"""Where nothing meets the targets: what comes nearest, and which single change would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from tradewind.base.units import format_money
from tradewind.model import Workload
from tradewind.model.serve import Serve
from tradewind.model.serveplan import Nearest, ServingPlan
from tradewind.planning.serving.layouts import Layouts, reached
from tradewind.planning.serving.search import Solution, sooner
from tradewind.planning.serving.traffic import Traffic

_ROOM = (1.25, 1.5, 2.0, 4.0)
"""Times what a request alone reaches: a replica must answer more than one, and the fastest layout
may not be for sale in the number that it would need."""
_MIDDLE = 0.5
_LIFTED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("with any market", {"markets": None}),
    ("with any region", {"regions": None}),
    ("with any provider", {"providers": None}),
    ("with any accelerator", {"accelerators": None}),
    ("with nothing excluded", {"exclude": None}),
    ("with more machines", {"max_nodes": None, "max_accelerators": None}),
)


class Planning(Protocol):
    """What is asked of a planner that has found nothing."""

    workload: Workload
    serve: Serve
    layouts: Layouts
    traffic: Traffic

    def solved(self) -> Solution | None: ...

    def simple(
        self, asked: Traffic, targets: Mapping[str, tuple[float, float]]
    ) -> Solution | None: ...

    def nearest_s(self) -> float:
        """To the users who are farthest from any machine, there and back."""

    def best_with(self, **change: Any) -> ServingPlan | None:
        """Of a workload with this change."""


def found(planner: Planning) -> Nearest | None:
    changes = _changes(planner)
    if not planner.layouts.layouts:
        return Nearest(accelerator="", tp=0, weights="", reached_ms={}, would_do=tuple(changes))
    targets = planner.serve.targets
    table = planner.layouts.tables(planner.traffic.mix)
    way = planner.nearest_s()
    at_server = reached(table, planner.traffic.mix, sooner(targets, way))
    values = [
        {name: seconds + (0 if name == "tpot" else way) for name, seconds in one.items()}
        for one in at_server
    ]
    over = [max(one[name] / targets[name][0] for name in targets) for one in values]
    at = min(range(len(over)), key=over.__getitem__)
    layout = planner.layouts.layouts[at]
    if over[at] > 1:
        changes = [*_looser(planner, values[at]), *changes]
    return Nearest(
        accelerator=layout.accelerator, tp=layout.tp, weights=layout.weights,
        reached_ms={name: 1e3 * seconds for name, seconds in values[at].items()},
        would_do=tuple(changes),
    )  # fmt: skip


def _looser(planner: Planning, reached: dict[str, float]) -> list[str]:
    """The targets that are missed, all of them looser: with one that is still missed there is no
    plan."""
    targets, asked = planner.serve.targets, planner.traffic
    missed = [name for name, (seconds, _) in targets.items() if reached[name] > seconds]
    for times in _ROOM:
        looser = {name: (reached[name] * times, targets[name][1]) for name in missed}
        solved = planner.simple(asked, targets | looser)
        if solved is not None:
            cost = format_money(round(solved.cost * asked.months), digits=0)
            words = " and ".join(f"{name} {1e3 * looser[name][0]:,.0f} ms" for name in missed)
            return [f"with {words}: {cost} a month"]
    return []


def _changes(planner: Planning) -> list[str]:
    made = []
    limits, serve = planner.workload.limits, planner.serve
    budget = limits.budget
    if budget is not None:
        solved = planner.solved()
        if solved is not None:
            cost = format_money(round(solved.cost * planner.traffic.months), digits=0)
            made.append(f"with {cost} a month instead of {format_money(budget, digits=0)}")
            return made
    for words, change in _LIFTED:
        if all(getattr(limits, name) is None for name in change):
            continue
        _tried(planner, words, {"limits": replace(limits, **change)}, made)
    if serve.residency is not None:
        _tried(planner, "with any residency", {"serve": replace(serve, residency=None)}, made)
    if serve.users is not None:
        _tried(planner, "with users who are near", {"serve": replace(serve, users=None)}, made)
    if serve.quantise is None:
        more = replace(serve, quantise=("fp8", "fp4", "awq"))
        _tried(planner, "with quantise: [fp8, fp4, awq]", {"serve": more}, made)
    if serve.weights is not None:
        _tried(planner, "with weights of 16 bits", {"serve": replace(serve, weights=None)}, made)
    if serve.engine is not None:
        _tried(planner, "with the usual engine", {"serve": replace(serve, engine=None)}, made)
    if limits.margin > _MIDDLE:
        words = "with limits.confidence 50%, which is without a margin for slow machines"
        _tried(planner, words, {"limits": replace(limits, confidence=_MIDDLE)}, made)
    if serve.tp is not None:
        _tried(planner, "with any tp", {"serve": replace(serve, tp=None)}, made)
    return made


def _tried(planner: Planning, words: str, change: dict[str, Any], made: list[str]) -> None:
    best = planner.best_with(**change)
    if best is not None:
        made.append(f"{words}: {format_money(best.cost, digits=0)} a month")
