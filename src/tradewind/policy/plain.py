"""Spot while there is slack, on-demand when there is not; the cheapest that makes it, else the one
that finishes soonest.

A spot machine may be taken at any time; after that, going over to safe machines must still make the
deadline. So spot has slack while its own finish leaves room for one more start, and for a tenth of
the work. What is held is left only for something better by a tenth, restart
included: estimates are no better than that. Where moving costs, a start is charged with it, and
spot with as many more as there are losses on average; what is held is not left for what coming back
to it would cost.
"""

from __future__ import annotations

from math import inf

from tradewind.base.units import format_hours, format_money
from tradewind.policy import moving
from tradewind.policy.base import Choice, Known, Option

REFUSED_S = 600.0
"""For so long a refusal is believed."""
BETTER = 0.9


def choose(known: Known) -> Choice:
    options = known.options
    usable = [
        n
        for n, option in enumerate(options)
        if n == known.holding or option.refused_s is None or option.refused_s >= REFUSED_S
    ]
    if not usable:
        return Choice(None, "everything that would do was refused a short while ago")
    finish = {n: options[n].start_s + known.work / options[n].rate for n in usable}
    cost = {n: finish[n] / 3600 * options[n].price + options[n].start_cost for n in usable}
    for n in usable:
        if n != known.holding:
            cost[n] += moving.later(options[n], finish[n] / 3600)
    time_s = inf if known.time_s is None else known.time_s
    safe_start_s = max((o.start_s for o in options if o.market != "spot"), default=0.0)
    good = [
        n
        for n in usable
        if finish[n] + _reserve(options[n], finish[n], safe_start_s) <= time_s
        and (known.budget is None or cost[n] <= known.budget)
    ]
    if good:
        best = min(good, key=lambda n: (cost[n], finish[n], n))
        held = known.holding
        if held in good and held != best and cost[best] > BETTER * cost[held]:
            best = held
        return _choice(best, finish, cost, known)
    affordable = [n for n in usable if known.budget is None or cost[n] <= known.budget]
    if affordable:
        best = min(affordable, key=lambda n: (finish[n], cost[n], n))
    else:
        best = min(usable, key=lambda n: (cost[n], finish[n], n))
    held = known.holding
    if held is not None and held != best:
        measure = finish if affordable and held in affordable else cost
        if measure[best] > BETTER * measure[held]:
            best = held
    return _choice(best, finish, cost, known)


def _reserve(option: Option, finish_s: float, safe_start_s: float) -> float:
    return safe_start_s + 0.1 * finish_s if option.market == "spot" else 0.0


def _choice(best: int, finish: dict[int, float], cost: dict[int, float], known: Known) -> Choice:
    if best == known.holding:
        return Choice(best, "nothing else is better by enough to move")
    option = known.options[best]
    name = option.way.words if option.way else option.place
    text = (
        f"{name}: done in {format_hours(finish[best] / 3600)}"
        f" for {format_money(int(cost[best]), digits=2)}"
    )
    if known.time_s is not None:
        text += f", with {format_hours(max(known.time_s, 0.0) / 3600)} until the deadline"
    return Choice(best, text)
