"""What sustained use takes off in a plan: of machines on demand that are up from now to the end of
the work, by the rest of this month and the months after it. Machines that a deadline falls back to
are up now and then, and are counted at the whole price."""

from __future__ import annotations

from calendar import monthrange
from datetime import timedelta
from typing import TYPE_CHECKING

from tradewind.model.sustained import WHOLE, Steps
from tradewind.planning.goods import MODES

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.planning.goods import Column, Goods, Numbers

_ON_DEMAND = MODES.index("on_demand")
_MOST_MONTHS = 120


def paid(goods: Goods, good: Numbers, mode: Numbers, hours: Column, now: datetime) -> Column:
    """The share of the price on demand that is paid for so many hours from now on."""
    import numpy as np

    found: Column = np.ones(len(hours))
    of_way = np.where(mode == _ON_DEMAND, goods.steps_of[good], 0)
    for number, steps in enumerate(goods.steps):
        at = np.flatnonzero((of_way == number) & np.isfinite(hours) & (hours > 0))
        if steps and len(at):
            found[at] = _paid_hours(steps, hours[at], now) / hours[at]
    return found


def least(goods: Goods, good: Numbers, mode: Numbers) -> Column:
    """No more than that is ever taken off."""
    import numpy as np

    lowest = [1.0 if not steps else steps[-1][1] / WHOLE for steps in goods.steps]
    found: Column = np.array(lowest)[goods.steps_of[good]]
    return np.where(mode == _ON_DEMAND, found, 1.0)


def _paid_hours(steps: Steps, hours: Column, now: datetime) -> Column:
    import numpy as np

    shares = np.array([start for start, _ in steps] + [WHOLE]) / WHOLE
    pays = np.array([share for _, share in steps]) / WHOLE
    sums = np.concatenate([[0.0], np.cumsum(np.diff(shares) * pays)])
    total, left, begin = np.zeros(len(hours)), hours.copy(), now
    for _ in range(_MOST_MONTHS):
        month_h = 24.0 * monthrange(begin.year, begin.month)[1]
        first = begin.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        end = first + timedelta(hours=month_h)
        here = np.minimum(left, (end - begin).total_seconds() / 3600)
        total += np.interp(here / month_h, shares, sums) * month_h
        left, begin = left - here, end
        if not left.any():
            break
    result: Column = total + left
    return result
