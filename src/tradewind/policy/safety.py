"""The net under every policy that knows a deadline: what may be chosen without ever being late.

A choice is affordable if, should its machine be taken at the end of the tick, a fresh start on safe
machines still makes the deadline, with all to be done again that was not saved. Idling counts as
such a choice. Time is exact, not in ticks: what
is left over of a start is burned first, and work may end within a tick. If the first choice of all
is affordable, and on-demand can be had, then no choice is ever late, whatever the market does.
"""

from __future__ import annotations

from math import inf

from tradewind.base.units import format_hours
from tradewind.policy.base import Choice, Known, Option

SOON = 1.1
"""Machines that are done at most so much later than the soonest count as done as soon."""
EPSILON_S = 1e-6  # sums of seconds in floating point are no better than this


def is_safe(option: Option) -> bool:
    """Whether it is there when it is needed, and stays."""
    return option.market != "spot" and option.sure


def fresh_s(option: Option) -> float:
    return option.start_s if option.again_s is None else option.again_s


def rescue_s(known: Known, work: float) -> float:
    """How long so much work takes from a fresh start on the safe machines that do it soonest."""
    if work <= 0:
        return 0.0
    return min((fresh_s(o) + work / o.rate for o in known.options if is_safe(o)), default=inf)


def affordable(known: Known, choice: int | None) -> bool:
    if known.time_s is None:
        return True
    tick_s = known.tick_s
    if choice is None:
        work = known.work + known.unsaved
        return known.time_s - tick_s - rescue_s(known, work) >= -EPSILON_S
    option = known.options[choice]
    end_s = option.start_s + known.work / option.rate
    if is_safe(option) or end_s <= tick_s:
        return end_s <= known.time_s + EPSILON_S
    lost = known.unsaved if choice == known.holding else min(known.between, known.work)
    work = known.work + lost
    done = max(tick_s - option.start_s, 0.0) * option.rate
    return known.time_s - tick_s - rescue_s(known, work - done) >= -EPSILON_S


def can_be_had(known: Known, choice: int) -> bool:
    return choice == known.holding or known.options[choice].up is not False


def safest(known: Known) -> Choice:
    """The cheapest safe machines that make it, else the cheapest of those that are done soonest."""
    usable = [
        n for n, option in enumerate(known.options) if is_safe(option) and can_be_had(known, n)
    ]
    if not usable:
        return Choice(None, "no on-demand machine is available")

    good = [n for n in usable if affordable(known, n)]
    if good:
        best = min(good, key=lambda n: (_cost(known, n), n))
        return Choice(best, "on-demand: the deadline leaves no time for interruptions")
    best = soonest(known, usable)
    return Choice(best, "on-demand, as fast as there is: it will be late all the same")


def soonest(known: Known, usable: list[int]) -> int:
    """The cheapest of those that are done as soon as any."""
    within_s = SOON * min(_end_s(known, n) for n in usable)
    return min(
        (n for n in usable if _end_s(known, n) <= within_s), key=lambda n: (_cost(known, n), n)
    )


def _end_s(known: Known, n: int) -> float:
    return known.options[n].start_s + known.work / known.options[n].rate


def _cost(known: Known, n: int) -> float:
    return _end_s(known, n) * known.options[n].price + 3600 * known.options[n].start_cost


def guard(known: Known, choice: Choice) -> Choice:
    """The choice, or the safest where that cannot be afforded."""
    if affordable(known, choice.option):
        return choice
    return safest(known)


def time_words(known: Known) -> str:
    if known.time_s is None:
        return "no deadline"
    return f"{format_hours(max(known.time_s, 0.0) / 3600)} until the deadline"
