"""What finishing is expected to cost, by dynamic programming over time, slack and the market. Pure.

One zone (or several that are watched as one) with its regimes, an on-demand market that is always
there, and a restart that takes time. The state is the time left, the slack (time left less work
left), what is held, whether the zone is up, the age of that spell, and the regime. Going backwards
from the deadline, each step takes the cheapest of idling (slack shrinks by the step), spot and
on-demand (slack shrinks by a restart, if that is not held already). The price of on-demand is 1.

The regime is taken as known one step ahead; the belief weighs its values. Nothing that we choose
changes what we see, so that little is lost.

A step is ten minutes however often the question is asked: comparing choices over much shorter times
would compare errors of interpolation. Slack stands at points that get sparser as it grows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from math import ceil, exp, floor, log
from typing import TYPE_CHECKING, Any

from tradewind.policy.regimes import HOUR_S, regimes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.floating[Any]]

STEP_S = 600.0
FINE_S, GROWTH = 150.0, 0.08  # between points of slack
KEEP = 3  # of so many steps one is kept
MOST_STEPS = 2000
NODES = 4
PRICE_STEP = 0.2
"""Tables are made for prices apart by this factor, in the logarithm; between them, cost follows
from the hours on spot."""
OVERDRAFT = 5.0
"""How dear a second of slack is that is not there. Never used: it only bends the values near the
edge smoothly, where the safety net decides."""
NOTHING, SPOT, ON_DEMAND = 0, 1, 2

# Costs stand by slack, kind, age and regime. Kinds: nothing held (down, up), on-demand held (down,
# up), spot held. So all that a step does to slack, or to regimes, is one product of matrices.
KINDS = 5
IDLE, SAFE, HELD = slice(0, 2), slice(2, 4), slice(4, 5)
KINDS_OF = ([0, 0, 2], [1, 4, 3])
"""Those of nothing, spot and on-demand, where there is no capacity, and where there is."""


class _Few:
    """Cost is smooth in the levels of a regime: it is worked out for a few of them, and follows for
    the rest by a polynomial through those."""

    def __init__(self, levels: tuple[float, ...]) -> None:
        import numpy as np

        side = len(levels)
        chosen = sorted({round(n * (side - 1) / (NODES - 1)) for n in range(NODES)})
        weights = np.ones((side, len(chosen)))
        for (n, level), (m, node) in product(enumerate(levels), enumerate(chosen)):
            for other in chosen:
                if other != node:
                    weights[n, m] *= (level - levels[other]) / (levels[node] - levels[other])
        self.at = [a * side + b for a, b in product(chosen, repeat=2)]
        self.spread = np.kron(weights, weights)
        """Regime × few: what it is made of."""


@cache
def few() -> _Few:
    return _Few(regimes().model.levels)


class Values:
    """Expected cost after a choice, of everything that follows."""

    def __init__(self, step_s: float, price: float, slack: Column, kept: list[Column]) -> None:
        self.step_s, self.price, self.slack, self.kept = step_s, price, slack, kept
        self.slacks = [float(s) for s in slack]

    def curves(self, left_s: float, up: bool, age: int, belief: Column, price: float) -> Column:
        """Cost by (what is held, point of slack) with so much time left after the choice."""
        at = min(round(max(left_s, 0.0) / (self.step_s * KEEP)), len(self.kept) - 1)
        found: Column = (self.kept[at][:, KINDS_OF[up], age] @ (belief @ few().spread)).T
        if price != self.price:
            # What is not paid at on-demand's price of 1 was spent on spot.
            work_h = (at * KEEP * self.step_s - self.slack) / HOUR_S
            spot_h = (work_h - found).clip(0) / (1 - self.price)
            found = found + (price - self.price) * spot_h
        return found

    def at(self, curve: Column, slack_s: float) -> float:
        slacks = self.slacks
        n = min(max(bisect_right(slacks, slack_s) - 1, 0), len(slacks) - 2)
        share = (slack_s - slacks[n]) / (slacks[n + 1] - slacks[n])
        share = min(max(share, 0.0), 1.0)
        low, high = float(curve[n]), float(curve[n + 1])
        return low + share * (high - low)


def values(
    horizon_s: float,
    slack_s: float,
    spot_start_s: float,
    safe_start_s: float,
    price: float,
    tick_s: float,
) -> Values:
    """For a spot price relative to on-demand, at most so much time and so much slack. Arguments are
    rounded, so that a run whose figures move a little asks the same table all the time."""
    return _rounding(
        horizon_s, slack_s, spot_start_s, safe_start_s, min(max(price, 0.02), 0.95), tick_s
    )


@lru_cache(maxsize=1024)
def _rounding(
    horizon_s: float,
    slack_s: float,
    spot_start_s: float,
    safe_start_s: float,
    price: float,
    tick_s: float,
) -> Values:
    step_s = max(STEP_S, tick_s, horizon_s / MOST_STEPS)
    return _values(
        ceil(horizon_s / step_s / 12) * 12,
        step_s,
        ceil(slack_s / HOUR_S) * HOUR_S,
        _rounded(spot_start_s, 0.05),
        _rounded(safe_start_s, 0.05),
        exp((floor(log(price) / PRICE_STEP) + 0.5) * PRICE_STEP),
    )


def _rounded(value: float, step: float) -> float:
    return exp(round(log(value) / step) * step) if value > 0 else 0.0


def _slacks(most_s: float) -> list[float]:
    points = [0.0]
    while points[-1] < most_s:
        points.append(points[-1] + max(FINE_S, GROWTH * points[-1]))
    return [*points, points[-1] + FINE_S] if len(points) == 1 else points


@lru_cache(maxsize=24)
def _values(
    steps: int,
    step_s: float,
    slack_s: float,
    spot_start_s: float,
    safe_start_s: float,
    price: float,
) -> Values:
    import numpy as np

    case = _Case(np.array(_slacks(max(slack_s, 2 * step_s))), spot_start_s, safe_start_s, price)
    shape = len(case.slack), KINDS, len(regimes().model.ages_s), len(few().at)
    costs = case.ended(np.empty(shape, np.float32), 0.0)
    kept = [costs.copy()]
    step = _Step(case, step_s)
    for n in range(1, steps + 1):
        step(costs, n * step_s)
        if n % KEEP == 0:
            kept.append(costs.copy())
    return Values(step_s, price, case.slack, kept)


class _Case:
    """What a table is made for."""

    def __init__(
        self, slack: Column, spot_start_s: float, safe_start_s: float, price: float
    ) -> None:
        self.slack, self.price = slack, price
        self.spot_start_s, self.safe_start_s = spot_start_s, safe_start_s

    def working(self, left_s: float) -> int:
        """So many points of slack leave work to do; they come first."""
        return int((self.slack < left_s - 1e-6).sum())

    def ended(self, costs: Column, left_s: float) -> Column:
        """Where less than no work is left, it is given back at spot's price. So cost is a smooth
        function right through the end of the work, and can be interpolated there."""
        work = self.working(left_s)
        work_h = ((left_s - self.slack[work:]) / HOUR_S)[:, None, None, None]
        costs[work:, SAFE.start :] = self.price * work_h
        costs[work:, IDLE] = self.price * (work_h + self.spot_start_s / HOUR_S)
        return costs


class _Step:
    """Costs a step earlier, in place: the cheapest choice in every state, then what is expected of
    that before the market moves."""

    def __init__(self, case: _Case, step_s: float) -> None:
        import numpy as np

        self.case, slack = case, case.slack
        self.waited = _less(slack, step_s)
        self.to_spot = _less(slack, case.spot_start_s)
        self.to_safe = _less(slack, case.safe_start_s)
        self.spot_cost = np.float32(case.price * step_s / HOUR_S)
        self.safe_cost = np.float32(step_s / HOUR_S)
        self.idle_short = _Short(case, step_s)
        self.short = _Short(case, 0.0)
        self.spot_short = _Short(case, case.spot_start_s)
        self.ahead = _Ahead(step_s)

    def __call__(self, costs: Column, left_s: float) -> None:
        work = self.case.working(left_s)
        if work:
            self._choose(costs[:work], left_s)
            self.ahead(costs[:work])
        self.case.ended(costs, left_s)

    def _choose(self, later: Column, left_s: float) -> None:
        import numpy as np

        idle = self.idle_short(self.waited(later[:, IDLE]), left_s)
        safe = self.to_safe(later[:, SAFE])
        safe += self.safe_cost
        self.short(safe, left_s)
        to_spot = self.to_spot(later[:, HELD])
        to_spot += self.spot_cost
        self.spot_short(to_spot, left_s)
        later[:, HELD] += self.spot_cost
        self.short(later[:, HELD], left_s)
        later[:, SAFE] += self.safe_cost
        np.minimum(later[:, SAFE], idle, out=later[:, SAFE])
        np.minimum(idle, safe, out=later[:, IDLE])
        np.minimum(later[:, HELD], later[:, 1:2], out=later[:, HELD])
        np.minimum(later[:, 1:4:2], to_spot, out=later[:, 1:4:2])


class _Short:
    """Where too little slack remains for on-demand, no less than on-demand and a fine."""

    def __init__(self, case: _Case, used_s: float) -> None:
        missing = case.safe_start_s - (case.slack - used_s)
        rows = int((missing > 1e-6).sum())
        fine = case.safe_start_s - case.slack[:rows] + OVERDRAFT * missing[:rows]
        self.fine = (fine / HOUR_S).astype("float32")[:, None, None, None]

    def __call__(self, costs: Column, left_s: float) -> Column:
        import numpy as np

        fine = self.fine[: len(costs)] + np.float32(left_s / HOUR_S)
        np.maximum(costs[: len(fine)], fine, out=costs[: len(fine)])
        return costs


class _Ahead:
    """What is expected before the market moves, of the costs after it has; in place."""

    def __init__(self, step_s: float) -> None:
        import numpy as np

        now, nodes = regimes(), few()
        change = 1 - np.exp(-now.hazards[nodes.at] * step_s / HOUR_S)
        change = change.transpose(1, 2, 0).astype(np.float32)
        self.change = np.ascontiguousarray(change[[0, 1, 0, 1, 1]])  # by kind, age and regime
        moves = now.moved(step_s / HOUR_S)[nodes.at] @ nodes.spread
        self.moves = np.ascontiguousarray(moves.T.astype(np.float32))
        older = np.minimum(step_s / np.diff(now.model.ages_s), 1.0)
        self.older = np.repeat(older.astype(np.float32)[:, None], len(nodes.at), axis=1)

    def __call__(self, costs: Column) -> None:
        import numpy as np

        # Row by row: small products are not worth a second thread, which waits on a busy machine.
        rows, _, _, number = costs.shape
        after = (costs.reshape(rows, -1, number) @ self.moves).reshape(costs.shape)
        # After a change: down becomes up and up down, and who held spot holds nothing.
        changed = after[:, [1, 0, 3, 2, 0], :1]
        older = after[:, :, 1:] - after[:, :, :-1]
        older *= self.older
        after[:, :, :-1] += older
        np.subtract(changed, after, out=costs)
        costs *= self.change
        costs += after


def _less(slack: Column, by_s: float) -> Callable[[Column], Column]:
    """Costs with so much less slack, along the first axis; at its end, those of none."""
    import numpy as np

    where = np.clip(np.searchsorted(slack, slack - by_s, side="right") - 1, 0, len(slack) - 2)
    between = (slack - by_s - slack[where]) / (slack[where + 1] - slack[where])
    share = np.maximum(between, 0).astype(np.float32)[:, None, None, None]

    def less(costs: Column) -> Column:
        found: Column = costs[where[: len(costs)]]
        more = costs[np.minimum(where[: len(costs)] + 1, len(costs) - 1)]
        more -= found
        more *= share[: len(costs)]
        found += more
        return found

    return less
