"""Which candidates keep the limits, in which order they are asked for, and which are faster for
more. Pure.

They are asked for in the order of the cost with what refusals are worth (`model/plan.py`): that
order is expected to cost least in all (`planning/asking.py`), and machines that are hardly to be
had must be cheaper for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.model import Limits
from tradewind.planning.goods import MODES, ON_DEMAND, SPOT

if TYPE_CHECKING:
    from tradewind.planning.goods import Column, Flags, Goods, Numbers
    from tradewind.planning.weigh import Candidates

REFUSED_H = 1.0
"""What a refusal takes, where it is about time: so long it is worth no asking again."""
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

    in_time = (found.hours <= deadline_h) & (found.chance >= limits.sure)
    affordable = np.full(len(found), True)
    if limits.budget is not None:
        # With half of the money that it is expected to cost nobody begins, however unsure that is.
        affordable = (found.cost <= limits.budget) & (found.within(limits.budget) >= limits.sure)
    clean = np.full(len(found), True)
    if limits.carbon_kg is not None:
        clean = found.co2_kg <= limits.carbon_kg
    return Kept(in_time, affordable, clean)


def ranked(found: Candidates, right: Flags) -> Numbers:
    """Those that are right, the cheapest first by the weighed cost; of two alike, the faster, and
    then by name."""
    import numpy as np

    at = np.flatnonzero(right)
    keys = (found.rank[at], found.hours[at], found.weighed[at])
    order: Numbers = at[np.lexsort(keys)]
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


def with_the_safe(found: Candidates, goods: Goods, order: Numbers, few: list[int]) -> list[int]:
    """Where the first is on spot alone, its machines on demand too, if they keep the limits: a run
    must have something to keep its deadline with."""
    if not few or found.market[few[0]] != SPOT:
        return few
    alike = goods.types[found.good[order]] == goods.types[found.good[few[0]]]
    alike &= (found.market[order] == ON_DEMAND) & (found.nodes[order] == found.nodes[few[0]])
    safe = order[alike][:1].tolist()
    place = {i: at for at, i in enumerate(order.tolist())}
    return sorted([*few, *safe], key=place.__getitem__)


def front(found: Candidates, kept: Kept, deadline_h: float) -> list[int]:
    """What time costs: the ways, the fastest first, that nothing else beats in both time and money
    when the waits and the money of refusals are counted, nor without them. Those that would be in
    time are as sure of it as is wanted, and all are clean enough and very likely fit."""
    import numpy as np

    sure = kept.deadline | (found.hours > deadline_h)
    at = np.flatnonzero(kept.carbon & sure)
    waited = found.hours[at] + REFUSED_H * (1 / found.had[at] - 1)
    few = np.argsort(waited)
    few = few[_least_so_far(found.weighed[at[few]], alike=True)]  # and then all ties among them
    few = few[np.lexsort((found.rank[at[few]], found.weighed[at[few]], waited[few]))]
    few = few[_least_so_far(found.weighed[at[few]])]
    chosen: list[int] = []
    for i in at[few[::-1]].tolist():  # from the cheapest
        last = chosen[-1] if chosen else None
        if last is None or (
            found.hours[i] < found.hours[last] and found.cost[i] > found.cost[last]
        ):
            chosen.append(i)
    return chosen[::-1]


def _least_so_far(values: Column, *, alike: bool = False) -> Flags:
    """Which are less than all before, or `alike` no more."""
    import numpy as np

    before = np.minimum.accumulate(np.concatenate([[np.inf], values[:-1]]))
    found: Flags = values <= before if alike else values < before
    return found


def for_a_closer_look(found: Candidates, goods: Goods, sure: Flags) -> list[int]:
    """The cheapest of every type, number and market of machines, in the layout that is `sure` if
    any is. If they are too many, half of them are the cheapest of all and half are spread over the
    rest."""
    import numpy as np

    order = np.lexsort((found.rank, found.hours, found.cost, ~sure))
    kind = goods.types[found.good[order]] * (len(MODES) + 1) + found.market[order]
    key = kind * 1000 + found.nodes[order].astype(np.int64)
    _, first = np.unique(key, return_index=True)
    chosen = order[first]
    chosen = chosen[np.lexsort((found.rank[chosen], found.hours[chosen], found.cost[chosen]))]
    if len(chosen) > _MANY:
        half = _MANY // 2
        spread = np.linspace(half, len(chosen) - 1, half).astype(np.int64)
        chosen = chosen[np.concatenate([np.arange(half), np.unique(spread)])]
    listed: list[int] = chosen.tolist()
    return listed
