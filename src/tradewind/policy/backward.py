"""One step back in time: what every state costs, from what the states a step later cost. Pure.

Costs stand by slack, kind, age and regime. Kinds: nothing held (down, up), on-demand held (down,
up), spot held. So all that a step does to slack, or to regimes, is one product of matrices. The
price of on-demand is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from tradewind.policy.regimes import HOUR_S, regimes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.floating[Any]]

NODES = 4
OVERDRAFT = 5.0
"""How dear a second of slack is that is not there. Never used: it only bends the values near the
edge smoothly, where the safety net decides."""
KINDS = 5
IDLE, SAFE, HELD = slice(0, 2), slice(2, 4), slice(4, 5)


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


class Case:
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


class Step:
    """Costs a step earlier, in place: the cheapest choice in every state, then what is expected of
    that before the market moves."""

    def __init__(self, case: Case, step_s: float) -> None:
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

    def __init__(self, case: Case, used_s: float) -> None:
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
