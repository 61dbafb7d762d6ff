"""How spot machines behave: how long they are held, and how long none can be had. Pure.

What one machine does was learned (`regimes`). Several machines that need each other are lost with
the first of them; losses come together, so that the hazard of a gang grows more slowly than its
size, and it takes longer until all can be had again. In the grid of regimes a gang is a machine
whose levels are shifted, so that whatever knows a belief knows gangs: that is the one idea of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log
from typing import TYPE_CHECKING

from tradewind.policy.regimes import Regimes, regimes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

# Losses an hour of a machine as old as so many minutes, for how often to save (`cadence`).
HAZARDS = ((0, 1.86), (10, 1.24), (20, 0.90), (40, 0.55), (80, 0.37), (160, 0.21), (320, 0.09))
GANG = 0.6  # power of the machines by which the hazard grows
GAP_GANG = 0.3  # power of the machines by which the time grows until they can be had again
ON_DEMAND_FAILURE_H = 50_000.0  # accelerator-hours between failures of hardware
REACH = 3  # zones that who holds nothing but spot asks in turn


def as_gang(belief: Column, machines: float) -> Column:
    """The belief over regimes for so many machines at once, from that for one of them. Levels end
    somewhere: what would be beyond is at the end."""
    if machines == 1:
        return belief
    levels = regimes().model.levels
    lost = _shifted(levels, GANG * log(machines))
    back = _shifted(levels, -GAP_GANG * log(machines))
    found: Column = lost.T @ belief.reshape(len(levels), -1) @ back
    return found.ravel()


def _shifted(levels: tuple[float, ...], by: float) -> Column:
    """Level × level: where a level lies after a shift, shared by the two next to it."""
    import numpy as np

    moved = np.array(levels) + by
    found: Column = np.array([np.interp(moved, levels, one) for one in np.eye(len(levels))]).T
    return found


class Spot:
    """What is to be expected on average, by what is believed."""

    def __init__(self, belief: Column) -> None:
        now = regimes()
        held, there = now.lives[:, 1, 0], _there(now)
        self.there = float(belief @ there)
        """Of the time."""
        self.held_h = self.there / float(belief @ (there / held))
        """From a start to the loss."""
        self.often = float(belief @ now.often_up)


@cache
def believed(machines: int, seen: int = 0, zones: int = 1) -> Column:
    """Of so many machines at once, in any of so many zones. `seen`: 1 they can be had, −1 they
    cannot, 0 nobody looked."""
    now = regimes()
    found = as_gang(now.start(zones), machines)
    if seen:
        found = found * (now.often_up if seen > 0 else 1 - now.often_up)
    whole: Column = found / found.sum()
    return whole


@cache
def of(machines: int, seen: int = 0) -> Spot:
    return Spot(believed(machines, seen))


def held_hours(machines: Column) -> Column:
    """How long so many machines are held together, on average."""
    return _by_number(machines, lambda number: of(number).held_h)


def waited_hours(held_h: Column, machines: Column, zones: int = 1) -> Column:
    """Case × regime: hours until so many have been held, if nothing else is, by the regime at the
    start. Regimes change: after a while each is like the mean."""
    import numpy as np

    sizes, which = np.unique(machines, return_inverse=True)
    tables = np.stack([_waits(int(number), zones) for number in sizes.tolist()])
    at = np.log(np.clip(held_h, _LEAST_H, _MOST_H) / _LEAST_H) / _STEP
    low = np.minimum(at.astype(np.int64), _POINTS - 2)
    found: Column = tables[which, low]
    found += (at - low)[:, None] * (tables[which, low + 1] - found)
    return found


# Points of held hours, evenly spaced in the logarithm.
_LEAST_H, _MOST_H, _POINTS = 1e-3, 1e5, 185
_STEP = log(_MOST_H / _LEAST_H) / (_POINTS - 1)


@cache
def _waits(machines: int, zones: int) -> Column:
    """Point of held hours × regime."""
    import numpy as np

    now = regimes()
    there = _there(now)
    change = 4 * now.model.drift + now.model.jump  # an hour
    hours = np.concatenate([[0.0], np.geomspace(1e-3, 1e8, 400)])
    same = (1 - np.exp(-change * hours)) / change
    mean = float(believed(machines, 0, zones) @ there)
    points = _LEAST_H * np.exp(_STEP * np.arange(_POINTS))
    each = [
        np.interp(points, share * same + mean * (hours - same), hours) for share in there.tolist()
    ]
    return np.ascontiguousarray(np.array(each).T)


def first_wait_hours(seen: Column) -> Column:
    """Case × regime: hours until machines can be had for the first time."""
    import numpy as np

    now = regimes()
    gap = now.lives[:, 0, 0]
    looked = seen[:, None]
    gone = np.where(looked > 0, 0.0, np.where(looked < 0, 1.0, 1 - _there(now)))
    found: Column = gap * gone
    return found


def beliefs(machines: Column, seen: Column, zones: int = 1) -> Column:
    """Case × regime."""
    import numpy as np

    kinds, which = np.unique(3 * machines + seen, return_inverse=True)
    numbers = np.round(kinds / 3).astype(int)
    looks = np.round(kinds - 3 * numbers).astype(int)
    asked = zip(numbers.tolist(), looks.tolist(), strict=True)
    found: Column = np.array([believed(*one, zones) for one in asked])[which]
    return found


def _there(now: Regimes) -> Column:
    """Of the time, by regime."""
    found: Column = now.lives[:, 1, 0] / now.lives[:, :, 0].sum(axis=1)
    return found


def _by_number(machines: Column, mean: Callable[[int], float]) -> Column:
    import numpy as np

    sizes, where = np.unique(machines, return_inverse=True)
    found: Column = np.array([mean(int(n)) for n in sizes])[where]
    return found
