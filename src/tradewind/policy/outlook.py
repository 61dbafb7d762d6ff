"""What our policy expects finishing to cost before anything was held, for many cases at once. Pure.

The tables of `value` know it for one restart and price; they are far too slow to be made for each
of the thousands of ways that a planner weighs. So `data/outlook.json` holds what they say at the
points of a grid, worked out by `tradewind calibrate --outlook` (`spot/outlook.py`):

    learned     a digest of the `data/spot.json` that it was worked out from
    work_h      hours of work; more are like the most
    slack       time beyond the work and one start, as a share of the work
    restart_h   hours of a start
    machines    that need each other
    prices      of spot, on-demand being 1
    costs       of finishing, in 1/10,000 of the cost on-demand, start included; by seen (can be
                had, cannot), machines, restart, work, slack and price

Between the points it is interpolated linearly, in the logarithm of work, restart and machines. Cost
falls with slack and is concave in the price at every point, hence everywhere: so a later deadline
is never dearer, the slope over prices is the hours on spot, and what is left of the cost is hours
on-demand. It is never below the price of spot for all the work, nor above that of on-demand.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from tradewind.policy import spot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Numbers = NDArray[np.int64]

UNIT = 10_000
UP, DOWN, UNSEEN = 0, 1, 2
_NO_WORK_H = 1e-9


class Outlook(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    made_at: str
    learned: str
    work_h: tuple[float, ...]
    slack: tuple[float, ...]
    restart_h: tuple[float, ...]
    machines: tuple[int, ...]
    prices: tuple[float, ...]
    costs: tuple[int, ...]


class Hours(NamedTuple):
    """Expected to be held; starts are part of them."""

    spot: Column
    on_demand: Column


def learned_digest() -> str:
    """Of what was learned, as it lies in the package."""
    from hashlib import sha256

    data = pkgutil.get_data("tradewind.policy", "data/spot.json")
    assert data is not None, "the package lacks policy/data/spot.json"
    return sha256(data).hexdigest()


class Surface:
    """An outlook, ready to be asked."""

    def __init__(self, outlook: Outlook) -> None:
        import numpy as np

        self.slack = np.array(outlook.slack)
        self.work = np.log(outlook.work_h)
        self.restart = np.log(outlook.restart_h)
        self.machines = np.log(outlook.machines)
        self.prices = np.array([*outlook.prices, 1.0])
        axes = (self.machines, self.restart, self.work, self.slack)
        shape = (2, *(len(axis) for axis in axes), len(outlook.prices))
        seen = np.array(outlook.costs).reshape(shape) / UNIT
        often = np.array([spot.of(number).often for number in outlook.machines])
        often = often.reshape(-1, 1, 1, 1, 1)
        unseen = often * seen[UP] + (1 - often) * seen[DOWN]
        known = np.stack([seen[UP], seen[DOWN], unseen])
        whole = np.concatenate([known, np.ones((*known.shape[:-1], 1))], axis=-1)
        self.costs = whole.ravel()
        self.strides = [stride // whole.itemsize for stride in whole.strides]

    def hours(
        self,
        work_h: Column,
        time_h: Column,
        restart_h: Column,
        price: Column,
        machines: Column,
        seen: Column,
    ) -> Hours:
        """By the time that is left until the deadline, and the price of spot relative to that of
        on-demand. `seen`: 1 they can be had, −1 they cannot, 0 nobody looked. Where on-demand alone
        would be late, it is on-demand alone."""
        import numpy as np

        on_demand = work_h + restart_h
        slack = np.maximum(time_h - on_demand, 0) / np.maximum(work_h, _NO_WORK_H)
        slab = np.where(seen > 0, UP, np.where(seen < 0, DOWN, UNSEEN))
        near = np.clip(np.searchsorted(self.prices, price) - 1, 0, len(self.prices) - 2)
        at: Any = slab * self.strides[0] + near
        corners = [(at, np.ones(len(slack)))]
        axes = (
            (self.machines, np.log(machines)),
            (self.restart, np.log(np.maximum(restart_h, _NO_WORK_H))),
            (self.work, np.log(np.maximum(work_h, _NO_WORK_H))),
            (self.slack, slack),
        )
        for (axis, value), stride in zip(axes, self.strides[1:], strict=False):
            low, share = _between(axis, value)
            corners = [
                (where + low * stride + step, weight * part)
                for where, weight in corners
                for step, part in ((0, 1 - share), (stride, share))
            ]
        cheap = sum(weight * self.costs[where] for where, weight in corners)
        dear = sum(weight * self.costs[where + 1] for where, weight in corners)
        low_price = self.prices[near]
        on_spot = np.maximum(dear - cheap, 0) / (self.prices[near + 1] - low_price)
        on_spot = np.minimum(on_spot, cheap / low_price)
        on_spot = np.where(price < 1, on_spot, 0)
        rest = np.where(price < 1, cheap - low_price * on_spot, 1.0)
        return Hours(on_demand * on_spot, on_demand * rest)


def _between(axis: Column, value: Column) -> tuple[Numbers, Column]:
    """The point of an axis before each value, and how far on the way to the next it is."""
    import numpy as np

    low = np.clip(np.searchsorted(axis, value, side="right") - 1, 0, len(axis) - 2)
    share = np.clip((value - axis[low]) / (axis[low + 1] - axis[low]), 0, 1)
    return low, share


def packaged() -> Outlook:
    data = pkgutil.get_data("tradewind.policy", "data/outlook.json")
    assert data is not None, "the package lacks policy/data/outlook.json"
    return msgspec.json.decode(data, type=Outlook)


@cache
def surface() -> Surface:
    return Surface(packaged())
