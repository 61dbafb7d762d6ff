"""When no machine makes the deadline any more.

Then time has no worth of its own: what finishes for the least money is held, spot too. A deadline
is given up only when the best of all machines, those that cannot be had just now among them, would
miss it by more than speeds are known to.
"""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from tradewind.policy import plain
from tradewind.policy.base import Choice, Known


def is_lost(known: Known) -> bool:
    if known.time_s is None or known.work <= 0:
        return False
    soonest_s = min((o.start_s + known.work / o.rate for o in known.options), default=inf)
    fastest_s = min((known.work / o.rate for o in known.options), default=0.0)
    return soonest_s > known.time_s + known.doubt * fastest_s + known.tick_s


def cheapest(known: Known) -> Choice:
    return plain.choose(replace(known, time_s=None))
