"""Our policy: what is expected to cost least to finish, under the safety net.

Zones that are cheaper than on-demand form classes: the cheapest alone, the two cheapest, and so on.
Using only the zones of a class, and always the cheapest of them that is up, is a market of one zone
whose cost to the end `value` knows, given what was seen of the class. So a dear zone is worth
taking only if slack is worth more. Each choice is charged for its next step and with the least of
the costs that follow; a zone that is dearer or shorter-lived than its class pays for the difference
while it lasts.
"""

from __future__ import annotations

from math import exp, inf

from msgspec import Struct

from tradewind.policy import plain, safety
from tradewind.policy.base import Choice, Known, Option
from tradewind.policy.regimes import HOUR_S, Seen, Zone, regimes, watch
from tradewind.policy.value import NOTHING, ON_DEMAND, SPOT, Values, values
from tradewind.units import format_hours

DAY_S = 86400.0
LIKELY = 0.5
"""Where nobody can see whether there is capacity, it is tried if this likely."""


KAPPA = 1.0


class Market(Struct, frozen=True, gc=False):
    """A zone that may be chosen or waited for."""

    option: int
    price: float
    """Of the same work on-demand."""
    up: bool
    zone: Zone
    seen: Seen
    life_h: float


class Class(Struct, frozen=True, gc=False):
    """The cheapest so many zones, as a market of their own, at a point in time."""

    members: int
    price: float
    seen: Seen
    table: Values
    curves: object
    life_h: float


def choose(known: Known) -> Choice:
    held, options = known.holding, known.options
    safe = _reference(known)
    if known.time_s is None or safe is None or known.work <= 0:
        return plain.choose(known)
    base = options[safe]
    markets = _markets(known, base)
    if not markets:
        return safety.guard(known, safety.safest(known))
    slack_s = known.time_s - known.work / base.rate
    classes = _classes(known, base, markets)
    step_s = classes[0].table.step_s
    costs: dict[int | None, float] = {}
    if safety.affordable(known, None):
        costs[None] = _idle(classes, slack_s)
    costs[safe] = step_s / HOUR_S + min(
        c.table.at(c.curves[ON_DEMAND], slack_s - base.start_s)  # type: ignore[index]
        for c in classes
    )
    for rank, market in enumerate(markets):
        if market.up and safety.affordable(known, market.option):
            costs[market.option] = _cost(known, base, market, rank, classes, slack_s)
    pick = min(costs, key=lambda n: (costs[n], n != held, n is None, n or 0))
    if pick == safe and not safety.affordable(known, pick):
        return safety.safest(known)
    return Choice(pick, _reason(known, pick, costs, markets, slack_s))


def _reference(known: Known) -> int | None:
    """The safe machines that everything is measured by: the cheapest for their work."""
    found = [
        n
        for n, option in enumerate(known.options)
        if safety.is_safe(option) and safety.can_be_had(known, n)
    ]
    return min(
        found, key=lambda n: (known.options[n].price / known.options[n].rate, n), default=None
    )


def _markets(known: Known, base: Option) -> list[Market]:
    found = []
    for n, option in enumerate(known.options):
        if safety.is_safe(option):
            continue
        price = option.price * base.rate / (base.price * option.rate)
        if price >= 1:
            continue
        up, zone = _state(option, held=n == known.holding)
        seen = watch((zone,))
        life_h = seen.life_h() if up == seen.up else 0.0
        found.append(Market(n, price, up, zone, seen, life_h))
    found.sort(key=lambda market: (market.price, market.option))
    return found


def _state(option: Option, *, held: bool) -> tuple[bool, Zone]:
    if held or option.up is True:
        return True, (option.history, True, option.up_s)
    if option.up is False:
        return False, (option.history, False, option.up_s)
    return _guess(option)


def _guess(option: Option) -> tuple[bool, Zone]:
    """Nobody can see it: what was last seen wears off with the hazards of its regime."""
    history = option.history
    while history and history[-1][0] is None:
        history = history[:-1]
    if not history:
        return True, ((), True, 0.0)
    was = bool(history[-1][0])
    seen = watch(((history[:-1], was, history[-1][1]),))
    to_up, to_down = (float(seen.belief @ regimes().hazards[:, s, 0]) for s in (0, 1))
    often = to_up / (to_up + to_down)
    worn = exp(-option.up_s / HOUR_S / max(seen.life_h(), 1e-3))
    likely = often + ((1.0 if was else 0.0) - often) * worn
    up = likely >= LIKELY
    # As if it had changed meanwhile, if it is likely to have.
    if up is was:
        return up, (history[:-1], was, history[-1][1] + option.up_s)
    return up, (history, up, option.up_s)


def _classes(known: Known, base: Option, markets: list[Market]) -> list[Class]:
    assert known.time_s is not None
    found = []
    safe_start_s = safety.fresh_s(base)
    horizon_s, most_slack_s = _extent(known, base)
    often_none, price_sum, losses, oftens, again = 1.0, 0.0, 0.0, 0.0, 0.0
    slack_s = known.time_s - known.work / base.rate
    for members, market in enumerate(markets, start=1):
        seen = market.seen if members == 1 else watch(tuple(m.zone for m in markets[:members]))
        often = float(market.seen.belief @ regimes().often_up)
        price_sum += market.price * often * often_none
        often_none *= 1 - often
        price = price_sum / (1 - often_none)
        losses += often / max(market.seen.fresh_h(), 0.01)
        oftens += often
        if members > 1:
            price += KAPPA * again * max(losses / oftens - 1 / max(seen.fresh_h(), 0.01), 0.0)
        spot_start_s = safety.fresh_s(known.options[market.option])
        table = values(
            horizon_s, most_slack_s, spot_start_s, safe_start_s, round(price, 3), known.tick_s
        )
        curves = table.curves(known.time_s - table.step_s, seen.up, seen.age, seen.belief, price)
        life_h = seen.life_h() if seen.up else 0.0
        found.append(Class(members, price, seen, table, curves, life_h))
        if members == 1:
            again = spot_start_s / HOUR_S * price
            if seen.up:
                again = table.at(curves[NOTHING], slack_s) - table.at(curves[SPOT], slack_s)
    return found


def _extent(known: Known, base: Option) -> tuple[float, float]:
    """The most time and slack that tables must cover: the same for all questions of a run."""
    assert known.time_s is not None
    if known.all_s >= known.time_s:
        return known.all_s, min(max(known.all_s - known.all_work / base.rate, 0.0), known.all_s)
    horizon_s = DAY_S
    while horizon_s < known.time_s:
        horizon_s *= 2
    return horizon_s, 0.75 * horizon_s


def _idle(classes: list[Class], slack_s: float) -> float:
    return min(
        c.table.at(c.curves[NOTHING], slack_s - c.table.step_s)  # type: ignore[index]
        for c in classes
    )


def _cost(
    known: Known, base: Option, market: Market, rank: int, classes: list[Class], slack_s: float
) -> float:
    """Of holding this zone for the next step, and of what follows in the class that fits best."""
    start_s = known.options[market.option].start_s
    left_h = known.work / base.rate / HOUR_S
    after_s = slack_s - start_s
    least = inf
    for c in classes:
        step_h = c.table.step_s / HOUR_S
        if rank >= c.members:
            # Not of this class: leave it again after this step.
            follow = c.table.at(c.curves[NOTHING], after_s)  # type: ignore[index]
        else:
            follow = c.table.at(c.curves[SPOT], after_s)  # type: ignore[index]
            if c.members > 1:
                again = c.table.at(c.curves[NOTHING], after_s) - follow  # type: ignore[index]
                lost = exp(-left_h / max(c.life_h, 0.01)) - exp(-left_h / max(market.life_h, 0.01))
                stay_h = min(market.life_h, left_h)
                follow += max(again, 0.0) * max(lost, 0.0)
                follow += (market.price - c.price) * max(stay_h - step_h, 0.0)
        least = min(least, market.price * step_h + follow)
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
    doing = "stays" if pick == known.holding else "is taken"
    return f"{name} {doing}: likely held for {format_hours(life)} more, {slack}"
