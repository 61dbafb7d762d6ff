"""How often to save: by what a save costs and how likely the machine is lost, at its age. Pure.

Young's √(2·C·M) for a save of C seconds and a mean time M to the next loss, with Daly's correction
where C is not small against M. Hazards fall with age, so a fresh machine saves often and an old one
seldom: with C = 60 s every 8 minutes on a fresh machine, every 37 on one older than five hours.
"""

from __future__ import annotations

from math import sqrt

from tradewind.policy.spot import GANG, HAZARDS, ON_DEMAND_FAILURE_H

LEAST_S, MOST_S = 60.0, 3600.0


def daly_s(save_s: float, mean_s: float) -> float:
    """Work between two saves that loses least time, by Daly's higher-order estimate."""
    if save_s <= 0:
        return 0.0
    if save_s >= 2 * mean_s:
        return mean_s
    part = sqrt(save_s / (2 * mean_s))
    return sqrt(2 * save_s * mean_s) * (1 + part / 3 + part * part / 9) - save_s


def hazard(age_s: float, machines: int = 1) -> float:
    """Losses an hour of so many spot machines that need each other, as old as that."""
    found = next(rate for minutes, rate in reversed(HAZARDS) if age_s / 60 >= minutes)
    grown: float = found * machines**GANG
    return grown


def every_s(save_s: float, age_s: float, *, machines: int = 1, spot: bool = True) -> float:
    """From the start of one save to the start of the next, for what is held so long already."""
    rate = hazard(max(age_s, 0.0), machines) if spot else machines / ON_DEMAND_FAILURE_H
    # A save that takes as long as that must not be all that is done.
    return min(max(daly_s(save_s, 3600 / rate) + save_s, LEAST_S), max(MOST_S, 2 * save_s))
