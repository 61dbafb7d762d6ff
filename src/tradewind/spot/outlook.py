"""What our policy expects of the cases on a grid, from its own tables: the planner's outlook.

A case begins with nothing held. What is expected then is the cheapest of idling, spot and on-demand
for a step and of what follows, as `policy/expected.py` weighs them in a single zone. A table knows
all lengths and slacks up to its horizon, all beliefs, and so all sizes of gangs: one is made for
each restart, price and horizon. It takes some minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import exp
from typing import TYPE_CHECKING

from tradewind.policy import spot, value
from tradewind.policy.outlook import UNIT, Outlook, learned_digest
from tradewind.policy.regimes import HOUR_S
from tradewind.policy.value import NOTHING, ON_DEMAND, PRICE_STEP, SPOT, Values, values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

WORK_H = (0.5, 1.25, 3.0, 8.0, 20.0, 50.0, 125.0, 300.0)
SLACK = (0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.7, 1.2, 2.0, 3.0)
RESTART_H = (0.02, 0.06, 0.18, 0.5, 1.5, 4.0)
MACHINES = (1, 4, 16, 64)
# Those that tables are made for: no table has to answer for another price than its own.
PRICES = tuple(exp((n + 0.5) * PRICE_STEP) for n in (-12, -9, -7, -5, -4, -3, -2, -1))
HORIZONS = (WORK_H[:6], WORK_H[6:7], WORK_H[7:])
"""Long horizons have long steps: work is grouped by the horizon that does for it."""


def make(made_at: str, progress: Callable[[int, int], None] = lambda done, total: None) -> Outlook:
    import numpy as np

    shape = tuple(map(len, (MACHINES, RESTART_H, WORK_H, SLACK, PRICES)))
    costs = np.ones((2, *shape))
    jobs = list(product(range(len(RESTART_H)), range(len(PRICES)), HORIZONS))
    for done, (r, p, works) in enumerate(jobs):
        progress(done, len(jobs))
        table = _table(works[-1], RESTART_H[r], PRICES[p])
        for (m, machines), work_h in product(enumerate(MACHINES), works):
            w = WORK_H.index(work_h)
            for up in (True, False):
                for s, slack in enumerate(SLACK[1:], start=1):
                    time_h = work_h * (1 + slack) + RESTART_H[r]
                    found = cost_h(table, work_h, time_h, RESTART_H[r], up, machines)
                    costs[int(not up), m, r, w, s, p] = found / (work_h + RESTART_H[r])
    costs = concave(_orderly(costs))
    return Outlook(
        format=1,
        made_at=made_at,
        learned=learned_digest(),
        work_h=WORK_H,
        slack=SLACK,
        restart_h=RESTART_H,
        machines=MACHINES,
        prices=tuple(round(price, 6) for price in PRICES),
        costs=tuple(np.rint(costs.ravel() * UNIT).astype(int).tolist()),
    )


def _table(work_h: float, restart_h: float, price: float) -> Values:
    slack_h = SLACK[-1] * work_h
    restart_s = restart_h * HOUR_S
    # Up to 200 MB each, and none is asked twice: what is remembered of others is forgotten.
    value.forget()
    horizon_s = (work_h + slack_h) * HOUR_S + restart_s
    return values(horizon_s, slack_h * HOUR_S, restart_s, restart_s, price, 0.0)


def cost_h(
    table: Values, work_h: float, time_h: float, restart_h: float, up: bool, machines: int
) -> float:
    """In hours on-demand, at the price of the table, before anything is held."""
    restart_s, step_s = restart_h * HOUR_S, table.step_s
    slack_s = (time_h - work_h) * HOUR_S
    step_h, price = step_s / HOUR_S, table.price
    after = _After(table, time_h * HOUR_S - step_s, up, spot.believed(machines, 1 if up else -1))
    found = [work_h + restart_h, step_h + after(ON_DEMAND, slack_s - restart_s)]
    if slack_s - step_s >= restart_s:
        found.append(after(NOTHING, slack_s - step_s))
    if up and slack_s - min(step_s, restart_s) >= restart_s:
        found.append(price * step_h + after(SPOT, slack_s - restart_s))
    return min(found)


class _After:
    """What follows with so much time left. Tables keep one step of a few: between those, cost is
    taken to be linear, which matters where the work takes no more than an hour or two."""

    def __init__(self, table: Values, left_s: float, up: bool, belief: Column) -> None:
        low_s, high_s = table.around(left_s)
        self.at, self.share = table.points.at, (left_s - low_s) / max(high_s - low_s, 1.0)
        self.curves = [table.curves(s, up, 0, belief, table.price) for s in (low_s, high_s)]

    def __call__(self, held: int, slack_s: float) -> float:
        sooner, later = (self.at(curves[held], slack_s) for curves in self.curves)
        return sooner + self.share * (later - sooner)


def _orderly(costs: Column) -> Column:
    """Within what is possible; slack never makes it dearer, nor a longer restart or more machines
    cheaper. Tables are coarse where a start takes longer than the work: the dearer is believed."""
    import numpy as np

    found = np.minimum.accumulate(np.clip(costs, np.array(PRICES), 1.0), axis=-2)
    return np.maximum.accumulate(np.maximum.accumulate(found, axis=2), axis=1)


def concave(costs: Column) -> Column:
    """The least that is not below and concave in the price, with a cost of 1 at a price of 1. The
    exact cost is so: it is the least of what many ways to go on cost, and each costs a share at the
    price of spot and a share at that of on-demand. Tables are off by a little."""
    import numpy as np

    prices = np.array([*PRICES, 1.0])
    whole = np.concatenate([costs, np.ones((*costs.shape[:-1], 1))], axis=-1)
    found = whole.copy()
    for low, high in product(range(len(prices)), repeat=2):
        for middle in range(low + 1, high):
            share = (prices[middle] - prices[low]) / (prices[high] - prices[low])
            chord = whole[..., low] + share * (whole[..., high] - whole[..., low])
            np.maximum(found[..., middle], chord, out=found[..., middle])
    return found[..., :-1]
