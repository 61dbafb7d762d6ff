"""`tradewind watch`: look after runs until they are over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.controller.loop import Troubles
    from tradewind.controller.memory import RunMemory
    from tradewind.lifecycle.state import RunState
    from tradewind.store.base import Store


@click.command(
    "watch",
    cls=Command,
    examples="""
    # come back to a run, until it ends
    tradewind watch finetune
    # control all runs, until Ctrl-C
    tradewind watch
    """,
)
@click.argument("run", required=False)
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each event.")
def command(run: str | None, store_url: str | None, as_json: bool) -> None:
    """Run a controller for one run until it ends, or for all of them until Ctrl-C.

    Any number of controllers may run at once, on any computer that reaches the store."""
    from tradewind import store as stores
    from tradewind.api import owned
    from tradewind.cli.runs import follow, runview
    from tradewind.journal import runs_store

    opened = stores.open(store_url)
    if run is None:
        _all(opened, as_json)
        return
    run_id = runview.named(opened, run)
    away = owned.elsewhere(run_id, runs_store.load(opened, run_id).state.spec)
    if away:
        render.remark(away)
    outcome = _one(opened, run_id) if as_json else follow.until_over(opened, run_id)
    if outcome not in (None, "succeeded"):
        raise click.exceptions.Exit(1)


def _one(store: Store, run_id: str) -> str:
    from tradewind.api import follow
    from tradewind.cli.runs.follow import Recorder

    sight = follow.Sight(store, run_id)
    outcome = follow.watch(sight, tell=Recorder(sight).tell)
    render.print_line({"run": run_id, "outcome": outcome})
    return outcome


class Ends:
    """Which runs have ended from one pass to the next, whoever has brought that about."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._going: set[str] = set()

    def since(self, runs: Mapping[str, RunMemory]) -> list[tuple[str, RunState]]:
        from tradewind.journal import runs_store

        states = {name: memory.state for name, memory in runs.items()}
        gone, _ = runs_store.load_all(self._store, sorted(self._going - states.keys()))
        states |= {each.run_id: each.state for each in gone}
        over = [(name, states[name]) for name in sorted(self._going & states.keys())]
        self._going = {name for name, state in states.items() if state.spec and not state.outcome}
        return [(name, state) for name, state in over if state.outcome]


def _all(store: Store, as_json: bool) -> None:
    from tradewind.api import fleet
    from tradewind.cli.runs import runview

    told: dict[str, str] = {}
    ends = Ends(store)

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
        for run_id, state in ends.since(loop.controller.memory.runs):
            if as_json:
                render.print_line({"run": run_id, "outcome": state.outcome})
            else:
                click.echo(f"{run_id}: {runview.outcome(state)}")

    loop = fleet.loop(store)
    render.remark(f"controlling all runs in {store.url}; Ctrl-C ends it")
    loop.watch(lambda: True, tell=tell)
