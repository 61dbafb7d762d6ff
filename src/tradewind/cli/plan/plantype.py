"""One type of machine: why it won or lost, and what would do instead of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from tradewind.base.errors import NotFound
from tradewind.base.units import format_chance, format_money
from tradewind.base.units import format_hours as span
from tradewind.cli import render
from tradewind.cli.plan.plantable import (
    about_cost,
    at_place,
    how_many,
    keeps_limits,
    machines,
    plan_table,
)
from tradewind.cli.plan.schema import work_words

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.catalog.clusters import Link
    from tradewind.model import Workload
    from tradewind.model.plan import Plan, Plans


class Named(NamedTuple):
    provider: str
    instance_type: str
    accelerator: str


def types_called(catalog: Catalog, text: str) -> list[Named]:
    """`TYPE` or `provider/TYPE`, in any capitals, of whoever sells it."""
    from tradewind.catalog.names import nearest

    table = catalog.table.columns
    everything = dict.fromkeys(
        Named(table["provider"][row], table["instance_type"][row], table["accelerator"][row])
        for row in range(len(catalog.table))
        if table["accelerator"][row]
    )
    wanted = text.strip().lower()
    found = [
        one
        for one in everything
        if wanted in (one.instance_type.lower(), f"{one.provider}/{one.instance_type}".lower())
    ]
    if found:
        return found
    names = list(dict.fromkeys(one.instance_type for one in everything))
    inside = [name for name in names if len(wanted) > 2 and wanted in name.lower()][:4]
    close = inside or list(nearest(text, names))
    if not close and wanted:
        chips = {one.accelerator for one in everything if wanted in one.accelerator.lower()}
        close = [one.instance_type for one in everything if one.accelerator in chips][:4]
    raise NotFound(
        f"no type of machine with accelerators is called {text!r}",
        hint=f"did you mean {' or '.join(close)}?" if close else "`tradewind offers` lists types",
        choices=close,
    )


def why(
    plans: Plans,
    named: Sequence[Named],
    ways: Sequence[Plan],
    links: Mapping[tuple[str, str], Link],
    as_json: bool,
) -> None:
    """`links`: the network between machines of each type."""
    keys = {(one.provider, one.instance_type) for one in named}
    lost = [loser for loser in plans.losers if (loser.provider, loser.instance_type) in keys]
    best = plans.best
    won = best is not None and (best.provider, best.instance_type) in keys
    order = sorted(ways, key=lambda plan: (not keeps_limits(plan, plans), plan.cost))
    if as_json:
        from tradewind.planning.document import loser_json, plan_json

        render.print_json(
            {
                "won": won,
                "lost": [loser_json(loser) for loser in lost],
                "ways": [plan_json(plan) for plan in order],
                "networks": [
                    {
                        "provider": provider,
                        "instance_type": name,
                        "gbps": link.gbps or None,
                        "why": link.words,
                    }
                    for (provider, name), link in links.items()
                ],
            }
        )
        return
    if won:
        click.secho(f"{best.instance_type} of {best.provider} won." if best else "", bold=True)
        render.paragraph(_why_it_won(plans))
    for loser in lost:
        render.paragraph(
            f"{loser.instance_type} of {loser.provider} ({how_many(loser)}) lost: {loser.why}.",
            bold=True,
        )
        if best is not None and loser.hours is not None and loser.cost is not None:
            render.paragraph(
                f"At best it takes {span(loser.hours)} and {format_money(loser.cost, digits=2)}; "
                f"{machines(best)} takes {span(best.hours)} and "
                f"{format_money(best.cost, digits=2)}."
            )
    for (provider, name), link in links.items():
        several = f"Several {name} of {provider}"
        if link.gbps:
            render.paragraph(f"{several} are connected: {link.words}.", dim=True)
        else:
            render.paragraph(f"{several} were not considered: {link.words}.", dim=True)
    if order:
        good = sum(keeps_limits(plan, plans) for plan in order)
        click.echo(f"\n{render.count(len(order), 'way')} to use it, {good} within your limits:")
        plan_table(order)
    elif won or lost:
        render.note("There is no way to use it at all.")


def _why_it_won(plans: Plans) -> str:
    best = plans.best
    assert best is not None
    second = next((p for p in plans.plans if p.instance_type != best.instance_type), None)
    if second is None:
        return "Nothing else keeps every limit."
    more = second.cost / max(best.cost, 1) - 1
    much = f"{more:.0%} more" if more >= 0.01 else "hardly more"
    if more >= 1:
        much = f"{more + 1:.1f}×"
    return (
        f"It is the cheapest that keeps every limit, by what it costs and how likely it is to be "
        f"available ({format_chance(best.had)}): {format_money(best.cost, digits=2)} in "
        f"{span(best.hours)}. The next type, {machines(second)} at {second.provider}, costs "
        f"{much}: {format_money(second.cost, digits=2)} in {span(second.hours)}."
    )


def instead(work: Workload, theirs: Plan, better: Sequence[Plan]) -> None:
    """Right-sizing: the machine that was named, and what does its work for less."""
    render.paragraph(f"{work.name}: {work_words(work)}", dim=True)
    if not better:
        render.paragraph(
            f"Keep {machines(theirs)}: nothing is as fast and cheaper.",
            bold=True,
        )
    else:
        first = better[0]
        saved = 1 - first.cost / max(theirs.cost, 1)
        render.paragraph(
            f"Instead of {machines(theirs)} {at_place(theirs)} ({span(theirs.hours)}, "
            f"{about_cost(theirs)})"
            f" take {machines(first)} {at_place(first)}: {saved:.0%} less, {about_cost(first)} in "
            f"{span(first.hours)}.",
            bold=True,
        )
    click.echo()
    plan_table([theirs, *better])
