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
from collections import OrderedDict
from functools import lru_cache
from math import ceil, exp, floor, log
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.policy.backward import KINDS, Case, Step, few
from tradewind.policy.regimes import HOUR_S, regimes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.floating[Any]]

STEP_S = 600.0
FINE_S, GROWTH = 150.0, 0.08  # between points of slack
KEEP, NEAR, FAR = 3, 432, 24
"""Of so many steps one is kept, up to so many before the deadline; earlier, of so many."""
MOST_STEPS = 2000
MOST_BYTES = 600_000_000
"""Of tables that are kept for the next question."""
PRICE_STEP = 0.2
"""Tables are made for prices apart by this factor, in the logarithm; between them, cost follows
from the hours on spot."""
NOTHING, SPOT, ON_DEMAND = 0, 1, 2
KINDS_OF = ([0, 0, 2], [1, 4, 3])
"""Those of nothing, spot and on-demand, where there is no capacity, and where there is."""


class Points:
    """Where the slack of a table stands."""

    def __init__(self, step_s: float, slacks: list[float]) -> None:
        self.step_s, self.slacks = step_s, slacks

    def at(self, curve: Column, slack_s: float) -> float:
        slacks = self.slacks
        n = min(max(bisect_right(slacks, slack_s) - 1, 0), len(slacks) - 2)
        share = (slack_s - slacks[n]) / (slacks[n + 1] - slacks[n])
        share = min(max(share, 0.0), 1.0)
        low, high = float(curve[n]), float(curve[n + 1])
        return low + share * (high - low)


class Values:
    """Expected cost after a choice, of everything that follows."""

    def __init__(self, step_s: float, price: float, slack: Column, kept: list[Column]) -> None:
        self.step_s, self.price, self.slack, self.kept = step_s, price, slack, kept
        self.points = Points(step_s, [float(s) for s in slack])
        self.bytes = sum(costs.nbytes for costs in kept)

    def curves(self, left_s: float, up: bool, age: int, belief: Column, price: float) -> Column:
        """Cost by (what is held, point of slack) with so much time left after the choice."""
        at, kept_s = self._kept(left_s)
        found: Column = (self.kept[at][:, KINDS_OF[up], age] @ (belief @ few().spread)).T
        if price != self.price:
            # What is not paid at on-demand's price of 1 was spent on spot.
            work_h = (kept_s - self.slack) / HOUR_S
            spot_h = (work_h - found).clip(0) / (1 - self.price)
            found = found + (price - self.price) * spot_h
        return found

    def _kept(self, left_s: float) -> tuple[int, float]:
        """The nearest moment that was kept, and the time left then."""
        steps = max(left_s, 0.0) / self.step_s
        at = round(steps / KEEP) if steps <= NEAR else NEAR // KEEP + round((steps - NEAR) / FAR)
        at = min(at, len(self.kept) - 1)
        return at, self._time_s(at)

    def _time_s(self, at: int) -> float:
        far = max(at - NEAR // KEEP, 0)
        return ((at - far) * KEEP + far * FAR) * self.step_s

    def around(self, left_s: float) -> tuple[float, float]:
        """The times left at the moments that were kept just after and just before this one."""
        at, kept_s = self._kept(left_s)
        first = max(at - 1, 0) if kept_s > left_s else at
        return self._time_s(first), self._time_s(min(first + 1, len(self.kept) - 1))


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
    return _tables.of(
        _rounded_all(
            horizon_s, slack_s, spot_start_s, safe_start_s, min(max(price, 0.02), 0.95), tick_s
        )
    )


class Extent(NamedTuple):
    """What a table is made for."""

    steps: int
    step_s: float
    slack_s: float
    spot_start_s: float
    safe_start_s: float
    price: float


@lru_cache(maxsize=1024)
def _rounded_all(
    horizon_s: float,
    slack_s: float,
    spot_start_s: float,
    safe_start_s: float,
    price: float,
    tick_s: float,
) -> Extent:
    step_s = max(STEP_S, tick_s, horizon_s / MOST_STEPS)
    return Extent(
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


def _made(extent: Extent) -> Values:
    import numpy as np

    steps, step_s, slack_s, spot_start_s, safe_start_s, price = extent
    case = Case(np.array(_slacks(max(slack_s, 2 * step_s))), spot_start_s, safe_start_s, price)
    shape = len(case.slack), KINDS, len(regimes().model.ages_s), len(few().at)
    costs = case.ended(np.empty(shape, np.float32), 0.0)
    kept = [costs.copy()]
    step = Step(case, step_s)
    for n in range(1, steps + 1):
        step(costs, n * step_s)
        if n % (KEEP if n <= NEAR else FAR) == 0:
            kept.append(costs.copy())
    return Values(step_s, price, case.slack, kept)


class _Tables:
    """Those that were used last, as many as fit: a table for weeks takes 60 MB, and who looks
    after many runs needs one for each kind of them."""

    def __init__(self) -> None:
        self._lock = Lock()  # also while one is made: many who need it wait for one that makes it
        self._found: OrderedDict[Extent, Values] = OrderedDict()
        self._bytes = 0

    def of(self, extent: Extent) -> Values:
        with self._lock:
            found = self._found.get(extent)
            if found is None:
                found = self._found[extent] = _made(extent)
                self._bytes += found.bytes
            self._found.move_to_end(extent)
            while self._bytes > MOST_BYTES and len(self._found) > 1:
                self._bytes -= self._found.popitem(last=False)[1].bytes
            return found

    def clear(self) -> None:
        with self._lock:
            self._found.clear()
            self._bytes = 0

    @property
    def bytes(self) -> int:
        return self._bytes


_tables = _Tables()


def forget() -> None:
    """For tools that put another model in the place of what was learned."""
    _tables.clear()
