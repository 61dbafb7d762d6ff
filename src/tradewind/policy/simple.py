"""The policies that others use, to compare with: each a rule of a line or two, under the same net.

`spot` alone has no net: it shows what never paying for on-demand costs in lateness.
"""

from __future__ import annotations

from tradewind.policy import safety
from tradewind.policy.base import Choice, Known, Option
from tradewind.policy.plain import REFUSED_S


def on_demand(known: Known) -> Choice:
    """Never anything that may be taken."""
    found = safety.safest(known)
    return Choice(found.option, "on-demand only") if found.option is not None else found


def spot(known: Known) -> Choice:
    """Never anything else."""
    best = cheapest_spot(known)
    if best is None:
        return Choice(None, "no spot capacity now")
    return Choice(best, "spot only")


def greedy(known: Known) -> Choice:
    """Spot whenever there is some; wait otherwise, for as long as the deadline allows."""
    best = cheapest_spot(known)
    if best is None:
        return safety.guard(known, Choice(None, "no spot capacity now, and there is time to wait"))
    return safety.guard(known, Choice(best, "spot, as there is some"))


def uniform(known: Known) -> Choice:
    """Uniform progress (Wu and others, Can't Be Late, NSDI 2024): spot whenever there is some; else
    on-demand while progress lags behind the straight line from the start to the deadline, and once
    there, until it is two restarts ahead of the line."""
    best = cheapest_spot(known)
    if best is not None:
        return safety.guard(known, Choice(best, "spot, as there is some"))
    if known.time_s is None or not known.all_s:
        return Choice(None, "no spot capacity now, and no line to keep up with")
    done, now_s = known.all_work - known.work, known.all_s - known.time_s
    held = known.holding
    ahead_s = 0.0
    if held is not None and safety.is_safe(known.options[held]):
        ahead_s = 2 * safety.fresh_s(known.options[held])
    if done < (now_s + ahead_s) * known.all_work / known.all_s:
        found = safety.safest(known)
        return Choice(found.option, "on-demand: behind the line of uniform progress")
    return safety.guard(known, Choice(None, "no spot capacity now, and ahead of the line"))


def cheapest_spot(known: Known) -> int | None:
    """What is held, if it is spot; else the cheapest for its speed that can be had."""
    held, options = known.holding, known.options
    if held is not None and not safety.is_safe(options[held]):
        return held
    best, least = None, 0.0
    for n, option in enumerate(options):
        if option.market == "spot" and option.up is not False and not _refused(option):
            price = option.price / option.rate
            if best is None or price < least:
                best, least = n, price
    return best


def _refused(option: Option) -> bool:
    """A refusal is believed for a while."""
    return (
        option.up is None
        and option.up_s < REFUSED_S
        and bool(option.history)
        and option.history[-1][0] is False
    )
