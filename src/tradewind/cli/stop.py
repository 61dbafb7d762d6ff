"""`tradewind stop`: end a run."""

from __future__ import annotations

import click


@click.command("stop")
@click.argument("run")
@click.option("--store", "store_url", metavar="URL", help="Where the run lives.")
@click.option("--no-wait", is_flag=True, help="Ask, and leave the rest to whoever watches it.")
def command(run: str, store_url: str | None, no_wait: bool) -> None:
    """Ask a run to save, stop and give its machines back."""
    from tradewind import runs_store, steps
    from tradewind import store as stores
    from tradewind.cli import fleet, follow, runview
    from tradewind.controller.drive import performer

    opened = stores.open(store_url)
    run_id = runs_store.named(opened, run)
    controller = fleet.loop(opened).controller
    cancelling = controller.cancel(run_id, "its user asked for it")
    if not steps.run(cancelling, performer(opened, {})):
        state = runs_store.load(opened, run_id).state
        words = runview.outcome(state)
        click.echo(f"{run_id} is over already: {words}")
    elif no_wait:
        click.echo(f"{run_id} was asked to stop")
    else:
        follow.until_over(opened, run_id)
