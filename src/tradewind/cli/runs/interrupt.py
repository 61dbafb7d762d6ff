"""`tradewind interrupt`: take a run's machines away, to see that it survives."""

from __future__ import annotations

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "interrupt",
    cls=Command,
    examples="""
    # two minutes' notice, as on AWS, then SIGKILL
    tradewind interrupt finetune --notice 2m
    """,
)
@click.argument("run")
@click.option(
    "--notice",
    default="10s",
    show_default=True,
    metavar="TIME",
    help="Time between the notice and the SIGKILL.",
)
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: str, notice: str, store_url: str | None, as_json: bool) -> None:
    """Interrupt the machines of a local run, as a cloud does: notice, then SIGKILL."""
    from tradewind import store as stores
    from tradewind.api import orders
    from tradewind.base.units import parse_duration
    from tradewind.cli.runs import runview

    opened = stores.open(store_url)
    run_id = runview.named(opened, run)
    notice_s = 0.0 if notice in ("0", "0s") else parse_duration(notice)
    taken = orders.interrupt(opened, run_id, notice_s)
    if as_json:
        render.print_json({"run": run_id, "machines": list(taken), "notice_s": notice_s})
        return
    when = f"in {notice_s:g} s" if notice_s else "now"
    click.echo(f"{', '.join(taken)} will be interrupted {when}")
