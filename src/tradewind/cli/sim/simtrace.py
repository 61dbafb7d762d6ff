"""`tradewind sim trace`: one workload on one measured window, by several policies."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import format_money
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.bench.spot import listed

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.model import Market
    from tradewind.model.plan import Plan, Plans
    from tradewind.pictures.spotcase import SpotCaseData
    from tradewind.spot.cases import Case, Group
    from tradewind.spot.series import Series

_SOFT = 1.5  # of the work's time, where the workload has no deadline
_MARKETS: tuple[Market, Market] = ("on_demand", "spot")
_SHOWN = "greedy,uniform,tradewind"


@click.command(
    "trace",
    cls=Command,
    examples="""
    # would it have been in time, from hour 24 on?
    tradewind sim trace work.yaml --traces spot.csv --start 24
    """,
)
@click.argument("workload", metavar="WORKLOAD")
@click.option("--traces", required=True, metavar="FILE", help="Series of spot capacity, CSV.")
@click.option(
    "--series",
    multiple=True,
    metavar="ID",
    help="Which of them, by id or zone; several are zones of one case. Default: the first.",
)
@click.option(
    "--start",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="H",
    help="Hours into the series.",
)
@click.option(
    "--policies", default=_SHOWN, show_default=True, metavar="NAMES", help="Separated by commas."
)
@click.option("--plot", metavar="FILE", help="Draw it into FILE.png, .svg or .html.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def trace(
    workload: str,
    traces: str,
    series: tuple[str, ...],
    start: float,
    policies: str,
    plot: str | None,
    as_json: bool,
) -> None:
    """One workload on a measured window of spot capacity, by several policies.

    Work, restart and prices are those of the workload's best plan."""
    from tradewind.policy import names
    from tradewind.spot.series import read

    if not isfinite(start):
        raise InvalidValue(f"--start is {start}", hint="hours into the series")
    chosen = listed(policies, "--policies")
    for name in chosen:
        names.named(name)
    group = _group(read(Path(traces)), series)
    case, words = _case(workload, group, start)
    drawn = _data(case, group, chosen)
    if plot:
        from tradewind import pictures

        note = f"Tradewind, {words}; series {group.name} from {start:g} h"
        with render.busy(f"drawing {plot}"):
            pictures.draw([drawn], Path(plot), title="Spot with a deadline", note=note)
    _show(drawn, words, as_json)


def _group(found: list[Series], wanted: tuple[str, ...]) -> Group:
    from tradewind.spot import cases

    if not wanted:
        return cases.single(found[0], 1)
    picked: list[Series] = []
    for name in wanted:
        match = [s for s in found if name in (s.trace_id, s.zone)]
        if len(match) != 1:
            ids = [s.trace_id for s in (match or found)]
            raise NotFound(
                f"there are {len(match)} series called {name!r}",
                hint=f"name one of {', '.join(ids)}",
                choices=ids,
            )
        if all(match[0] is not one for one in picked):
            picked.append(match[0])
    if len(picked) == 1:
        return cases.single(picked[0], 1)
    groups = cases.groups(picked, 1)
    if len(groups) != 1 or len(groups[0].zones) != len(picked):
        raise InvalidValue(
            "those series do not go together",
            hint="zones of a case are of one provider, accelerator and gap, and overlap in time",
        )
    return groups[0]


def _case(file: str, group: Group, start_h: float) -> tuple[Case, str]:
    """With what it is about, in words."""
    from tradewind import workload
    from tradewind.api.planned import on_spot, plan
    from tradewind.catalog import files as catalogs
    from tradewind.spot.cases import Case, Config

    catalog = catalogs.load()
    known = workload.known_names(catalog)
    with render.busy("planning"):
        work = workload.load(file, now=clock.now(), known=known)
        plans = plan(work, catalog=catalog)
        more = on_spot(work, catalog).plans if plans.best else ()
    best, safe, spot = _priced(plans, more, catalog, file)
    hour = 3600
    overhead_s = max(round(best.startup_hours * hour), 1)
    due_h = plans.deadline_hours or _SOFT * best.work_hours + best.startup_hours
    config = Config(max(round(best.work_hours * hour), 1), round(due_h * hour), overhead_s)
    window = config.window(group.gap_s)
    at = int(start_h * hour // group.gap_s)
    if at + window > group.up.shape[1]:
        have_h = group.up.shape[1] * group.gap_s / hour
        raise InvalidValue(
            f"{group.name} has {have_h:.0f} h; {window * group.gap_s / hour:.0f} h from"
            f" {start_h:g} h on are not there"
        )
    up = group.up[:, at : at + window].tolist()
    words = (
        f"{plans.workload.name} on {best.nodes} × {best.instance_type} of {best.provider}, an hour"
        f" {format_money(spot, digits=2)} on spot and {format_money(safe, digits=2)} on-demand"
    )
    if plans.deadline_hours is None:
        words += "; without a deadline, half as much time again as the work takes"
    return Case(config, group.zones, group.gap_s, up, [[spot] * window for _ in up], safe), words


def _priced(
    plans: Plans, more: Sequence[Plan], catalog: Catalog, file: str
) -> tuple[Plan, int, int]:
    """The best plan whose machines can be had on demand and on spot, and those prices."""
    if plans.best is None:
        raise NotFound("no plan keeps every limit", hint=f"`tradewind plan {file}` says why")
    for found in (plans.best, *plans.plans, *more):
        safe, spot = (_price(catalog, found, market) for market in _MARKETS)
        if safe and spot:
            return found, safe * found.nodes, spot * found.nodes
    best = plans.best
    raise NotFound(
        f"neither {best.provider} {best.instance_type} nor the next best machines have both a"
        " spot and an on-demand price",
        hint="name providers that have both under `limits:`, such as `providers: [aws]`",
    )


def _price(catalog: Catalog, found: Plan, market: Market) -> int | None:
    """Of one machine of the plan's type: the plan's own price, else the cheapest there is."""
    if market in found.price_hour:
        return found.price_hour[market]
    offers = catalog.offers(
        provider=found.provider,
        instance_type=found.instance_type,
        market=market,
        today=clock.today(),
    )
    prices = [price.micros_hour for offer in offers if (price := offer.price(market))]
    return min(prices, default=None)


def _data(case: Case, group: Group, chosen: list[str]) -> SpotCaseData:
    import numpy as np

    from tradewind.pictures.spotcase import Course, SpotCaseData
    from tradewind.policy import names
    from tradewind.spot.optimum import optimum
    from tradewind.spot.story import tell

    courses = []
    for name in chosen:
        story = tell(case, name, names.named(name))
        end = story.outcome.finish_s
        courses.append(
            Course(
                name,
                tuple(story.outcome.held),
                tuple(done / case.config.work_s for done in story.done_s),
                tuple(story.cost),
                story.outcome.late,
                story.outcome.restarts,
                None if end is None else end / 3600,
            )
        )
    least = optimum(
        np.array([case.up]), np.array([case.prices]), case.on_demand, case.gap_s, case.config
    )
    return SpotCaseData(
        group.zones,
        tuple(map(tuple, case.up)),
        case.gap_s / 3600,
        case.config.work_s / 3600,
        case.config.deadline_s / 3600,
        float(least[0]) / 3600,
        tuple(courses),
    )


def _show(drawn: SpotCaseData, words: str, as_json: bool) -> None:
    table = drawn.tables()[0]
    if as_json:
        found: dict[str, Any] = {
            "on": words,
            "work_h": round(drawn.work_h, 3),
            "deadline_h": round(drawn.deadline_h, 3),
            "optimum_usd": round(drawn.optimum / 1e6, 4),
            "policies": {
                c.name: {
                    "cost_usd": round(c.spent[-1] / 1e6, 4),
                    "gap_to_optimum": round(c.spent[-1] / drawn.optimum - 1, 4),
                    "late": c.late,
                    "restarts": c.restarts,
                    "finish_h": c.finish_h and round(c.finish_h, 3),
                }
                for c in drawn.courses
            },
        }
        render.print_json(found)
        return
    click.echo(words)
    click.echo(drawn.heading)
    widths = [max(len(row[n]) for row in (table.columns, *table.rows)) for n in range(7)]
    for row in (table.columns, *table.rows):
        cells = [
            row[0].ljust(widths[0]),
            *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)),
        ]
        click.echo("  ".join(cells).rstrip())
