"""How often to save: by what a save costs and how likely work is lost, at the machine's age. Pure.

Young's √(2·C·M) for a save of C seconds and a mean time M to the next loss of work, with Daly's
correction where C is not small against M. Hazards fall with age, so a fresh machine saves often and
an old one seldom: with C = 60 s every 8 minutes on a fresh machine, every 30 on one older than five
hours. Where a notice leaves time to save, only a loss without one takes work along, and saves are
further apart. On safe machines it is the losses that no market explains: about one a day.
"""

from __future__ import annotations

from math import inf, sqrt

from tradewind.policy.spot import GANG, HAZARDS, ON_DEMAND_FAILURE_H

LEAST_S, MOST_S, LONGEST_S = 60.0, 3600.0, 4 * 3600.0
ANY_LOSS_H = 24.0
"""Whatever the market, work is lost about so often in other ways: a job is killed by hand or for
want of memory, it crashes, a computer is restarted. Nobody should lose more than minutes by it."""
SPARED = 0.005
"""However rare losses are, there is a save an hour, as long as that takes less of the time; else as
often as takes so much of it, but at least every four hours."""
AT_RISK = 0.75
"""No more of the slack is put at risk by work that is not saved. Saves use slack up too: with a
quarter of it at risk, hours of slack are gone within a day."""
NOTICED = 0.9
"""Of the losses, where a provider gives notice: it is best effort."""


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


def _most_s(save_s: float) -> float:
    return min(max(MOST_S, save_s / SPARED), LONGEST_S)


def every_s(
    save_s: float,
    age_s: float,
    *,
    machines: int = 1,
    spot: bool = True,
    noticed: float = 0.0,
    slack_s: float = inf,
    any_loss_h: float = ANY_LOSS_H,
) -> float:
    """From the start of one save to the start of the next, for what is held so long already.
    `noticed`: of the losses, how many are told early enough for a last save. `slack_s`: so much
    may be lost before only on-demand makes the deadline."""
    rate = machines / ON_DEMAND_FAILURE_H + 1 / any_loss_h
    if spot:
        rate += (1 - noticed) * hazard(max(age_s, 0.0), machines)
    found = min(daly_s(save_s, 3600 / rate) + save_s, _most_s(save_s))
    if spot:
        found = min(found, AT_RISK * slack_s)
    # A save that takes as long as that must not be all that is done.
    return max(found, LEAST_S, 2 * save_s)
