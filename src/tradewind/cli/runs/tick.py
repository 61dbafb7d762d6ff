"""`tradewind tick`: one pass over all runs."""

from __future__ import annotations

import click

from tradewind.base import clock
from tradewind.cli import render
from tradewind.cli.base import Command

_TELLING_S = 60.0
"""Nobody sends a warning after this process, and a slow server may take its time."""


@click.command(
    "tick",
    cls=Command,
    examples="""
    # from cron, every minute
    tradewind tick --store s3://my-bucket/tradewind
    """,
)
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(store_url: str | None, as_json: bool) -> None:
    """One controller pass: look at every run, decide, record, act. For cron or a CI job."""
    from tradewind import store as stores
    from tradewind.api import fleet
    from tradewind.cli.runs import runview

    opened = stores.open(store_url)
    loop = fleet.loop(opened)
    troubles = loop.tick(_TELLING_S)
    runs = {name: memory.state for name, memory in loop.controller.memory.runs.items()}
    if as_json:
        render.print_json(
            {
                "store": opened.url,
                "runs": {name: state.phase for name, state in runs.items()},
                "troubles": {name: error.message for name, error in troubles},
            }
        )
    else:
        for name, memory in loop.controller.memory.runs.items():
            now = clock.now().timestamp()
            beats = {who: pulse.beat for who, pulse in memory.pulses.items() if pulse.beat}
            click.echo(f"{name}  {runview.status(memory.state, beats, now)}")
        if not runs:
            click.echo("no runs are running")
    if loop.unkept:
        click.echo(f"what this pass has seen is not kept: {loop.unkept.message}", err=True)
    if troubles:
        raise troubles[0][1]
