"""When no machine makes the deadline any more.

Then time has no worth but what the user says that an hour late costs: what finishes for the least
of both is held, spot too. A deadline
is given up only when the best of all machines, those that cannot be had just now among them, would
miss it by more than speeds are known to.
"""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from tradewind.base.units import format_money
from tradewind.policy import plain
from tradewind.policy.base import Choice, Known


def is_lost(known: Known) -> bool:
    if known.time_s is None or known.work <= 0:
        return False
    soonest_s = min((o.start_s + known.work / o.rate for o in known.options), default=inf)
    fastest_s = min((known.work / o.rate for o in known.options), default=0.0)
    return soonest_s > known.time_s + known.doubt * fastest_s + known.tick_s


def cheapest(known: Known) -> Choice:
    known = replace(known, time_s=None)
    if not known.late:
        return plain.choose(known)
    # Each hour of whatever is held is one more hour late.
    dearer = tuple(replace(o, price=o.price + known.late) for o in known.options)
    choice = plain.choose(replace(known, options=dearer, budget=None))
    if choice.option is None or not payable(known, choice.option):
        return plain.choose(known)
    worth = format_money(known.late, digits=2)
    return Choice(choice.option, f"{choice.reason}, an hour late counted at {worth}")


def payable(known: Known, choice: int) -> bool:
    if known.budget is None:
        return True
    option = known.options[choice]
    taken_s = option.start_s + known.work / option.rate
    return taken_s / 3600 * option.price + option.start_cost <= known.budget
