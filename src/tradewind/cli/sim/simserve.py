"""`tradewind sim serve`: what serving a trace would have cost, by several policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import NotFound
from tradewind.base.units import format_money
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.bench.spot import listed
from tradewind.services.replay import PERIOD_S

if TYPE_CHECKING:
    from tradewind.sim.serving.compare import Result

_HOUR = 3600


@click.command(
    "serve",
    cls=Command,
    examples="""
    # requests: t_s,input_tokens,output_tokens
    tradewind sim serve --trace requests.csv
    # a small service
    tradewind sim serve --trace week_rates.csv --peak 5
    # with replicas on spot, by measured series
    tradewind sim serve --trace requests.csv --spot traces.csv
    """,
)
@click.option("--trace", required=True, metavar="FILE", help="Requests, or rates of windows.")
@click.option(
    "--spot", metavar="FILE", help="Series of spot capacity; replicas may be on spot then."
)
@click.option("--prices", metavar="FILE", help="Their spot prices. Default: usual ones.")
@click.option(
    "--notice",
    type=click.IntRange(0, 3600),
    default=120,
    show_default=True,
    metavar="S",
    help="Between an interruption notice and the interruption.",
)
@click.option(
    "--policy",
    metavar="NAMES",
    help="Separated by commas. Default: ours, and others each at its best setting in hindsight.",
)
@click.option(
    "--peak",
    type=click.FloatRange(0.1, 10_000),
    default=20.0,
    show_default=True,
    metavar="N",
    help="Replicas that the busiest ten minutes need; the trace is scaled so.",
)
@click.option("--model", default="llama-3.1-8b", show_default=True, help="What is served.")
@click.option("--on", "accelerator", default="L40S", show_default=True, help="One of these each.")
@click.option(
    "--ttft",
    type=click.FloatRange(0.01, 600),
    default=1.0,
    show_default=True,
    metavar="S",
    help="To the first token.",
)
@click.option(
    "--tpot",
    type=click.FloatRange(1, 10_000),
    default=60.0,
    show_default=True,
    metavar="MS",
    help="For each further one.",
)
@click.option(
    "--cold",
    type=click.IntRange(0, 7200),
    default=180,
    show_default=True,
    metavar="S",
    help="Until a replica is up.",
)
@click.option(
    "--goal",
    type=click.FloatRange(50, 99.99),
    default=99.0,
    show_default=True,
    metavar="%",
    help="Of requests, inside the target.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of arrivals."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def serve(
    trace: str,
    spot: str | None,
    prices: str | None,
    notice: int,
    policy: str | None,
    peak: float,
    model: str,
    accelerator: str,
    ttft: float,
    tpot: float,
    cold: int,
    goal: float,
    seed: int,
    as_json: bool,
) -> None:
    """What serving a trace would have cost, by several ways to scale.

    Ours is the `decide` that keeps services up, once a period. The optimum knows every request and
    every interruption beforehand, and lets nothing be late."""
    from tradewind.catalog import files as catalogs
    from tradewind.sim.serving import compare, demand, market
    from tradewind.sim.serving.capacity import Capacity, Service

    policies = tuple(listed(policy, "--policy")) if policy else compare.POLICIES
    for name in policies:
        if name not in compare.POLICIES:
            raise NotFound(
                f"there is no policy {name!r}",
                hint=f"one of {', '.join(compare.POLICIES)}",
                choices=compare.POLICIES,
            )
    catalog = catalogs.load()
    chip, _ = catalog.variant(accelerator)
    service = Service(model, chip.name, ttft, tpot / 1e3, cold, goal / 100)
    with render.busy("reading the trace"):
        capacity = Capacity(service, catalog)
        asked = demand.read(Path(trace), capacity.work, peak, seed)
        kind = capacity.replicas(asked.mix, asked.answer)
        seconds = len(asked.load)
        if spot is None:
            sold = market.without_spot(capacity.price, -(-seconds // PERIOD_S))
        else:
            told_prices = Path(prices) if prices else None
            sold = market.read(Path(spot), told_prices, capacity.price, seconds, notice, seed)
        least, start = compare.least(asked, kind, sold)
    found = []
    with render.busy("serving it"):
        found = list(compare.results(asked, kind, service.goal, start, sold, policies))
    rows = [_row(each, least) for each in found]
    words = f"{service.words}; {format_money(capacity.price, digits=2)} an hour"
    if as_json:
        told: dict[str, Any] = {**rows[0], "on": words, "hours": round(len(asked.load) / _HOUR, 2)}
        told["spot"] = {"series": sold.name, "zones": list(sold.zones)} if spot else None
        told["policies"] = {row["policy"]: row for row in rows}
        render.print_json(told)
        return
    click.echo(f"{words}\n{len(asked.load) / _HOUR:.1f} h, {asked.requests.sum():,.0f} requests")
    if spot:
        click.echo(f"spot: {sold.name}, in {', '.join(sold.zones)}; {notice} s notice")
    click.echo()
    _table(rows, least)


def _row(result: Result, least: float) -> dict[str, Any]:
    told = result.outcome
    return {
        "policy": result.policy,
        "cost": _usd(result.cost),
        "attainment": round(told.attainment, 5),
        "requests_lost": round(told.lost),
        "gpu_hours": round(told.seconds / _HOUR, 2),
        "optimum_cost": _usd(least),
        "over_optimum": round(result.cost / least, 4),
        "setting": result.setting,
        "kept": result.kept,
        "interruptions": result.interruptions,
    }


def _usd(micros: float) -> float:
    return round(micros / 1e6, 2)


def _table(rows: list[dict[str, Any]], least: float) -> None:
    head = ("policy", "cost", "× optimum", "in target", "lost", "setting")
    lines = [
        (
            row["policy"],
            f"${row['cost']:,.2f}",
            f"{row['over_optimum']:.2f}",
            f"{100 * row['attainment']:.2f} %" + ("" if row["kept"] else ", missed"),
            f"{row['requests_lost']:,}",
            row["setting"],
        )
        for row in rows
    ]
    lines.append(("optimum", f"${_usd(least):,.2f}", "1.00", "100.00 %", "0", ""))
    widths = [max(len(line[n]) for line in (head, *lines)) for n in range(len(head))]
    for line in (head, *lines):
        cells = [
            c.ljust(w) if n == 0 else c.rjust(w)
            for n, (c, w) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())
