"""Which candidates keep the limits, which is cheapest, and which limit stands in the way. Pure.

Cheapest is by the cost with what refusals are worth (`model/plan.py`): machines that are hardly to
be had must be cheaper for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.model import Limits

if TYPE_CHECKING:
    from tradewind.planning.goods import Flags, Goods, Numbers
    from tradewind.planning.weigh import Candidates

_MANY = 400  # candidates that are kept for a closer look


@dataclass(slots=True)
class Kept:
    """Which candidates keep which limit."""

    deadline: Flags
    budget: Flags
    carbon: Flags

    @property
    def all(self) -> Flags:
        return self.deadline & self.budget & self.carbon


def kept(found: Candidates, limits: Limits, deadline_h: float) -> Kept:
    import numpy as np

    in_time = np.full(len(found), True)
    if np.isfinite(deadline_h):
        in_time = (found.hours <= deadline_h) & (found.chance >= limits.confidence)
    affordable = np.full(len(found), True)
    if limits.budget is not None:
        affordable = found.cost <= limits.budget
    clean = np.full(len(found), True)
    if limits.carbon_kg is not None:
        clean = found.co2_kg <= limits.carbon_kg
    return Kept(in_time, affordable, clean)


def ranked(found: Candidates, right: Flags) -> Numbers:
    """Those that are right, the cheapest first by the weighed cost; of two alike, the faster."""
    import numpy as np

    at = np.flatnonzero(right)
    order: Numbers = at[np.lexsort((found.hours[at], found.weighed[at]))]
    return order


def of_other_kinds(found: Candidates, goods: Goods, order: Numbers, most: int) -> list[int]:
    """The first few, each of another type of machine."""
    seen: set[int] = set()
    chosen: list[int] = []
    for i in order.tolist():
        kind = int(goods.types[found.good[i]])
        if kind not in seen:
            seen.add(kind)
            chosen.append(i)
        if len(chosen) == most:
            break
    return chosen


def front(found: Candidates, clean: Flags) -> list[int]:
    """Of those that are clean enough, all that nothing else beats in both time and money, the
    fastest first."""
    import numpy as np

    order = np.lexsort((found.cost, found.hours))
    order = order[clean[order]]
    cost = found.cost[order]
    best_before = np.minimum.accumulate(np.concatenate([[np.inf], cost[:-1]]))
    chosen: list[int] = order[cost < best_before].tolist()
    return chosen


def for_a_closer_look(found: Candidates, goods: Goods) -> list[int]:
    """The cheapest of every type, number and market of machines. If they are too many, half of them
    are the cheapest of all and half are spread over the rest."""
    import numpy as np

    order = np.lexsort((found.hours, found.cost))
    kind = goods.types[found.good[order]] * 8 + found.mode[order]
    key = kind * 1000 + found.nodes[order].astype(np.int64)
    _, first = np.unique(key, return_index=True)
    chosen = order[np.sort(first)]
    if len(chosen) > _MANY:
        half = _MANY // 2
        spread = np.linspace(half, len(chosen) - 1, half).astype(np.int64)
        chosen = chosen[np.concatenate([np.arange(half), np.unique(spread)])]
    listed: list[int] = chosen.tolist()
    return listed
