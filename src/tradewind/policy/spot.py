"""How spot machines behave: how long they are held, and how long none can be had. Pure.

From public probes of spot capacity: the hazard of losing a machine falls some twentyfold with its
age, up runs last 0.6 to 11 hours and down runs 0.2 to 12, with heavy tails. Several machines that
need each other are lost with the first of them; losses come together, so that the hazard of a gang
grows more slowly than its size.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

# Losses an hour of a machine as old as so many minutes.
HAZARDS = ((0, 1.86), (10, 1.24), (20, 0.90), (40, 0.55), (80, 0.37), (160, 0.21), (320, 0.09))
GANG = 0.6  # power of the machines by which the hazard grows
GAP_H = 1.5  # mean time until one machine can be had again, somewhere in reach
GAP_GANG = 0.3  # power of the machines by which that grows
ON_DEMAND_FAILURE_H = 50_000.0  # accelerator-hours between failures of hardware


def mean_held_hours(machines: int) -> float:
    """How long so many machines are held together, on average."""
    more: float = machines**GANG
    survived: float = 1.0
    total: float = 0.0
    ages = [minutes / 60 for minutes, _ in HAZARDS] + [inf]
    for start, end, (_, hazard) in zip(ages, ages[1:], HAZARDS, strict=False):
        rate = hazard * more
        share = 1 - exp(-rate * (end - start))
        total += survived * share / rate
        survived *= 1 - share
    return total


def mean_gap_hours(machines: int) -> float:
    """How long nothing can be had in between, on average."""
    grown: float = machines**GAP_GANG
    return GAP_H * grown


def held_hours(machines: Column) -> Column:
    return _by_number(machines, mean_held_hours)


def gap_hours(machines: Column) -> Column:
    return _by_number(machines, mean_gap_hours)


def _by_number(machines: Column, mean: Callable[[int], float]) -> Column:
    import numpy as np

    sizes, where = np.unique(machines, return_inverse=True)
    found: Column = np.array([mean(int(n)) for n in sizes])[where]
    return found
