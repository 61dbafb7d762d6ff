"""`tradewind carbon`: energy and CO2e of a workload, by place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import format_hours, format_money, usd
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.plan.plan import of_the_work, workload_of
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.model.plan import Plan


@click.command(
    "carbon",
    cls=Command,
    examples="""
    # what the work in a file emits, by place
    tradewind carbon work.yaml
    # so many hours on a machine
    tradewind carbon --hours 100 --on 8xH100-SXM
    """,
)
@click.argument("file", metavar="[WORKLOAD.yaml]", required=False)
@of_the_work
@click.option("--top", type=click.IntRange(1, 1000), default=12, show_default=True, help="Places.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: str | None, top: int, as_json: bool, **given: Any) -> None:
    """Energy and CO2e of a workload by place: the cheapest plan of each, those that nothing beats
    in both money and carbon, and what it costs to emit a tonne less.

    The work is told as to `tradewind plan`; `plan --carbon` plans with a limit or a price.
    """
    from tradewind.api import planned

    catalog = catalogs.load()
    work = workload_of(file, given, catalog)
    if work.serve is not None:
        raise InvalidValue("the workload is served; carbon is for work that ends")
    with render.busy("weighing"):
        plans = planned.planner(work, catalog, now=clock.now()).by_place()
    if not plans:
        raise NotFound("no plan keeps every limit", hint="`tradewind plan` says which binds")
    front = _front(plans)
    if as_json:
        render.print_json(
            {
                "places": [_fields(plan, plans[0], plan in front) for plan in plans],
                "decided_by": ["grid", "accelerator"],
            }
        )
        return
    _show(work.name, plans, front, top)


def _front(plans: list[Plan]) -> list[Plan]:
    """`plans` ascend in cost: each that emits less than all cheaper ones."""
    found: list[Plan] = []
    for plan in plans:
        if not found or plan.co2_kg < found[-1].co2_kg:
            found.append(plan)
    return found


def _usd_per_tonne(plan: Plan, cheapest: Plan) -> float | None:
    """For each tonne less than the cheapest plan emits."""
    less = cheapest.co2_kg - plan.co2_kg
    return usd(plan.cost - cheapest.cost) / less * 1000 if less > 0 else None


def _show(name: str, plans: list[Plan], front: list[Plan], top: int) -> None:
    cheapest, cleanest = plans[0], front[-1]
    render.paragraph(
        f"{name}: {cheapest.co2_kg:,.3g} kg CO2e ({cheapest.co2_kg_low:,.3g} to "
        f"{cheapest.co2_kg_high:,.3g}) where it is cheapest, {cheapest.place}; "
        f"{cleanest.co2_kg:,.3g} kg at {cleanest.place} for "
        f"{format_money(cleanest.cost - cheapest.cost, digits=2)} more.",
        bold=True,
    )
    render.paragraph(
        "What decides it: the grid of the place, then which accelerator does the work."
    )
    click.echo()
    # All of the front, and of the rest the cheapest.
    shown = sorted(front + [p for p in plans if p not in front][: max(top - len(front), 0)],
                   key=lambda plan: plan.cost)  # fmt: skip
    columns = [
        Column("PLACE", grow=True, least=16, keep=9), Column("ON", grow=True, keep=6, least=10),
        Column("COST", right=True, keep=9), Column("TIME", right=True, keep=4),
        Column("KWH", right=True, keep=7), Column("KG CO2E", right=True, keep=9),
        Column("RANGE", right=True, keep=3), Column("G/KWH", right=True, keep=6),
        Column("$ A TONNE LESS", right=True, keep=7), Column("", keep=8), Column("", keep=2),
    ]  # fmt: skip
    rows = []
    for plan in shown:
        per = _usd_per_tonne(plan, cheapest)
        rows.append(
            [
                plan.place,
                f"{plan.accelerators}× {plan.accelerator} {', '.join(plan.markets)}",
                render.money(plan.cost),
                format_hours(plan.hours),
                f"{plan.energy_kwh:,.0f}" if plan.energy_kwh >= 10 else f"{plan.energy_kwh:.2g}",
                f"{plan.co2_kg:,.3g}",
                f"{plan.co2_kg_low:,.3g}–{plan.co2_kg_high:,.3g}",
                f"{1000 * plan.co2_kg / plan.energy_kwh:,.0f}" if plan.energy_kwh else "",
                "" if per is None or plan is cheapest else f"{per:,.0f}",
                "front" if plan in front else "",
                "grid unknown" if plan.grid.startswith("unknown") else "",
            ]
        )
    render.table(columns, rows)
    unknown = sum(plan.grid.startswith("unknown") for plan in plans)
    render.note(
        f"{render.count(len(plans), 'place')}; in {unknown} the grid is not known and taken as"
        " dirty. "
        "Making machines, storage and networks are not counted (docs/commands/carbon.md)."
    )


def _fields(plan: Plan, cheapest: Plan, on_front: bool) -> dict[str, Any]:
    per = _usd_per_tonne(plan, cheapest)
    return {
        "place": plan.place,
        "provider": plan.provider,
        "region": plan.region,
        "instance_type": plan.instance_type,
        "nodes": plan.nodes,
        "accelerators": plan.accelerators,
        "accelerator": plan.accelerator,
        "markets": list(plan.markets),
        "cost_usd": usd(plan.cost),
        "hours": round(plan.hours, 4),
        "energy_kwh": round(plan.energy_kwh, 4),
        "co2_kg": round(plan.co2_kg, 4),
        "co2_kg_low": round(plan.co2_kg_low, 4),
        "co2_kg_high": round(plan.co2_kg_high, 4),
        "grid": plan.grid,
        "usd_per_tonne_less": per and round(per, 2),
        "front": on_front,
    }
