"""The cheapest pool of machines for a traffic by hours, exactly, over everything on the shelf.

A pool is one entry of the shelf: machines of one type in one place with one layout, so many on
demand and on spot in each hour. Its cost is what all hours cost, and what starting costs where an
hour needs more than the one before it (the hours repeat). Some machines may be committed to, where
that was asked for: they are paid in all hours. Of an entry the cheapest pool counts; entries are
compared by that cost with what refusals are worth, as plans of training are. They are tried in
the order of what they weigh at least, until that is more than the best: nothing is left out that
could be better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, isnan
from typing import TYPE_CHECKING

from tradewind.model.plan import weighed_cost
from tradewind.planning.serving.markets import EXACT, Held, enough
from tradewind.planning.serving.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Numbers = NDArray[np.int64]

_ROUNDING = 1e-9  # of a machine: a rate that is a whole number of them needs no further one


@dataclass(frozen=True, slots=True)
class Needs:
    """What every pool must keep to."""

    availability: float
    warm: int
    scale_to_zero: bool


@dataclass(frozen=True, slots=True)
class Pool:
    entry: int  # of the shelf
    rate: float  # requests a second that one machine answers within the targets
    hours: tuple[Held, ...]  # beside those that are committed to
    needed: tuple[int, ...]  # machines, by hour
    committed: int
    cost: float  # micro-dollars a cycle
    starting: float  # of that, for machines that start
    had: float = 1.0  # the chance that the machines of the fullest hour are there
    weighed: float = 0.0  # the cost with what refusals are worth

    @property
    def chance(self) -> float:
        return min(held.chance for held in self.hours)


def machines(rate: float, each: float, replicas: float, needs: Needs) -> int:
    """That must be up for a rate, where one answers `each`."""
    if rate <= 0 and needs.scale_to_zero:
        return 0
    least = ceil(max(needs.warm, 0 if needs.scale_to_zero else 1) / replicas)
    return max(ceil(rate / each - _ROUNDING), least, 1 if rate > 0 else 0)


def best_pool(
    shelf: Shelf, each: Column, hours: Sequence[float], needs: Needs, below: float = inf
) -> Pool | None:
    """`each`: requests a second of one machine, by entry. Only a pool that weighs less than
    `below`, a cycle."""
    import numpy as np

    best: Pool | None = None
    bound = least(shelf, each, hours, needs)
    for i in np.argsort(bound, kind="stable").tolist():
        if not bound[i] < below:
            break
        pool = priced(shelf, i, float(each[i]), hours, needs)
        if pool is None or not pool.cost < below:
            continue
        pool = weighed(shelf, pool)
        if pool.weighed < below:
            best, below = pool, pool.weighed
    return best


def weighed(shelf: Shelf, pool: Pool) -> Pool:
    counts = [pool.committed + held.on_demand + held.spot for held in pool.hours]
    had = shelf.had(pool.entry, max(counts), any(held.spot for held in pool.hours))
    return replace(pool, had=had, weighed=float(weighed_cost(pool.cost, had)))


def least(shelf: Shelf, each: Column, hours: Sequence[float], needs: Needs) -> Column:
    """What an entry weighs at least: the needed machines, each on its cheapest market."""
    import numpy as np

    found = np.full(len(shelf), inf)
    able = np.flatnonzero(each > 0)
    if not len(able):
        return found
    # Thousands of offers are of a few hundred machines: those that answer alike need as many.
    rates, counts = np.unique(np.array(hours), return_counts=True)
    alike = each[able] + 1j * shelf.replicas[able]
    kinds, back = np.unique(alike, return_inverse=True)
    fewest = np.ceil(max(needs.warm, 0 if needs.scale_to_zero else 1) / kinds.imag)
    count = np.zeros(len(kinds))
    for rate, times in zip(rates.tolist(), counts.tolist(), strict=True):
        if rate <= 0 and needs.scale_to_zero:
            continue
        need = np.ceil(rate / kinds.real - _ROUNDING)
        need = np.maximum(np.maximum(need, fewest), 1.0 if rate > 0 else 0.0)
        count += times * need
    cheapest = np.fmin(np.fmin(shelf.steady, shelf.spot), shelf.committed)[able]
    weighs = count[back] * cheapest * shelf.refusals[able]
    found[able] = np.where(np.isnan(weighs), inf, weighs)
    return found


def priced(shelf: Shelf, i: int, each: float, hours: Sequence[float], needs: Needs) -> Pool | None:
    """An entry's cheapest pool, or None where it cannot have enough machines."""
    import numpy as np

    if each <= 0:
        return None
    steady, bound = float(shelf.steady[i]), float(shelf.committed[i])
    taken = float(shelf.spot[i])
    steady_down = 1.0 if isnan(steady) and isnan(bound) else float(shelf.steady_down[i])
    spot_down = 1.0 if isnan(taken) else float(shelf.spot_down[i])
    replicas = float(shelf.replicas[i])
    by_rate = {rate: machines(rate, each, replicas, needs) for rate in set(hours)}
    needed = [by_rate[rate] for rate in hours]
    numbers = sorted(set(needed))
    ways = {
        need: _ways(shelf, i, enough(need, spot_down, steady_down, needs.availability))
        for need in numbers
        if need
    }
    if not all(ways.values()):
        return None
    tried = _commitments(shelf, i, ways.get(max(needed), []))
    different = np.zeros((len(tried), len(numbers)))  # costs without what is committed to
    choices: dict[int, Numbers] = {}
    for need, several in ways.items():
        more = np.maximum(np.array([held.on_demand for held in several]) - tried[:, None], 0)
        spot = np.array([held.spot for held in several])
        with np.errstate(invalid="ignore"):
            paid = np.where(more > 0, more * steady, 0) + np.where(spot > 0, spot * taken, 0)
            missing = (more > shelf.most_steady[i]) | np.isnan(paid)
            missing |= more + tried[:, None] + spot > shelf.most[i]
        paid = np.where(missing, inf, paid)
        choices[need] = paid.argmin(axis=1)
        different[:, numbers.index(need)] = paid.min(axis=1)
    costs = different[:, np.searchsorted(numbers, needed)]
    with np.errstate(invalid="ignore"):
        rises = np.maximum(costs - np.roll(costs, 1, axis=1), 0).sum(axis=1)
    starting = rises * float(shelf.start_h[i])
    paid_for = np.where(tried > 0, tried * bound, 0) * len(hours)
    total = costs.sum(axis=1) + starting + paid_for
    total = np.where(np.isnan(total), inf, total)
    best = int(total.argmin())
    if not total[best] < inf:
        return None
    committed = int(tried[best])
    chosen = {0: Held(0, 0, 1.0)}
    for need, several in ways.items():
        held = several[choices[need][best]]
        chosen[need] = held._replace(on_demand=max(held.on_demand - committed, 0))
    return Pool(
        i, each, tuple(chosen[need] for need in needed), tuple(needed), committed,
        float(total[best]), float(starting[best]),
    )  # fmt: skip


def _ways(shelf: Shelf, i: int, several: Sequence[Held]) -> list[Held]:
    return [held for held in several if held.spot <= shelf.most_spot[i]]


def _commitments(shelf: Shelf, i: int, several: Sequence[Held]) -> Numbers:
    """Numbers of machines to commit to: none, or up to all of the fullest hour."""
    import numpy as np

    if isnan(shelf.committed[i]) or not several:
        return np.zeros(1, dtype=np.int64)
    most = min(max(held.on_demand for held in several), int(shelf.most_committed[i]))
    if most <= EXACT:
        return np.arange(most + 1)
    return np.unique(np.linspace(0, most, EXACT + 1).round().astype(np.int64))
