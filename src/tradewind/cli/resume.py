"""`tradewind resume`: let a run that has ended badly go on."""

from __future__ import annotations

import click

from tradewind import clock
from tradewind.errors import InvalidValue


@click.command("resume")
@click.argument("run")
@click.option("--budget", metavar="MONEY", help="A new one, for all that it costs since it began.")
@click.option("--deadline", metavar="TIME", help="A new one, from now: 12h, 3d.")
@click.option("--store", "store_url", metavar="URL", help="Where the run lives.")
@click.option("--detach", is_flag=True, help="Leave it to a process in the background.")
def command(
    run: str, budget: str | None, deadline: str | None, store_url: str | None, detach: bool
) -> None:
    """Go on from the last checkpoint with a run that failed, was stopped or ran out of money."""
    from tradewind import runs_store, steps
    from tradewind import store as stores
    from tradewind.cli import fleet, follow, runview
    from tradewind.controller.drive import performer
    from tradewind.units import parse_duration, parse_money

    opened = stores.open(store_url)
    run_id = runs_store.named(opened, run)
    money = None if budget is None else parse_money(budget)
    until = None if deadline is None else clock.now().timestamp() + parse_duration(deadline)
    controller = fleet.loop(opened).controller
    resuming = controller.resume(run_id, "its user asked for it", budget=money, deadline_s=until)
    if not steps.run(resuming, performer(opened, {})):
        state = runs_store.load(opened, run_id).state
        if state.phase == "closed":
            words = runview.outcome(state)
            raise InvalidValue(f"{run_id} cannot be resumed: {words}", hint="submit it anew")
        raise InvalidValue(
            f"{run_id} is not over yet", hint=f"tradewind watch {run_id}, or stop it first"
        )
    if detach:
        follow.leave(opened, run_id)
    elif follow.until_over(opened, run_id) != "succeeded":
        raise click.exceptions.Exit(1)
