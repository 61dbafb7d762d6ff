"""`tradewind sim market`: runs in markets that are written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError
from tradewind.base.units import format_hours, format_money
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.sim.market.judged import Judged


@click.command(
    "market",
    cls=Command,
    examples="""
    # all that come with Tradewind
    tradewind sim market
    # one of them, and what happened there
    tradewind sim market sold-out-cheaper-zone --story
    # two hundred drawn by chance
    tradewind sim market --drawn 200 --jobs 2
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
@click.option(
    "--asleep", is_flag=True, help="Drawn with little money, and no controller for hours."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def market(
    markets: tuple[str, ...],
    story: bool,
    drawn: int | None,
    first: int,
    asleep: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Runs in scripted markets: prices, capacity, interruptions.

    The files, or their names, say what happens; without any, all that come with Tradewind. Each
    run must cost no more than 1.3 times the best fixed choice in hindsight and a start, no more
    than its budget, and be in time wherever on demand would have been."""
    from tradewind.sim.market import draw, script
    from tradewind.sim.market.judged import judged

    if drawn and markets:
        raise click.UsageError("--drawn takes no files: it draws markets by chance")
    if asleep and not drawn:
        raise click.UsageError("--asleep is of markets drawn by chance: --drawn N")
    if drawn:
        made = draw.asleep if asleep else draw.drawn
        scripts = [made(seed) for seed in range(first, first + drawn)]
    else:
        scripts = [script.load(name) for name in markets or script.shipped()]
    if story and len(scripts) > 1:
        raise click.UsageError("--story tells of one market: say which")
    found: list[Judged] = []
    with render.bars(["markets"], quiet=as_json or len(scripts) == 1) as bar:
        for each in judged(scripts, jobs, story=story):
            found.append(each)
            bar("markets", len(found), len(scripts))
            if story and not as_json:
                click.echo("\n".join(each.story))
    broken = [each for each in found if each.broken]
    if as_json:
        rows = [_row(each) for each in found]
        render.print_json({"markets": rows, "broken": len(broken)} | _shares(found))
    else:
        _print(found if not drawn else sorted(broken, key=_excess, reverse=True)[:20])
        if drawn:
            click.echo(_words(found))
        click.echo(f"{render.count(len(found), 'market')}, {len(broken)} broken")
    if broken and not drawn:
        raise TradewindError(
            f"{broken[0].name}: {'; '.join(broken[0].broken)}",
            hint="`tradewind sim market NAME --story` tells how",
        )


def _row(each: Judged) -> dict[str, Any]:
    return {
        "market": each.name,
        "says": each.says,
        "outcome": each.outcome or "at work",
        "cost_usd": each.cost / 1e6,
        "most_usd": each.most / 1e6,
        "hours": each.done_s / 3600,
        "legs": each.legs,
        "launches": each.asked,
        "broken": list(each.broken),
        "bounds": each.bounds,
    }


def _shares(found: list[Judged]) -> dict[str, Any]:
    from tradewind.sim.market.judged import BOUNDS

    return {
        "bounds": {
            bound: {
                "broken": sum(bound in each.bounds for each in found),
                "worst": max((each.bounds.get(bound, 0.0) for each in found), default=0.0),
            }
            for bound in BOUNDS
        }
    }


def _words(found: list[Judged]) -> str:
    """Of each bound: how many do not keep it, and by how much the worst does not."""
    said = {
        "dear": "cost more than 1.3 times the best fixed way and a start",
        "any": "cost more than that against gambles and days of waiting, too",
        "over": "cost more than their budget",
        "late": "were late where on demand was free all the time",
    }
    lines = []
    for bound, stands in _shares(found)["bounds"].items():
        share = 100 * stands["broken"] / len(found)
        worst = f"; the worst {stands['worst']:.2f} times that" if stands["broken"] else ""
        lines.append(f"{share:5.2f} % {said[bound]}{worst}")
    return "\n".join(lines)


def _excess(each: Judged) -> float:
    return max(each.bounds.values(), default=0.0)


def _print(found: list[Judged]) -> None:
    wide = max((len(each.name) for each in found), default=0)
    for each in found:
        cost = format_money(each.cost, digits=2)
        took = format_hours(each.done_s / 3600)
        legs = render.count(each.legs, "leg")
        outcome = each.outcome or "at work"
        click.echo(f"{each.name:<{wide}}  {outcome:<13} {cost:>9}  {took:>8}  {legs:>7}")
        for wrong in each.broken:
            click.echo(f"{'':<{wide}}  {wrong}")
