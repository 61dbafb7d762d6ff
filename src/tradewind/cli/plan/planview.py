"""What people see of plans: words, tables, and why the rest lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log
from typing import TYPE_CHECKING

import click

from tradewind.base.units import format_bytes, format_chance, format_duration, format_money, usd
from tradewind.base.units import format_hours as span
from tradewind.cli import render
from tradewind.cli.plan.plantable import (
    COMMITMENTS,
    MARKETS,
    about_cost,
    at_place,
    dollars,
    expected,
    how_many,
    in_words,
    machines,
    on_markets,
    plan_table,
)
from tradewind.cli.plan.schema import limit_words, work_words
from tradewind.cli.render import Column
from tradewind.planning.words import KINDS, old_prices

if TYPE_CHECKING:
    from tradewind.model.plan import Loser, Plan, Plans

_FRONT = 6
_FASTER = 0.98
_SURELY_HAD = 0.995  # from which it is not worth a word
_FAMOUS = 6
# Accelerators that people ask for, by how their names begin; the ones asked for most come first.
_FAMILIES = (
    "H100", "A100", "TPU", "RTX4090", "V100", "H200", "B200", "L40S", "L4", "A10", "MI300X",
    "Trainium", "T4",
)  # fmt: skip


# -- the whole answer ----------------------------------------------------------------------------


def show(plans: Plans) -> None:
    if old := old_prices(plans):
        render.paragraph(f"{old[:1].upper()}{old[1:]}.")
    if plans.best is None:
        _show_what_would_do(plans)
    else:
        render.paragraph(recommendation(plans), bold=True)
        for line in _details(plans.best, plans):
            render.paragraph(line, indent="  ", dim=True)
        click.echo()
        plan_table(plans.plans)
        _show_later(plans)
        _show_surer(plans)
        shown = _show_front(plans, plans.plans)
        _show_losers(plans, [*plans.plans, *shown])
    _show_assumptions(plans)


def recommendation(plans: Plans) -> str:
    """One line."""
    best = plans.best
    assert best is not None
    held = "reserved" in best.markets and not best.commit
    verb = "Use" if best.own or held else "Rent"
    sure = ""
    if plans.deadline_hours is not None:
        sure = f", {format_chance(best.chance)} sure"
    if plans.workload.limits.budget is not None:
        words = "within the budget" if sure else "sure to stay within the budget"
        sure += f", {format_chance(best.within_budget)} {words}"
    if best.had < _SURELY_HAD:
        sure += f"; {format_chance(best.had)} likely to be available"
        if other := expected(best):
            sure += f", {other} expected in all"
    return (
        f"{verb} {machines(best)} ({best.accelerators}× {best.accelerator}) {at_place(best)}: "
        f"{about_cost(best)} in {span(best.hours)}{sure}."
    )


def _details(best: Plan, plans: Plans) -> list[str]:
    """How the best plan is to be carried out, and what its money goes to."""
    from tradewind.api import fleet

    lines = [f"{plans.workload.name}: {work_words(plans.workload)}"]
    if limits := limit_words(plans.workload):
        lines.append(f"limits: {limits}")
    how = []
    if best.layout_words:
        micro = best.layout.get("micro_batch")
        how.append(best.layout_words + (f"; micro-batch {micro}" if micro else ""))
        how.append(f"{best.precision}, {best.stack}")
        how.append(f"{best.memory_gb:.0f} of {best.capacity_gb:.0f} GB")
    every = format_duration(best.checkpoint_every_s, parts=2)
    size = f" of {format_bytes(best.checkpoint_bytes, digits=2)}" if best.checkpoint_bytes else ""
    how.append(f"a checkpoint{size} every {every}, which is the most that a kill costs")
    lines.append("how: " + "; ".join(how))
    money = [
        f"{name.replace('_', '-')} {format_money(micros, digits=2)}"
        for name, micros in sorted(best.costs.items(), key=lambda item: -item[1])
        if micros >= min(5_000, best.cost // 20) and micros
    ]
    prices = " and ".join(
        f"{format_money(price, digits=2)} {_bought(best, market)}"
        for market, price in best.price_hour.items()
    )
    lines.append(f"money: {', '.join(money) or 'none'}; a machine-hour is {prices}")
    if plans.workload.limits.carbon:
        lines.append(
            f"carbon: {best.co2_kg:,.3g} kg CO2e ({best.co2_kg_low:,.3g} to"
            f" {best.co2_kg_high:,.3g}) of {best.energy_kwh:,.4g} kWh; grid: {best.grid}"
        )
    if moved := moving(best, plans):
        lines.append(f"moving: {moved}")
    if best.commit:
        lines.append(f"commitment: {_commitment(best)}")
    if "spot" in best.markets:
        lines.append(f"spot: {_on_spot(best)}")
    if best.network:
        lines.append(f"network: {best.network}")
    if best.not_ours:
        lines.append(f"launch: not by Tradewind: {best.not_ours}")
    if best.had < _SURELY_HAD:
        lines.append(f"capacity: {_capacity(best, plans)}")
    if not best.own and fleet.facts(best.provider).ends == "never":
        lines.append(
            "bill: a machine is paid for until a controller ends it (`tradewind run` or `watch`),"
            " also after it has shut down"
        )
    lines += _own_verdict(best, plans)
    return lines


def moving(best: Plan, plans: Plans) -> str:
    """What it costs that data or checkpoints lie elsewhere; empty where nothing."""
    data, store = plans.workload.data, plans.store
    parts = [
        f"{format_money(micros, digits=2)} {words}"
        for micros, words in (
            (best.bring_once, "to bring the data there"),
            (best.bring, "for the checkpoint of each restart"),
            (best.save, "an hour to write checkpoints back"),
        )
        if micros
    ]
    if not parts:
        return ""
    lies = " ".join(filter(None, (data.provider, data.region))) if data else ""
    if store is None:
        return f"{', '.join(parts)}: data and store are taken to be at {lies}"
    places = [f"the data is at {lies}"] if lies else []
    places.append(f"the store is at {' '.join(store)}")
    return f"{', '.join(parts)}: {', '.join(places)}"


def _on_spot(best: Plan) -> str:
    """What is expected of it, in words."""
    words = f"held for {span(best.spot_hours)} in all"
    if "on_demand" in best.markets:
        words = (
            f"the policy expects {span(best.spot_hours)} on spot"
            f" and {span(best.on_demand_hours)} on demand"
        )
    if best.interruptions >= 0.2:
        words += f"; interrupted {_times(best.interruptions)}"
    return f"{words}, by {best.spot_by}" if best.spot_by else words


def _bought(best: Plan, market: str) -> str:
    return (
        "held"
        if market == "reserved" and not best.commit
        else on_markets(best)
        if best.commit
        else MARKETS[market]
    )


def _commitment(best: Plan) -> str:
    """A commitment is paid whether it is used or not."""
    years = int(best.commit[0])
    whole = years * 8766 * best.nodes * best.price_hour["reserved"]
    return (
        f"{COMMITMENTS[best.commit]} of {machines(best)} is {format_money(round(whole), digits=2)} "
        "in all, used or not; only this work's hours are counted above"
    )


def _capacity(best: Plan, plans: Plans) -> str:
    """How likely the machines are there, where that is from, and what to do if they are not."""
    source = "a prior: no recent observation" if best.had_by == "prior" else best.had_by
    words = f"{format_chance(best.had)} likely to be available ({source})"
    others = [f"{machines(plan)} {at_place(plan)}" for plan in plans.plans[1:3]]
    return f"{words}; if not, {' or '.join(others)}" if others else words


def _times(number: float) -> str:
    return f"about {number:.0f} times" if number >= 1.5 else "perhaps once"


def _own_verdict(best: Plan, plans: Plans) -> list[str]:
    """Where there are machines of one's own: are they the better choice?"""
    if best.own:
        rented = next((plan for plan in plans.plans if not plan.own), None)
        if rented is None:
            return ["nothing that can be rented keeps the limits"]
        return [
            f"renting would cost more: {machines(rented)} {at_place(rented)} is "
            f"{about_cost(rented)} in {span(rented.hours)}"
        ]
    held = "reserved" in best.markets and not best.commit
    cheaper = "what you hold" if held else "renting"
    return [
        f"your own {loser.instance_type} would take {span(loser.hours)} and "
        f"{format_money(loser.cost, digits=2)}: "
        + (f"{cheaper} is cheaper" if loser.cost > best.cost else f"it {loser.why}")
        for loser in plans.losers
        if loser.own and loser.hours is not None and loser.cost is not None
    ]


def _show_later(plans: Plans) -> None:
    """What another day would save, and what a day less would cost."""
    best = plans.best
    if best is None or plans.deadline_hours is None:
        return
    parts, before = [], best.cost
    for later in plans.later:
        by = span(later.deadline_hours)
        if later.deadline_hours < plans.deadline_hours:
            said = "nothing would do"
            if later.plan is not None:
                said = format_money(later.plan.cost, digits=2)
            parts.append(f"in {by}: {said}")
        elif later.plan is not None and later.plan.cost < 0.98 * before:
            before = later.plan.cost
            saved = format_money(best.cost - later.plan.cost, digits=2)
            parts.append(f"in {by}: {format_money(later.plan.cost, digits=2)} (saves {saved})")
    if len(parts) < 2:
        parts.append("more time would save little")
    render.paragraph(f"Another deadline: {'; '.join(parts)}.", indent="  ")


def _show_surer(plans: Plans) -> None:
    """What it costs to be surer to keep deadline and budget."""
    parts, before = [], ""
    for one in plans.surer:
        cost = format_money(one.plan.cost, digits=2) if one.plan else "nothing would do"
        chosen = one.confidence == plans.workload.limits.sure
        if cost != before or chosen:
            parts.append(f"{100 * one.confidence:.4g} % sure: {cost}")
        before = cost
    if len({part.partition(": ")[2] for part in parts}) > 1:
        render.paragraph(f"What certainty costs: {'; '.join(parts)}.", indent="  ")


def _show_front(plans: Plans, few: Sequence[Plan]) -> list[Plan]:
    """What less time would cost, and what more time would save. Gives what was shown."""
    assert plans.best is not None
    keys = {_key(plan) for plan in few}
    rest = [plan for plan in plans.front if _key(plan) not in keys]
    fast = [plan for plan in rest if plan.hours < plans.best.hours]
    slow = [plan for plan in rest if plan.hours >= plans.best.hours]
    shown: list[Plan] = []
    for title, chosen in (
        ("\nFaster for more:", _spread(_apart(fast), _FRONT)),
        ("\nCheaper, but not within your limits:", _spread(slow, _FRONT // 2)),
    ):
        if chosen:
            click.echo(title)
            plan_table(chosen)
            shown += chosen
    return shown


def _key(plan: Plan) -> tuple[str, str, str, int, tuple[str, ...]]:
    return plan.provider, plan.region, plan.instance_type, plan.nodes, plan.markets


def _apart(plans: Sequence[Plan]) -> list[Plan]:
    """Without those that are hardly faster than one that costs less."""
    found: list[Plan] = []
    for plan in reversed(plans):
        if not found or plan.hours < _FASTER * found[-1].hours:
            found.append(plan)
    return found[::-1]


def _spread(plans: Sequence[Plan], most: int) -> list[Plan]:
    """So many of them, with even steps between their times; the first and the last always."""
    if len(plans) <= most:
        return list(plans)
    first, last = log(plans[0].hours), log(plans[-1].hours)
    found: list[Plan] = []
    for step in range(most):
        wanted = first + (last - first) * step / (most - 1)
        nearest = min(plans, key=lambda plan: abs(log(plan.hours) - wanted))
        if nearest not in found:
            found.append(nearest)
    return found


# -- what lost -----------------------------------------------------------------------------------


def _show_losers(plans: Plans, few: Iterable[Plan]) -> None:
    if not plans.losers:
        return
    shown = {family for plan in few if (family := _family(plan.accelerator))}
    famous = _famous(plans.losers, shown)
    if famous:
        click.echo("\nWhy others lost:")
        rows = [
            [how_many(loser), loser.provider, loser.instance_type, loser.why] for loser in famous
        ]
        render.table(
            [
                Column("ACCELERATOR", keep=11),
                Column("PROVIDER", keep=7),
                Column("TYPE", keep=8, grow=True),
                Column("WHY", keep=10, grow=True, least=40),
            ],
            rows,
        )
    click.echo()
    hint = "--why TYPE explains one, --all-losers lists them"
    render.paragraph(f"{_counts(plans)}. {hint}.", dim=True)


def _counts(plans: Plans) -> str:
    losers = plans.losers
    other = "other types" if plans.best else "types"
    parts = [
        f"{number:,} {KINDS.get(kind, kind)}"
        for kind, number in Counter(loser.kind for loser in losers).most_common()
    ]
    return f"{len(losers):,} {other} lost: {', '.join(parts)}"


def _family(accelerator: str) -> str:
    for name in _FAMILIES:
        if accelerator.startswith(name) and not accelerator[len(name) :][:1].isdigit():
            return name
    return ""


def _famous(losers: Iterable[Loser], shown: set[str]) -> list[Loser]:
    """Of each well-known family that the table does not show, the one that came nearest."""
    by_family: dict[str, Loser] = {}
    for loser in losers:
        family = _family(loser.accelerator)
        if not family or family in shown or loser.kind == "limits":
            continue
        if family not in by_family or _nearness(loser) < _nearness(by_family[family]):
            by_family[family] = loser
    return [by_family[name] for name in _FAMILIES if name in by_family][:_FAMOUS]


def _nearness(loser: Loser) -> tuple[int, float, float]:
    """First what kept the deadline, by its cost; then the fastest; then machines of eight."""
    order = {"money": 0, "capacity": 0, "time": 1, "memory": 2, "price": 4}
    measure = loser.cost if loser.kind in ("money", "capacity") else loser.hours
    return (
        order.get(loser.kind, 3),
        float(measure or 0),
        abs(loser.accelerator_count - 8),
    )


def losers(plans: Plans) -> None:
    """All of them, what came nearest first."""
    order = sorted(plans.losers, key=lambda loser: (loser.cost is None, *_nearness(loser)))
    render.table(
        [
            Column("PROVIDER", keep=7),
            Column("TYPE", keep=9, grow=True),
            Column("ACCELERATOR", keep=8),
            Column("TIME", right=True, keep=5),
            Column("COST", right=True, keep=5),
            Column("WHY", keep=10, grow=True, least=56),
        ],
        [
            [
                loser.provider,
                loser.instance_type,
                how_many(loser),
                "" if loser.hours is None else span(loser.hours),
                "" if loser.cost is None else f"${dollars(usd(loser.cost))}",
                loser.why,
            ]
            for loser in order
        ],
    )
    render.note(f"\n{_counts(plans)}.")


# -- nothing is right ----------------------------------------------------------------------------


def _show_what_would_do(plans: Plans) -> None:
    render.paragraph(f"{plans.workload.name}: {work_words(plans.workload)}", indent="  ", bold=True)
    if limits := limit_words(plans.workload):
        render.paragraph(f"limits: {limits}", indent="  ", dim=True)
    if plans.relaxations:
        click.echo("\nNothing keeps every limit. Any of these changes would do:")
        for change in sorted(plans.relaxations, key=lambda r: r.plan.cost):
            plan = change.plan
            render.paragraph(f"  {change.why}: {in_words(plan)}", indent="    ")
    elif plans.front:
        click.echo()
        render.paragraph("No plan keeps every limit, and relaxing one alone is not enough.")
        fastest, cheapest = plans.front[0], plans.front[-1]
        for words, plan in (("fastest", fastest), ("cheapest", cheapest)):
            render.paragraph(f"  the {words} of all: {in_words(plan)}", indent="    ")
    else:
        click.echo("\nNothing can do this work at all.")
    if plans.front:
        click.echo("\nWithout limits on time and money:")
        plan_table(_spread(plans.front, _FRONT))
    _show_losers(plans, ())


def _show_assumptions(plans: Plans) -> None:
    prices = ""
    if plans.prices_from:
        until = f" to {plans.prices_until}" if plans.prices_until != plans.prices_from else ""
        prices = f"; prices of {plans.prices_from}{until}"
    text = (
        f"{render.count(plans.candidates, 'option')} of {plans.offers:,} offers and "
        f"{plans.layouts:,} layouts compared{prices}; ranges hold in 4 of 5 cases"
    )
    notes = [text, *(note[:1].upper() + note[1:] for note in plans.notes)]
    render.paragraph(". ".join(notes) + ".", dim=True)
