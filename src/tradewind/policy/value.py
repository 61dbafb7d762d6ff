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
from functools import lru_cache
from math import ceil, exp, log
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
PRICE_STEP = 0.1
"""Tables are made for prices apart by this factor, in the logarithm; between them, cost follows
from the hours on spot."""
OVERDRAFT = 5.0
"""How dear a second of slack is that is not there. Never used: it only bends the values near the
edge smoothly, where the safety net decides."""
NOTHING, SPOT, ON_DEMAND = 0, 1, 2


class Values:
    """Expected cost after a choice, of everything that follows."""

    def __init__(self, step_s: float, price: float, slack: Column, kept: list[Column]) -> None:
        self.step_s, self.price, self.slack, self.kept = step_s, price, slack, kept
        self.slacks = [float(s) for s in slack]

    def curves(self, left_s: float, up: bool, age: int, belief: object, price: float) -> Column:
        """Cost by (what is held, point of slack) with so much time left after the choice."""
        at = min(round(max(left_s, 0.0) / (self.step_s * KEEP)), len(self.kept) - 1)
        found: Column = self.kept[at][int(up), age] @ belief
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
        _rounded(price, PRICE_STEP),
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

    slacks = _slacks(max(slack_s, 2 * step_s))
    slack = np.array(slacks)
    number = regimes().number
    ages = len(regimes().model.ages_s)
    best = _Step(slack, step_s, spot_start_s, safe_start_s, price)
    ahead = _Ahead(step_s)
    costs = np.zeros((3, 2, ages, len(slacks), number), np.float32)
    kept = []
    for n in range(steps + 1):
        now = best.ended(best(costs, n * step_s) if n else costs, n * step_s)
        costs = ahead(now)
        if n % KEEP == 0:
            kept.append(np.ascontiguousarray(costs.transpose(1, 2, 0, 3, 4)))
    return Values(step_s, price, slack, kept)


class _Step:
    """The cheapest choice in every state, a step before what is known already."""

    def __init__(
        self, slack: Column, step_s: float, spot_start_s: float, safe_start_s: float, price: float
    ) -> None:
        import numpy as np

        self.slack, self.safe_start_s = slack, safe_start_s
        self.spot_start_s, self.price = spot_start_s, price
        self.waited = _less(slack, step_s)
        self.to_spot = _less(slack, spot_start_s)
        self.to_safe = _less(slack, safe_start_s)
        self.spot_cost = np.float32(price * step_s / HOUR_S)
        self.safe_cost = np.float32(step_s / HOUR_S)
        self.after = {
            "idle": slack - step_s,
            "spot": slack,
            "to spot": slack - spot_start_s,
            "to safe": slack,
        }

    def __call__(self, later: Column, left_s: float) -> Column:
        import numpy as np

        idle = self._net("idle", self.waited(later[NOTHING]), left_s)
        to_safe = self._net("to safe", self.to_safe(later[ON_DEMAND]) + self.safe_cost, left_s)
        stay_safe = later[ON_DEMAND] + self.safe_cost
        stay = self._net("spot", later[SPOT, 1] + self.spot_cost, left_s)
        to_spot = self._net("to spot", self.to_spot(later[SPOT, 1]) + self.spot_cost, left_s)
        now = np.empty_like(later)
        now[NOTHING] = now[SPOT] = np.minimum(idle, to_safe)
        now[ON_DEMAND] = np.minimum(idle, stay_safe)
        for held, cost in ((NOTHING, to_spot), (SPOT, stay), (ON_DEMAND, to_spot)):
            np.minimum(now[held, 1], cost, out=now[held, 1])
        return now

    def ended(self, costs: Column, left_s: float) -> Column:
        """Where less than no work is left, it is given back at spot's price. So cost is a smooth
        function right through the end of the work, and can be interpolated there."""
        done = left_s - self.slack <= 1e-6
        work_h = ((left_s - self.slack[done]) / HOUR_S)[:, None]
        costs[SPOT][..., done, :] = costs[ON_DEMAND][..., done, :] = self.price * work_h
        costs[NOTHING][..., done, :] = self.price * (work_h + self.spot_start_s / HOUR_S)
        return costs

    def _net(self, choice: str, cost: Column, left_s: float) -> Column:
        """Where too little slack remains for on-demand, no less than on-demand and a fine."""
        import numpy as np

        missing = self.safe_start_s - self.after[choice]
        fine = left_s - self.slack + self.safe_start_s + OVERDRAFT * missing
        short = (missing > 1e-6)[:, None]
        return np.where(short, np.maximum(cost, (fine / HOUR_S)[:, None]), cost).astype(np.float32)


class _Ahead:
    """What is expected before the market moves, of the costs after it has."""

    def __init__(self, step_s: float) -> None:
        import numpy as np

        now = regimes()
        change = 1 - np.exp(-now.hazards * step_s / HOUR_S)
        self.change = change.transpose(1, 2, 0).astype(np.float32)[:, :, None, :]
        self.moves = now.moved(step_s / HOUR_S).T.astype(np.float32)
        older = np.minimum(step_s / np.diff(now.model.ages_s), 1.0)
        self.older = older.astype(np.float32)[:, None, None]

    def __call__(self, costs: Column) -> Column:
        after = (costs.reshape(-1, costs.shape[-1]) @ self.moves).reshape(costs.shape)
        going_on = after.copy()
        going_on[:, :, :-1] += self.older * (after[:, :, 1:] - after[:, :, :-1])
        going_on += self.change * (after[:, ::-1, :1] - going_on)
        return going_on


def _less(slack: Column, by_s: float) -> Callable[[Column], Column]:
    """Costs with so much less slack, along the last axis but one; at its end, those of none."""
    import numpy as np

    where = np.clip(np.searchsorted(slack, slack - by_s, side="right") - 1, 0, len(slack) - 2)
    between = (slack - by_s - slack[where]) / (slack[where + 1] - slack[where])
    share = np.maximum(between, 0).astype(np.float32)[:, None]

    def less(costs: Column) -> Column:
        found: Column = (1 - share) * costs[..., where, :] + share * costs[..., where + 1, :]
        return found

    return less
