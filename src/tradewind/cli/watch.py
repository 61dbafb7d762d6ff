"""`tradewind watch`: look after runs until they are over."""

from __future__ import annotations

import click

from tradewind.cli import render


@click.command("watch")
@click.argument("run", required=False)
@click.option("--store", "store_url", metavar="URL", help="Where the runs live.")
def command(run: str | None, store_url: str | None) -> None:
    """Look after one run until it is over, or after all of them until interrupted.

    Any number of these may be at work at once, on any computer that reaches the store."""
    from tradewind import runs_store
    from tradewind import store as stores
    from tradewind.cli import fleet, follow

    opened = stores.open(store_url)
    if run is not None:
        run_id = runs_store.named(opened, run)
        if follow.until_over(opened, run_id) != "succeeded":
            raise click.exceptions.Exit(1)
        return
    loop = fleet.loop(opened)
    render.remark(f"looking after all runs in {opened.url}; Ctrl-C ends it")

    def tell(troubles: list[tuple[str, Exception]]) -> None:
        for run_id, error in troubles:
            click.echo(f"{run_id or opened.url}: {error}", err=True)

    loop.watch(lambda: True, tell=tell)  # type: ignore[arg-type]
