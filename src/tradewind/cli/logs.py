"""`tradewind logs`: what a run's job has printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tradewind import clock
from tradewind.errors import NotFound

if TYPE_CHECKING:
    from tradewind.runs.state import RunState
    from tradewind.store.base import Store

_POLL_S = 1.0


@click.command("logs")
@click.argument("run")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run is over.")
@click.option("--leg", type=click.IntRange(min=1), help="Of this leg only. Default: all.")
@click.option("--rank", type=click.IntRange(min=0), default=0, show_default=True, help="Machine.")
@click.option("--store", "store_url", metavar="URL", help="Where the run lives.")
def command(run: str, follow: bool, leg: int | None, rank: int, store_url: str | None) -> None:
    """Print the output of a run's job, leg after leg, byte for byte."""
    from tradewind import runs_store
    from tradewind import store as stores

    opened = stores.open(store_url)
    run_id = runs_store.named(opened, run)
    state = runs_store.load(opened, run_id).state
    if leg is not None and leg not in state.requests:
        raise NotFound(f"{run_id} has no leg {leg}", hint=f"it has had {len(state.requests)}")
    _check_rank(state, run_id, rank)
    done: dict[int, int] = {}
    while True:
        over = state.phase in ("ended", "closed", "")
        for number in [leg] if leg is not None else list(state.requests):
            _print_new(opened, run_id, number, rank, done)
        if not follow or over:
            return
        clock.sleep(_POLL_S)
        state = runs_store.load(opened, run_id).state


def _check_rank(state: RunState, run_id: str, rank: int) -> None:
    most = max((request.way.nodes for request in state.requests.values()), default=1)
    if rank >= most:
        known = "only rank 0" if most == 1 else f"ranks 0 to {most - 1}"
        raise NotFound(f"{run_id} has no machine of rank {rank}", hint=f"there is {known}")


def _print_new(store: Store, run_id: str, leg: int, rank: int, done: dict[int, int]) -> None:
    from tradewind.supervisor.logs import read_logs

    while True:
        data = read_logs(store, run_id, leg, rank, done.get(leg, 0))
        if not data:
            sys.stdout.flush()
            return
        done[leg] = done.get(leg, 0) + len(data)
        sys.stdout.buffer.write(data)
