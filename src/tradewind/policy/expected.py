"""Our policy: what is expected to cost least to finish, under the safety net.

Zones that are cheaper than on-demand form classes: the cheapest alone, the two cheapest, and so on.
Using only the zones of a class, and always the cheapest of them that is up, is a market of one zone
whose cost to the end `value` knows, given what was seen of the class. So a dear zone is worth
taking only if slack is worth more. Each choice is charged for its next step and with the least of
the costs that follow; a zone that is dearer or shorter-lived than its class pays for the difference
while it lasts.

Where moving costs (`moving`), the next start is charged as it is to whatever is not held, and to
waiting and going on demand too, which put it off: unless it is on demand to the end. Starts after
that are approximated: a zone is as much dearer as its losses cost, each of them being followed by a
start in the same place. That is what classes are made and ordered by. A zone that is held, and not
worth coming back to, counts as what it is until it is lost, and as on demand from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf
from typing import Any

from msgspec import Struct

from tradewind.base.units import format_hours
from tradewind.policy import moving, plain, safety
from tradewind.policy.base import Choice, Known, Option
from tradewind.policy.regimes import HOUR_S, Seen, Zone, regimes, watch
from tradewind.policy.value import NOTHING, ON_DEMAND, SPOT, Points, values

DAY_S = 86400.0
EVEN = 0.5
LIKELY = 0.01
"""Where nobody can see whether there is capacity, it is not asked for if it is less likely."""
BLIND_H, BLIND = 0.04, 0.2
"""Waiting costs more than tables say where nobody can see what comes: so much, and so much of a
start."""
MOST_ASKED = 2
TRY_S = 60.0
"""What asking costs, at the zone's price."""


class Market(Struct, frozen=True, gc=False):
    """A zone that may be chosen or waited for."""

    option: int
    price: float
    """Of the same work on-demand."""
    lasting: float
    """The same with what its losses cost."""
    up: bool
    likely: float
    """That it is up; 1 where that is seen."""
    zone: Zone
    seen: Seen
    life_h: float


class Class(Struct, frozen=True, gc=False):
    """The cheapest so many zones, as a market of their own, at this point in time."""

    points: Points
    """Not the table itself: many of them at once would not fit the memory."""
    curves: Any
    extra: dict[int, float]
    """What each zone that is up costs beyond that, by its option."""
    least_extra: float
    start: float
    """What the next start costs in it."""


def choose(known: Known) -> Choice:
    held, options = known.holding, known.options
    safe = _reference(known)
    if known.time_s is None or safe is None or known.work <= 0:
        return plain.choose(known)
    base = options[safe]
    markets = _markets(known, base)
    if not markets:
        found = safety.safest(known)
        if found.option is None or not safety.affordable(known, found.option):
            return found
        way = options[found.option].way
        name = f"{way.words}: " if way else ""
        return Choice(found.option, f"{name}no spot machines are cheaper for this work")
    slack_s = known.time_s - known.work / base.rate
    classes = _classes(known, base, markets, slack_s)
    costs = _costs(known, safe, markets, classes, slack_s)
    for market in _asked(markets):
        _try(known, base, markets, market, classes, slack_s, costs)
    pick = min(costs, key=lambda n: (costs[n], n != held, n is None, n or 0))
    if pick == safe and not safety.affordable(known, pick):
        return safety.safest(known)
    return Choice(pick, _reason(known, pick, costs, markets, slack_s))


def _costs(
    known: Known, safe: int, markets: list[Market], classes: list[Class], slack_s: float
) -> dict[int | None, float]:
    """Of everything that may be chosen, in hours on-demand."""
    base = known.options[safe]
    step_s = classes[0].points.step_s
    step_h = step_s / HOUR_S
    costs: dict[int | None, float] = {}
    if safety.affordable(known, None):
        costs[None] = _cost(None, NOTHING, classes, slack_s - step_s)
    to_the_end = (base.start_s + known.work / base.rate) / HOUR_S - step_h
    costs[safe] = step_h + _cost(safe, ON_DEMAND, classes, slack_s - base.start_s, to_the_end)
    costs[safe] += base.start_cost / base.price
    blind = any(market.likely < 1 for market in markets)
    if blind and None in costs:
        costs[None] += BLIND_H + BLIND * safety.fresh_s(base) / HOUR_S
    for market in markets:
        if market.up and safety.affordable(known, market.option):
            costs[market.option] = _spot_cost(known, base, market, classes, slack_s)
    return costs


def _spot_cost(
    known: Known, base: Option, market: Market, classes: list[Class], slack_s: float
) -> float:
    step_h, n = classes[0].points.step_s / HOUR_S, market.option
    option = known.options[n]
    follows = _cost(n, SPOT, classes, slack_s - option.start_s)
    return market.price * step_h + follows + option.start_cost / base.price


def _asked(markets: list[Market]) -> list[Market]:
    """Zones that nobody can see. Of those that are likely down only the most promising ones are
    weighed: each takes as long as all the rest of a decision."""
    down = [market for market in markets if not market.up and market.likely < 1]
    down.sort(key=lambda market: -market.likely * (1 - market.price))
    return [market for market in markets if market.likely < 1 and market not in down[MOST_ASKED:]]


def _try(
    known: Known,
    base: Option,
    markets: list[Market],
    market: Market,
    classes: list[Class],
    slack_s: float,
    costs: dict[int | None, float],
) -> None:
    """Nobody can see whether there is capacity: what asking for it costs, refused or not. What is
    held meanwhile is kept; if nothing is, a tick of idling must be affordable."""
    n, kept = market.option, costs.get(known.holding)
    found = costs.pop(n, None)
    if market.likely < LIKELY or kept is None:
        return
    if not market.up and safety.affordable(known, n):
        at = markets.index(market)
        there = [*markets[:at], _there(market), *markets[at + 1 :]]
        # Classes of cheaper zones alone are as they were.
        then = _classes(known, base, there, slack_s, classes[:at])
        found = _spot_cost(known, base, there[at], then, slack_s)
    if found is not None:
        asked = market.price * TRY_S / HOUR_S
        costs[n] = market.likely * found + (1 - market.likely) * kept + asked


def _there(market: Market) -> Market:
    """The same zone, had it capacity after all."""
    zone = _turned(market.zone)
    seen = watch((zone,))
    return Market(market.option, market.price, market.lasting, True, 1.0, zone, seen, seen.life_h())


def _turned(zone: Zone) -> Zone:
    """It can be had from now on."""
    history, up, for_s = zone
    return (*history, (up, for_s)), True, 0.0


def _reference(known: Known) -> int | None:
    """The safe machines that everything is measured by: the cheapest for their work."""
    found = [
        n
        for n, option in enumerate(known.options)
        if safety.is_safe(option) and safety.can_be_had(known, n)
    ]
    # What is free is no measure, unless it will do by itself.
    priced = [n for n in found if known.options[n].price or safety.affordable(known, n)]
    found = priced or found
    return min(found, key=lambda n: (moving.each(known, known.options[n]), n), default=None)


def _markets(known: Known, base: Option) -> list[Market]:
    found: list[Market] = []
    if not base.price:
        return found
    for n, option in enumerate(known.options):
        if safety.is_safe(option):
            continue
        price = option.price * base.rate / (base.price * option.rate)
        if price >= 1 or not _keeps_up(known, base, n):
            continue
        if n == known.holding or option.up is not None:
            up, likely = n == known.holding or bool(option.up), 1.0
            zone: Zone = (option.history, up, option.up_s)
        else:
            up, zone, likely = _guess(option)
        seen = watch((zone,))
        life_h = seen.life_h() if up == seen.up else 0.0
        lasting = price
        if moving.again(option):
            stay_h = life_h if up else watch((_turned(zone),)).life_h()
            lasting = moving.lasting(option, stay_h) * base.rate / (base.price * option.rate)
            if n == known.holding:
                left_h = known.work / base.rate / HOUR_S
                lasting = min(lasting, _until_lost(price, stay_h, left_h))
            elif lasting >= 1:
                continue
        found.append(Market(n, price, lasting, up, likely, zone, seen, life_h))
    found.sort(key=lambda market: (market.lasting, market.option))
    return found


def keeps_up(known: Known, n: int) -> bool:
    """Whether machines count as a choice beside those on demand."""
    safe = _reference(known)
    return safe is None or _keeps_up(known, known.options[safe], n)


def _keeps_up(known: Known, base: Option, n: int) -> bool:
    """Slower machines use up slack for as long as they work. Where they alone would not make it,
    what they save is paid again by faster ones that catch up."""
    option = known.options[n]
    if option.rate >= base.rate or known.time_s is None:
        return True
    return option.start_s + known.work / option.rate + safety.fresh_s(base) <= known.time_s


def _until_lost(price: float, stay_h: float, left_h: float) -> float:
    """The mean price of the work that is left, if it is kept for as long as it lasts, and not come
    back to: the rest is done on demand."""
    share = min(stay_h / left_h, 1.0)
    return share * price + (1 - share)


def _guess(option: Option) -> tuple[bool, Zone, float]:
    """Nobody can see it: what was last seen wears off with the hazards of its regime."""
    history, unseen_s = option.history, option.up_s
    while history and history[-1][0] is None:
        unseen_s += history[-1][1]
        history = history[:-1]
    if not history:
        often = float(regimes().start(1) @ regimes().often_up)
        return often >= EVEN, ((), often >= EVEN, 0.0), often
    was, was_s = bool(history[-1][0]), history[-1][1]
    seen = watch(((history[:-1], was, was_s),))
    often = float(seen.belief @ regimes().often_up)
    # Towards how often it is up, at first with the hazard of this spell.
    rate = 1 / max(seen.life_h() * (1 - often if was else often), 0.1)
    worn = exp(-unseen_s / HOUR_S * rate)
    likely = often + (float(was) - often) * worn
    up = likely >= EVEN
    if up is was:
        return up, (history[:-1], was, was_s + unseen_s), likely
    return up, (history, up, 0.0), likely  # it has likely changed meanwhile


def _classes(
    known: Known,
    base: Option,
    markets: list[Market],
    slack_s: float,
    same: Sequence[Class] = (),
) -> list[Class]:
    """The first ones may be the `same` as for another question."""
    found: list[Class] = []
    often_none, price_sum, start_sum = 1.0, 0.0, 0.0
    for number, market in enumerate(markets, start=1):
        # What is paid if the cheapest that is up is always taken.
        often = float(market.seen.belief @ regimes().often_up)
        price_sum += market.lasting * often * often_none
        start_sum += _next_start(known, market.option) / base.price * often * often_none
        often_none *= 1 - often
        if number <= len(same):
            found.append(same[number - 1])
            continue
        members = markets[:number]
        seen = market.seen if number == 1 else watch(tuple(m.zone for m in members))
        price = price_sum / (1 - often_none)
        # The cheapest that is up is taken next: were it another, putting a start off would pay.
        there = next((m for m in members if m.up), None)
        start = start_sum / (1 - often_none)
        if there is not None:
            start = _next_start(known, there.option) / base.price
        found.append(_class(known, base, members, seen, price, start, slack_s))
    return found


def _class(
    known: Known,
    base: Option,
    members: list[Market],
    seen: Seen,
    price: float,
    start: float,
    slack_s: float,
) -> Class:
    assert known.time_s is not None
    spot_start_s = safety.fresh_s(known.options[members[-1].option])
    horizon_s, most_slack_s = _extent(known, base)
    table = values(
        horizon_s, most_slack_s, spot_start_s, safety.fresh_s(base), round(price, 3), known.tick_s
    )
    curves = table.curves(known.time_s - table.step_s, seen.up, seen.age, seen.belief, price)
    extra = {members[0].option: 0.0}
    if len(members) > 1 and seen.up:
        points = table.points
        again = points.at(curves[NOTHING], slack_s) - points.at(curves[SPOT], slack_s)
        left_h, life_h = known.work / base.rate / HOUR_S, seen.life_h()
        extra = {
            m.option: _extra(m, price, life_h, max(again, 0.0), table.step_s, left_h)
            for m in members
            if m.up
        }
    return Class(table.points, curves, extra, min(extra.values(), default=0.0), start)


def _next_start(known: Known, n: int) -> int:
    """In micro-dollars, for who holds nothing then."""
    option = known.options[n]
    return moving.again(option) if n == known.holding else option.start_cost


def _extra(
    market: Market, price: float, life_h: float, again: float, step_s: float, left_h: float
) -> float:
    """What a zone costs beyond its class, while it lasts: it may be dearer, and it may be lost
    while another is still up, which costs a start again."""
    lost = exp(-left_h / max(life_h, 0.01)) - exp(-left_h / max(market.life_h, 0.01))
    stay_h = max(min(market.life_h, left_h) - step_s / HOUR_S, 0.0)
    return again * max(lost, 0.0) + (market.lasting - price) * stay_h


def _extent(known: Known, base: Option) -> tuple[float, float]:
    """The most time and slack that tables must cover: the same for all questions of a run."""
    assert known.time_s is not None
    if known.all_s >= known.time_s:
        return known.all_s, min(max(known.all_s - known.all_work / base.rate, 0.0), known.all_s)
    horizon_s = DAY_S
    while horizon_s < known.time_s:
        horizon_s *= 2
    return horizon_s, 0.75 * horizon_s


def _cost(
    choice: int | None, held: int, classes: list[Class], slack_s: float, to_the_end: float = inf
) -> float:
    """Of all that follows a choice which leaves so much slack, in the class that fits best.
    `to_the_end`: what it costs to go on as it is."""
    least = inf
    for c in classes:
        if held == SPOT and choice in c.extra:
            extra, holds = c.extra[choice], SPOT
        else:
            # Not of this class: leave it again after this step.
            extra, holds = c.least_extra, (NOTHING if held == SPOT else held)
        follows = c.points.at(c.curves[holds], slack_s) + extra
        if holds != SPOT and c.start:
            follows = min(follows + c.start, to_the_end)
        least = min(least, follows)
    return least


def _reason(
    known: Known,
    pick: int | None,
    costs: dict[int | None, float],
    markets: list[Market],
    slack_s: float,
) -> str:
    slack = f"with {format_hours(max(slack_s, 0.0) / 3600)} of slack"
    if pick is None:
        return f"waiting for spot is cheapest, {slack}"
    option = known.options[pick]
    name = option.way.words if option.way else option.place
    if safety.is_safe(option):
        if None not in costs:
            return f"{name}: no time is left to wait or to gamble, {slack}"
        return f"{name}: dearer now, but slack is worth more, {slack}"
    life = next(m.life_h for m in markets if m.option == pick)
    doing = "stays" if pick == known.holding else "is chosen"
    return f"{name} {doing}: likely held for {format_hours(life)} more, {slack}"
