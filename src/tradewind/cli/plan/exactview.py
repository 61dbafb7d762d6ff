"""What people see of plans whose machines are named: where they are, and what an hour costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.base.units import format_chance, format_duration, format_money, usd
from tradewind.cli import render
from tradewind.cli.plan.plantable import at_region, dollars, in_words, machines
from tradewind.cli.plan.schema import limit_words, work_words
from tradewind.cli.render import Column
from tradewind.planning.words import old_prices

if TYPE_CHECKING:
    from tradewind.model.plan import Plan, Plans


def show(plans: Plans, top: int) -> None:
    best = plans.best
    assert best is not None
    if old := old_prices(plans):
        render.paragraph(f"{old[:1].upper()}{old[1:]}.")
    render.paragraph(f"{'Use' if best.own else 'Rent'} {in_words(best)}.", bold=True)
    stop = format_duration(round(best.hours * 3600), parts=2)
    lines = [
        f"{plans.workload.name}: {work_words(plans.workload)}",
        f"time: nobody has said how long it takes; stopped after {stop} of machine time at the"
        f" latest, by when it has cost {format_money(best.cost, digits=2)} at most",
        "how: as far as its session saves, a checkpoint every"
        f" {format_duration(best.checkpoint_every_s, parts=2)}",
    ]
    if limits := limit_words(plans.workload):
        lines.insert(1, f"limits: {limits}")
    for line in lines:
        render.paragraph(line, indent="  ", dim=True)
    click.echo()
    columns = [
        Column("WHERE", keep=8, grow=True, least=9),
        Column("TYPE", keep=9, grow=True, least=12),
        Column("ACCELERATOR", keep=9),
        Column("SPOT", right=True, keep=7),
        Column("ON DEMAND", right=True, keep=9),
        Column("HAD", right=True, keep=6),
    ]
    render.table(columns, [_row(plan) for plan in plans.plans[: max(top, 1)]])
    prices = ""
    if plans.prices_from:
        until = f" to {plans.prices_until}" if plans.prices_until != plans.prices_from else ""
        prices = f"; prices of {plans.prices_from}{until}"
    more = len(plans.plans) - top
    others = f"; {render.count(more, 'more place')} to fall back on" if more > 0 else ""
    render.paragraph(
        f"Dollars an hour for all machines. {render.count(plans.offers, 'offer')} of exactly such"
        f" machines compared{prices}{others}.",
        dim=True,
    )


def _row(plan: Plan) -> list[str]:
    chips = f"{plan.accelerators}× {plan.accelerator}" if plan.accelerator else ""
    held = plan.price_hour.get("reserved")
    demand = plan.price_hour.get("on_demand", held)
    return [
        at_region(plan),
        machines(plan),
        chips,
        _price(plan, plan.price_hour.get("spot")),
        _price(plan, demand) + (" held" if held is not None else ""),
        format_chance(plan.had),
    ]


def _price(plan: Plan, one: int | None) -> str:
    return "" if one is None else dollars(usd(one * plan.nodes))
