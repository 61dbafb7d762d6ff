"""What perfect foresight would have paid, by exact dynamic programming.

No stay is worth having that ends before its restart is over: idling instead costs less and leads to
the same. So work done = time − idle time − restarts · overhead, and it is enough to know, for each
thing that may be held, the least cost of having used up a given slack; slack is used by the gap for
an idle tick and by the overhead for a start, and so is a multiple of their common divisor. The work
is done by the deadline if and only if no more slack is used than there is.

All in whole numbers (as floats that hold them exactly): no policy may ever be cheaper, by nothing.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

from tradewind.spot.cases import Config

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def optimum(
    up: NDArray[np.bool_], prices: NDArray[np.int64], on_demand: int, gap_s: int, config: Config
) -> NDArray[np.float64]:
    """The least cost of each window; `up` and `prices` are window × zone × tick."""
    import numpy as np

    unit = gcd(gap_s, config.overhead_s)
    gap, overhead = gap_s // unit, config.overhead_s // unit
    slack = (config.deadline_s - config.work_s) // unit
    windows, zones, _ = up.shape
    held = np.full((zones + 2, windows, slack + 1), np.inf)
    held[0, :, 0] = 0  # nothing; then each zone; then on-demand
    best = np.full(windows, np.inf)
    costs = np.where(up, prices.astype(np.float64) * gap_s, np.inf)
    for tick in range(-(-config.deadline_s // gap_s)):
        # Beyond this, restarts were begun that did not end: never the best.
        most = min(slack, (tick + 1) * gap + overhead) + 1
        part = held[:, :, :most]
        least = part.min(axis=0)
        started = np.full_like(least, np.inf)
        started[:, overhead:] = least[:, : max(most - overhead, 0)]
        np.minimum(part[1:], started, out=part[1:])
        part[1:-1] += costs[:, :, tick].T[:, :, None]
        part[-1] += on_demand * gap_s
        part[0] = np.inf
        part[0, :, gap:] = least[:, : max(most - gap, 0)]
        over = (tick + 1) * gap_s - config.work_s
        if over >= 0:
            done = min(over // unit, slack) + 1
            best = np.minimum(best, held[:, :, :done].min(axis=(0, 2)))
            held[:, :, :done] = np.inf
    return best
