"""`tradewind sim market`: runs in markets that are written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError
from tradewind.base.units import format_hours, format_money
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.sim.market.play import Played
    from tradewind.sim.market.script import Script


@click.command(
    "market",
    cls=Command,
    examples="""
    # all that come with Tradewind
    tradewind sim market
    # one of them, and what happened there
    tradewind sim market sold-out-cheaper-zone --story
    # a hundred drawn by chance
    tradewind sim market --drawn 100
    """,
)
@click.argument("markets", nargs=-1, metavar="[FILE]...")
@click.option("--story", is_flag=True, help="Tell what happened; of one market.")
@click.option(
    "--drawn", type=click.IntRange(1, 1_000_000), metavar="N", help="So many, by chance, instead."
)
@click.option(
    "--from", "first", type=click.IntRange(min=0), default=0, metavar="SEED", help="The first seed."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def market(
    markets: tuple[str, ...], story: bool, drawn: int | None, first: int, as_json: bool
) -> None:
    """Runs in scripted markets: prices, capacity, interruptions.

    The files, or their names, say what happens; without any, all that come with Tradewind. Each
    run must cost no more than 1.3 times the best fixed choice in hindsight and a start, no more
    than its budget, and be in time wherever on demand would have been."""
    from tradewind.sim.market import bounds, draw, play, script

    if drawn and markets:
        raise click.UsageError("--drawn takes no files: it draws markets by chance")
    if drawn:
        scripts = [draw.drawn(seed) for seed in range(first, first + drawn)]
    else:
        scripts = [script.load(name) for name in markets or script.shipped()]
    if story and len(scripts) > 1:
        raise click.UsageError("--story tells of one market: say which")
    rows: list[dict[str, Any]] = []
    with render.bars(["markets"], quiet=as_json or len(scripts) == 1) as bar:
        for number, each in enumerate(scripts, 1):
            played = play.play(each, tell=story)
            rows.append(_row(each, played, bounds.broken(each, played), bounds.most(each)))
            bar("markets", number, len(scripts))
            if story and not as_json:
                click.echo("\n".join(played.story))
    broken = [row for row in rows if row["broken"]]
    if as_json:
        render.print_json({"markets": rows, "broken": len(broken)})
    else:
        _print(rows if not drawn else sorted(broken, key=_excess, reverse=True)[:20])
        click.echo(f"{render.count(len(rows), 'market')}, {len(broken)} broken")
    if broken and not drawn:
        raise TradewindError(
            f"{broken[0]['market']}: {'; '.join(broken[0]['broken'])}",
            hint="`tradewind sim market NAME --story` tells how",
        )


def _row(script: Script, played: Played, broken: list[str], most: float) -> dict[str, Any]:
    return {
        "market": script.name,
        "says": script.says,
        "outcome": played.outcome or "at work",
        "cost_usd": played.cost / 1e6,
        "most_usd": most / 1e6,
        "hours": played.done_s / 3600,
        "legs": played.legs,
        "launches": played.asked,
        "broken": broken,
    }


def _excess(row: dict[str, Any]) -> float:
    return float(row["cost_usd"] / row["most_usd"]) if row["most_usd"] else 0.0


def _print(rows: list[dict[str, Any]]) -> None:
    wide = max((len(row["market"]) for row in rows), default=0)
    for row in rows:
        cost = format_money(round(row["cost_usd"] * 1e6), digits=2)
        took = format_hours(row["hours"])
        legs = render.count(row["legs"], "leg")
        line = f"{row['market']:<{wide}}  {row['outcome']:<13} {cost:>9}  {took:>8}  {legs:>7}"
        click.echo(line)
        for wrong in row["broken"]:
            click.echo(f"{'':<{wide}}  {wrong}")
