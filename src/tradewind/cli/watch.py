"""`tradewind watch`: look after runs until they are over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.controller.loop import Troubles
    from tradewind.store.base import Store


@click.command(
    "watch",
    cls=Command,
    examples="""
    # come back to a run, until it is over
    tradewind watch finetune
    # look after all runs, until Ctrl-C
    tradewind watch
    """,
)
@click.argument("run", required=False)
@click.option("--store", "store_url", metavar="URL", help="Where the runs live.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each event.")
def command(run: str | None, store_url: str | None, as_json: bool) -> None:
    """Look after one run until it is over, or after all of them until interrupted.

    Any number of these may be at work at once, on any computer that reaches the store."""
    from tradewind import runs_store
    from tradewind import store as stores
    from tradewind.cli import follow

    opened = stores.open(store_url)
    if run is None:
        _all(opened, as_json)
        return
    run_id = runs_store.named(opened, run)
    outcome = _one(opened, run_id) if as_json else follow.until_over(opened, run_id)
    if outcome not in (None, "succeeded"):
        raise click.exceptions.Exit(1)


def _one(store: Store, run_id: str) -> str:
    from tradewind.api import follow
    from tradewind.cli.follow import Recorder

    sight = follow.Sight(store, run_id)
    outcome = follow.watch(sight, tell=Recorder(sight).tell)
    render.print_line({"run": run_id, "outcome": outcome})
    return outcome


def _all(store: Store, as_json: bool) -> None:
    from tradewind.api import fleet

    told: dict[str, str] = {}

    def tell(troubles: Troubles) -> None:
        """Each once, and again only after it was gone for a pass."""
        for run_id, error in troubles:
            if told.get(run_id) == error.message:
                continue
            if as_json:
                render.print_line({"run": run_id or None, "trouble": error.message})
            else:
                click.echo(f"{run_id or store.url}: {error.message}", err=True)
        told.clear()
        told.update((run_id, error.message) for run_id, error in troubles)

    loop = fleet.loop(store)
    render.remark(f"looking after all runs in {store.url}; Ctrl-C ends it")
    loop.watch(lambda: True, tell=tell)
