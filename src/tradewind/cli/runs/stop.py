"""`tradewind stop`: end a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.store.base import Store


@click.command(
    "stop",
    cls=Command,
    examples="""
    # save, stop, give the machines back
    tradewind stop finetune
    # all that a pipeline has started
    tradewind stop --tag ci=finetune
    """,
)
@click.argument("run", required=False)
@click.option(
    "--tag",
    "tagged",
    metavar="NAME=VALUE",
    help="All runs with this tag that have not ended, in place of RUN; there may be none.",
)
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--no-wait", is_flag=True, help="Ask, and do not wait until it has stopped.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --tag a line for each run.")
def command(
    run: str | None, tagged: str | None, store_url: str | None, no_wait: bool, as_json: bool
) -> None:
    """Cancel a run: it saves, stops and terminates its machines."""
    from tradewind import store as stores
    from tradewind.cli.runs import runview
    from tradewind.journal import runs_store

    if (run is None) == (tagged is None):
        raise click.UsageError("which run? RUN, or --tag NAME=VALUE for all that have it")
    opened = stores.open(store_url)
    if tagged is None:
        _stop(opened, runview.named(opened, run or ""), no_wait=no_wait, as_json=as_json)
        return
    name, sign, value = tagged.partition("=")
    if not sign or not name:
        raise click.UsageError(f"--tag {tagged}: it is NAME=VALUE")
    loaded, troubles = runs_store.load_all(opened, runs_store.live_ids(opened))
    having = [e.run_id for e in loaded if e.state.spec and e.state.spec.tags.get(name) == value]
    # All are asked before any is waited for.
    for run_id in having:
        _stop(opened, run_id, no_wait=True, as_json=as_json, quiet=not no_wait)
    for run_id in having if not no_wait else ():
        _stop(opened, run_id, no_wait=False, as_json=as_json)
    if not having and not as_json:
        click.echo(f"no run with the tag {tagged} goes on")
    for _, error in troubles:
        raise error


def _stop(store: Store, run_id: str, *, no_wait: bool, as_json: bool, quiet: bool = False) -> None:
    from tradewind.api import orders
    from tradewind.cli.runs import follow, runview
    from tradewind.journal import runs_store

    asked = orders.stop(store, run_id)
    if quiet:
        return
    outcome = None
    state = runs_store.load(store, run_id).state
    if not asked and (state.phase in ("closed", "") or no_wait):
        outcome = state.outcome or None
        if not as_json:
            words = runview.outcome(state) or "it was never submitted"
            click.echo(f"{run_id} has ended already: {words}")
    elif not no_wait:
        outcome = follow.until_over(store, run_id, quiet=as_json)
    elif not as_json:
        click.echo(f"{run_id} was asked to stop; the next controller pass stops it")
    if as_json:
        render.print_line({"run": run_id, "store": store.url, "asked": asked, "outcome": outcome})
