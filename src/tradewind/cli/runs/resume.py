"""`tradewind resume`: let a run that has ended badly go on."""

from __future__ import annotations

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "resume",
    cls=Command,
    examples="""
    # it ran out of money: resume from the checkpoint
    tradewind resume finetune --budget '$50'
    # it was stopped: resume, with another deadline
    tradewind resume finetune --deadline 12h
    """,
)
@click.argument("run")
@click.option("--budget", metavar="MONEY", help="New budget, for the whole run from its beginning.")
@click.option("--deadline", metavar="TIME", help="New deadline, from now: 12h, 3d.")
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--detach", is_flag=True, help="Continue in the background.")
@click.option(
    "--attended",
    is_flag=True,
    help="With --detach: a controller looks in any case. Needed for a budget on clouds that bill a"
    " machine until a controller ends it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the run's id and how it ended.")
def command(
    run: str,
    budget: str | None,
    deadline: str | None,
    store_url: str | None,
    detach: bool,
    attended: bool,
    as_json: bool,
) -> None:
    """Resume a run that failed, was stopped or ran out of money, from its last checkpoint."""
    from tradewind import store as stores
    from tradewind.api import orders
    from tradewind.base.units import format_hours, parse_duration, parse_money
    from tradewind.cli.runs import follow, runview

    opened = stores.open(store_url)
    run_id = runview.named(opened, run)
    money = None if budget is None else parse_money(budget)
    within_s = None if deadline is None else parse_duration(deadline)
    if detach:
        orders.check_attended(opened, run_id, attended=attended, budget=money)
    orders.resume(opened, run_id, budget=money, within_s=within_s)
    late_s = orders.late_by_s(opened, run_id)
    if late_s:
        render.remark(
            f"Its deadline passed {format_hours(late_s / 3600)} ago: it is finished for the least"
            " money. `tradewind stop` and `resume --deadline 12h` give it another one."
        )
    follow.carry_out(opened, run_id, detach=detach, as_json=as_json)
