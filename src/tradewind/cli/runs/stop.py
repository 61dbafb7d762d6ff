"""`tradewind stop`: end a run."""

from __future__ import annotations

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "stop",
    cls=Command,
    examples="""
    # save, stop, give the machines back
    tradewind stop finetune
    """,
)
@click.argument("run")
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--no-wait", is_flag=True, help="Ask, and do not wait until it has stopped.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: str, store_url: str | None, no_wait: bool, as_json: bool) -> None:
    """Cancel a run: it saves, stops and terminates its machines."""
    from tradewind import store as stores
    from tradewind.api import orders
    from tradewind.cli.runs import follow, runview
    from tradewind.journal import runs_store

    opened = stores.open(store_url)
    run_id = runs_store.named(opened, run)
    asked = orders.stop(opened, run_id)
    outcome = None
    if not asked:
        state = runs_store.load(opened, run_id).state
        outcome = state.outcome or None
        if not as_json:
            words = runview.outcome(state) or "it was never submitted"
            click.echo(f"{run_id} has ended already: {words}")
    elif not no_wait:
        outcome = follow.until_over(opened, run_id, quiet=as_json)
    elif not as_json:
        click.echo(f"{run_id} was asked to stop; the next controller pass stops it")
    if as_json:
        render.print_json({"run": run_id, "store": opened.url, "asked": asked, "outcome": outcome})
