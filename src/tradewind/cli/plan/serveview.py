"""`tradewind plan` of a model to be served: the plan, what targets cost, what else there is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.web import serve_words as words

if TYPE_CHECKING:
    from tradewind.model.serveplan import (
        Alternative,
        ServingPlan,
        ServingPlans,
        ServingPool,
    )

_FEW = 5  # losers that are shown
_BAR = " ▁▂▃▄▅▆▇█"


def show(plans: ServingPlans) -> None:
    click.secho(f"{plans.workload.name}: {words.traffic(plans)}", bold=True)
    render.paragraph(words.lengths(plans))
    render.paragraph(f"targets: {words.targets(plans)}")
    click.echo()
    if plans.best is None:
        _show_nearest(plans)
        return
    _show_plan(plans.best)
    if plans.single is not None:
        render.note(
            f"one kind of machine for all requests: {words.money(plans.single.cost)} a month on "
            f"{plans.single.pools[0].instance_type}"
        )
    if plans.one_site is not None:
        render.note(words.one_site(plans.one_site))
    for one in plans.targets_cost:
        render.note(words.target_cost(one))
    for grown in plans.growth:
        render.note(words.growth(grown))
    _show_alternatives(plans.alternatives)
    _show_losers(plans)
    for text in plans.notes:
        render.note(text)


def losers(plans: ServingPlans) -> None:
    render.table(
        [render.Column("ACCELERATOR"), render.Column("$/MONTH", right=True),
         render.Column("WHY", grow=True, wrap=True)],
        [
            [one.accelerator, "" if one.cost is None else words.money(one.cost), one.reason]
            for one in plans.losers
        ],
    )  # fmt: skip


def _show_plan(plan: ServingPlan) -> None:
    click.secho(
        f"{words.money(plan.cost)} a month, ${plan.usd_per_million:.3g} a million tokens "
        f"(${plan.usd_per_million_out:.3g} a million out)",
        bold=True,
    )
    for pool in plan.pools:
        _show_pool(pool)
    render.labelled(
        "chance  ",
        f"{plan.chance:.3%} that enough machines are up in the worst hour; "
        f"{words.money(plan.starting)} a month for machines that are starting",
    )
    render.labelled("had     ", words.had(plan.had))


def _show_pool(pool: ServingPool) -> None:
    if pool.sizes:
        click.secho(pool.sizes, bold=True)
    render.labelled(
        "machines",
        f" {words.machines(pool)}, {words.where(pool)}; {words.prices(pool)}",
    )
    if pool.committed:
        render.labelled("commit  ", f" {words.commitment(pool)}")
    if pool.users:
        render.labelled("users   ", f" {words.users(pool)}")
    render.labelled(
        "layout  ",
        f" {words.layout(pool)}; {words.digits(pool.rate_per_machine)} requests a second within "
        "the targets",
    )
    if pool.caveat:
        render.note(pool.caveat)
    for hours, several in _spans(pool):
        click.echo(f"  {hours:<13} {several}")
    click.echo(f"  {'by hour (UTC)':<13} {_bars(pool)}")
    render.labelled(
        "fullest ",
        f" {words.latencies(pool)} at the targets' percentiles; {pool.headroom:.0%} more would "
        "still be inside",
    )
    render.note(words.margin(pool))


def _spans(pool: ServingPool) -> list[tuple[str, str]]:
    """Hours of a day that are alike, for days; for longer cycles only the least and the most."""
    hours = pool.hours
    if len(hours) != 24:
        fewest = min(hours, key=lambda hour: hour.on_demand + hour.spot)
        most = max(hours, key=lambda hour: hour.on_demand + hour.spot)
        found = [("at least", words.held(fewest))]
        return [*found, ("at most", words.held(most))]
    found = []
    start = 0
    for _, group in groupby(hours, key=lambda hour: (hour.on_demand, hour.spot, hour.needed)):
        alike = list(group)
        found.append((f"{start:02d}:00-{start + len(alike):02d}:00", words.held(alike[0])))
        start += len(alike)
    return found


def _bars(pool: ServingPool) -> str:
    counts = [hour.on_demand + hour.spot for hour in pool.hours]
    top = max(max(counts), 1)
    return "".join(_BAR[round((len(_BAR) - 1) * count / top)] for count in counts)


def _show_alternatives(found: Sequence[Alternative]) -> None:
    if not found:
        return
    click.echo()
    rows = []
    for one in found:
        rows.append([one.provider, one.what, words.money(one.cost), f"${one.usd_per_million:.3g}",
                     words.crossover(one), one.note])  # fmt: skip
    render.table(
        [render.Column("INSTEAD"), render.Column("WHAT", grow=True),
         render.Column("$/MONTH", right=True), render.Column("$/M TOKENS", right=True),
         render.Column("THE PLAN IS CHEAPER"), render.Column("NOTE", grow=True, keep=2)],
        rows,
    )  # fmt: skip


def _show_losers(plans: ServingPlans) -> None:
    priced = [one for one in plans.losers if one.cost is not None][:_FEW]
    if priced:
        click.echo()
        listed = ", ".join(f"{one.accelerator} {words.money(one.cost or 0)}" for one in priced)
        render.labelled("rejected", f" {listed}; --all-losers lists all {len(plans.losers)}")


def _show_nearest(plans: ServingPlans) -> None:
    click.secho("nothing meets the targets within the limits", fg="red", bold=True)
    if words.nearest(plans):
        render.paragraph(words.nearest(plans))
    reasons: dict[str, list[str]] = {}
    for one in plans.losers:
        reasons.setdefault(one.reason, []).append(one.accelerator)
    for reason, names in sorted(reasons.items(), key=lambda pair: -len(pair[1]))[:_FEW]:
        more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
        render.note(f"{', '.join(names[:_FEW])}{more}: {reason}")
    for change in plans.nearest.would_do if plans.nearest else ():
        render.note(f"it could be done {change}")


def hint(plans: ServingPlans) -> str:
    """What to do where there is no plan."""
    changes = plans.nearest.would_do if plans.nearest else ()
    if changes:
        return f"it could be done {changes[0]}"
    if not plans.losers:
        return "nothing on the market is within the limits: loosen one"
    return "no single change would do: loosen several targets or limits; --all-losers says why"
