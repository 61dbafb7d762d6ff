"""`tradewind interrupt`: take a run's machines away, to see that it survives."""

from __future__ import annotations

import click

from tradewind.errors import InvalidValue


@click.command("interrupt")
@click.argument("run")
@click.option("--notice", default="10s", show_default=True, metavar="TIME", help="How long before.")
@click.option("--store", "store_url", metavar="URL", help="Where the run lives.")
def command(run: str, notice: str, store_url: str | None) -> None:
    """Take the machines of a run on this computer away, as a cloud does: notice, then SIGKILL."""
    from tradewind import runs_store
    from tradewind import store as stores
    from tradewind.cli import fleet
    from tradewind.units import parse_duration

    opened = stores.open(store_url)
    run_id = runs_store.named(opened, run)
    leg = runs_store.load(opened, run_id).state.leg
    if leg is None or not leg.machines:
        raise InvalidValue(f"{run_id} has no machines now", hint=f"tradewind show {run_id}")
    if leg.request.way.provider != "local":
        raise InvalidValue(f"{run_id} is not on this computer: only a cloud takes its machines")
    notice_s = 0 if notice in ("0", "0s") else parse_duration(notice)
    fleet.local(opened).interrupt(leg.machines, notice_s)
    click.echo(f"{', '.join(leg.machines)} will be taken in {notice_s} s")
