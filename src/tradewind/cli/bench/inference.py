"""`tradewind bench inference`: estimates of serving against published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "inference",
    cls=Command,
    examples="""
    tradewind bench inference --data inference.csv.gz
    # as for what nobody has measured yet
    tradewind bench inference --data inference.csv.gz \\
      --leave-out accelerators
    # given three rows of each stack, how near are its others?
    tradewind bench inference --data inference.csv.gz \\
      --own-points 3 --leave-out stacks
    """,
)
@click.option("--data", metavar="FILE", help="Measurements of serving, CSV or CSV.gz.")
@click.option("--models", metavar="FILE", help="Shapes of models that we do not know, CSV.")
@click.option(
    "--leave-out",
    type=click.Choice(["sources", "models", "accelerators", "engines", "families", "stacks"]),
    help="Refit without each in turn, and score its rows.",
)
@click.option(
    "--own-points",
    type=click.IntRange(1, 100),
    metavar="N",
    help="Give this many rows of each stack as a user's own points, and score its other rows.",
)
@click.option("--speed", is_flag=True, help="Estimates a second instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: str | None,
    models: str | None,
    leave_out: str | None,
    own_points: int | None,
    speed: bool,
    as_json: bool,
) -> None:
    """How near the estimates of serving come to published measurements."""
    from tradewind.bench import inference as bench

    if speed:
        found: dict[str, Any] = dict(bench.speed())
    elif not data:
        raise click.UsageError("--data FILE is missing: what to compare with")
    elif own_points:
        from tradewind.bench import own_points as sharpened

        with render.busy("estimating"):
            table = Path(models) if models else None
            found = sharpened.measure(Path(data), table, own_points, leave_out=leave_out)
    else:
        with render.busy("estimating"):
            table = Path(models) if models else None
            found = bench.measure(Path(data), table, leave_out=leave_out)
    if as_json:
        render.print_json(found)
        return
    by_source = found.pop("by_source", {})
    for name, value in found.items():
        if name == "unsupported_reasons":
            for reason, rows in value.items():
                click.echo(f"  unsupported {rows:>6}  {reason}")
        elif isinstance(value, dict):
            click.echo(f"{name:<20} {_line(value)}")
        else:
            click.echo(f"{name:<20} {value}")
    for source, measures in by_source.items():
        for name, figures in measures.items():
            click.echo(f"  {source:<26} {name:<11} {_line(figures)}")


def _line(figures: dict[str, Any]) -> str:
    return "  ".join(f"{key} {value}" for key, value in figures.items() if key != "by_source")
