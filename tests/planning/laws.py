"""What must hold between the answers to two questions, whatever they are about.

The first question allows less than the second, or asks for more of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from tradewind.model.plan import Plan, Plans

CENT = 10_000  # micro-dollars: what is printed is rounded to them
ALLOWED: dict[str, tuple[Any, ...]] = {
    "markets": (("spot",), ("on_demand",), ("spot", "on_demand"), None),
    "max_nodes": (1, 2, 3, 4, 7, 16, None, 20, 33, 64),
    "max_accelerators": (1, 4, 8, 20, None),
    "confidence": (0.99, 0.95, None, 0.8, 0.6),
    "within_s": tuple(round(3600 * hours) for hours in (4, 7, 24, 25, 60, 100, 400)),
    "budget": (5_000_000, 40_000_000, 900_000_000, None),
}
"""By limit, each value allowing no less than the one before; of markets, the first two have nothing
to do with each other."""


def wider(name: str, value: Any) -> list[Any]:
    values = ALLOWED[name]
    at = values.index(value)
    return [more for more in values[at + 1 :] if (value, more) != (("spot",), ("on_demand",))]


KEPT_LONGER = 0.03
"""With more time, spot with on demand waits longer for spot, and what is kept meanwhile costs more:
of the money, where a deadline is later (docs/design/003-plan.md)."""


def no_dearer(less: Plans, more: Plans, slack: float = 0.0) -> None:
    """Allowing more never costs more."""
    if less.best is None:
        return
    assert more.best is not None, "what was right is still right"
    assert more.best.expected <= less.best.expected * (1 + slack + 1e-9) + 2
    assert more.best.weighed <= less.best.weighed * (1 + slack + 1e-9) + 2
    if less.best.had >= 0.8:
        assert more.best.cost <= 1.1 * less.best.cost + CENT


def in_order(found: Plans) -> None:
    """What holds of the tables of one answer."""
    limits = found.workload.limits
    for above, below in _pairs(found.plans):
        assert not dominated(above, below)
        assert above.weighed <= below.weighed + 1
    for above, below in _pairs(found.front):
        assert above.hours < below.hours
        assert above.cost > below.cost
    best = found.best
    if best is None:
        return
    assert best.expected == min(plan.expected for plan in found.plans)
    for plan in found.front:
        if plan.hours < best.hours:
            surely = plan.within_budget >= limits.sure
            assert plan.cost > best.cost or not surely, "what is faster and cheaper would be it"
            assert plan.chance >= limits.sure or found.deadline_hours is None
    costs = [one.plan.expected for one in found.later if one.plan]
    for sooner, later in pairwise(costs):
        assert later <= sooner * (1 + KEPT_LONGER) + 2
    late = [one.plan is not None for one in found.later]
    assert late == sorted(late)
    sure = [one.plan.expected for one in found.surer if one.plan]
    assert sure == sorted(sure)
    unsure = [one.plan is None for one in found.surer]
    assert unsure == sorted(unsure)


def dominated(one: Plan, other: Plan) -> bool:
    """Dearer, slower and no surer."""
    return (
        one.cost > other.cost
        and one.hours > other.hours
        and one.had <= other.had
        and one.chance <= other.chance
    )


def _pairs(plans: tuple[Plan, ...]) -> Iterator[tuple[Plan, Plan]]:
    for at, above in enumerate(plans):
        for below in plans[at + 1 :]:
            yield above, below
