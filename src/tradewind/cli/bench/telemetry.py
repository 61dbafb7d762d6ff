"""`tradewind bench telemetry`: what a session adds to each step."""

from __future__ import annotations

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "telemetry",
    cls=Command,
    examples="""
    tradewind bench telemetry --steps 1000 --repeat 3
    """,
)
@click.option(
    "--steps", type=click.IntRange(100, 1_000_000), default=5000, show_default=True, metavar="N",
    help="In each round.",
)  # fmt: skip
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=7, show_default=True, help="How often."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(steps: int, repeat: int, as_json: bool) -> None:
    """What a session and its telemetry add to each step, against a bare loop. Needs torch."""
    from tradewind.bench import telemetry as bench

    with render.bars(["telemetry"], quiet=as_json) as bar:
        found = bench.measure(steps, repeat, lambda done, total: bar("telemetry", done, total))
    if as_json:
        render.print_json(found)
        return
    click.echo(f"{'microseconds a step':<36}{'step':>8}{'added':>8}{'processors':>12}")
    for world, ranks in found["ranks"].items():
        for rank, ways in enumerate(ranks):
            for way, taken in ways.items():
                name = f"{way}, rank {rank} of {world}" if world != "1" else f"{way}, one rank"
                line = f"{name:<36}{taken['step_us']:8.1f}"
                if way != "bare":
                    line += f"{taken['added_us']:8.1f}{taken['added_cpu_us']:12.1f}"
                click.echo(line)
    for title, value, limit in (
        ("processors, telemetry, rank 0 of 2", found["first_us"], bench.FIRST_LIMIT_US),
        ("  at worst", found["worst_us"], bench.WORST_LIMIT_US),
    ):
        verdict = "within" if value <= limit else "OVER"
        click.echo(f"{title:<36}{value:8.1f} µs  {verdict} {limit:g} µs")
