"""A plan of serving in words, the same on pages and in the terminal. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.base.units import format_money

if TYPE_CHECKING:
    from tradewind.model.serveplan import (
        Alternative,
        Growth,
        Hour,
        OneSite,
        ServingPlans,
        ServingPool,
        TargetCost,
    )

NAMES = {"ttft": "first token", "tpot": "each further token", "e2e": "a whole request"}
_MARKETS = {"on_demand": "on demand", "spot": "on spot", "committed": "committed"}
_SAME = 500_000  # micro-dollars a month that nobody would call a difference


def traffic(plans: ServingPlans) -> str:
    text = f"{digits(plans.requests_per_s)} requests a second"
    if plans.peak_requests_per_s > 1.01 * plans.requests_per_s:
        text += f", {digits(plans.peak_requests_per_s)} in the fullest hour"
    return text


def lengths(plans: ServingPlans) -> str:
    return f"{plans.input:,.0f} tokens in, {plans.output:,.0f} out on average"


def targets(plans: ServingPlans) -> str:
    found = plans.targets.items()
    return ", ".join(
        f"{NAMES[name]} {ms(seconds)} (p{100 * share:g})" for name, (seconds, share) in found
    )


def where(pool: ServingPool) -> str:
    return "your own" if pool.own else f"{pool.provider} {pool.region}"


def machines(pool: ServingPool) -> str:
    return f"{pool.instance_type} ({pool.accelerator_count}× {pool.accelerator})"


def layout(pool: ServingPool) -> str:
    replicas = "1 replica" if pool.replicas == 1 else f"{pool.replicas} replicas"
    return f"{replicas} of tp {pool.tp} on a machine, {pool.engine}, {pool.weights}"


def prices(pool: ServingPool) -> str:
    return ", ".join(
        f"{format_money(price, digits=3)}/h {_MARKETS[market]}"
        for market, price in pool.price_hour.items()
    )


def held(hour: Hour) -> str:
    counts = {"on_demand": hour.on_demand, "spot": hour.spot}
    parts = [f"{count} {_MARKETS[market]}" for market, count in counts.items() if count]
    return (" + ".join(parts) or "none") + f" ({hour.needed} needed)"


def commitment(pool: ServingPool) -> str:
    """Empty where there is none. It is paid whether it is used or not."""
    if not pool.committed:
        return ""
    years = int(pool.term[0])
    whole = pool.price_hour["committed"] * pool.committed * 8760 * years
    return (
        f"{pool.committed} of them for {years} year{'s' if years > 1 else ''}, in all hours: "
        f"{money(whole)} in all, paid whether used or not"
    )


def users(pool: ServingPool) -> str:
    """Empty where nobody said where they are."""
    return ", ".join(
        f"{one.place} ({one.share:.0%}), {one.round_trip_ms:.0f} ms there and back"
        f"{'' if one.measured else ' by distance'}"
        for one in pool.users
    )


def had(value: float) -> str:
    return f"{value:.0%} that machines for the fullest hour are there when they are asked for"


def one_site(one: OneSite) -> str:
    if one.cost is None or one.more is None:
        return "no single place is near enough to all users"
    return f"one place for all users, {one.where}: {money(one.cost)} a month"


def latencies(pool: ServingPool) -> str:
    return ", ".join(
        f"{NAMES[name]} {digits(value or 0)} ms" for name, value in pool.latency_ms.items()
    )


def margin(pool: ServingPool) -> str:
    first, token = pool.margin["ttft"], pool.margin["tpot"]
    if first == token == 1:
        return f"no margin: half of all machines are slower than this; {pool.band}"
    return (
        f"margin: first tokens take {first:.2f} times and steps {token:.2f} times as long as the "
        f"middle of the estimate says; {pool.band}"
    )


def target_cost(one: TargetCost) -> str:
    text = f"{one.target} {ms(one.seconds or 0)} instead of {ms(one.instead_of)}"
    if one.more is None:
        return f"{text}: nothing meets it"
    if abs(one.more) < _SAME:
        return f"{text} costs the same"
    more = "more" if one.more > 0 else "less"
    return f"{text} costs {money(abs(one.more))} a month {more}"


def growth(one: Growth) -> str:
    cost = "nothing meets the targets" if one.cost is None else f"{money(one.cost)} a month"
    return f"in {one.months} months, {digits(one.rate)} requests a second: {cost}"


def crossover(one: Alternative) -> str:
    """From which traffic on the plan is cheaper; empty where that is not known."""
    if one.crossover is None:
        return ""
    return "at any rate" if one.crossover == 0 else f"above {digits(one.crossover)}/s"


def nearest(plans: ServingPlans) -> str:
    found = plans.nearest
    if found is None or not found.accelerator:
        return ""
    values = ", ".join(
        f"{NAMES[name]} {digits(value)} ms" for name, value in found.reached_ms.items()
    )
    return (
        f"nearest: {found.tp}× {found.accelerator}, {found.weights}: {values} for requests that "
        "are alone"
    )


def ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f} ms" if seconds < 10 else f"{seconds:,.0f} s"


def money(value: int) -> str:
    return format_money(value, digits=0)


def digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")
