"""`tradewind ps`: the runs of a store, and how they stand."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError, bug
from tradewind.base.plaintext import visible
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.lifecycle.words import OUTCOMES

if TYPE_CHECKING:
    from tradewind.journal.runs_store import Loaded
    from tradewind.store.base import Store

_WORKERS = 32


@click.command(
    "ps",
    cls=Command,
    examples="""
    # those that are running
    tradewind ps
    # who uses the GPUs of your own hosts, you and others
    tradewind ps --leases
    # also those that have ended, of another store
    tradewind ps --all --store s3://my-bucket/tradewind
    """,
)
@click.argument("names", metavar="[RUN]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Also list runs that have ended.")
@click.option(
    "--leases", "leased", is_flag=True, help="Also ask your own hosts who uses which GPU."
)
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    names: tuple[str, ...], every: bool, leased: bool, store_url: str | None, as_json: bool
) -> None:
    """Status of runs: where, how far, for how much.

    RUN is a name, or the beginning of an id: then those that have ended are listed too."""
    from tradewind import store as stores
    from tradewind.journal import runs_store

    opened = stores.open(store_url)
    ids = runs_store.run_ids(opened) if every or names else runs_store.live_ids(opened)
    if names:
        ids = list(dict.fromkeys(each for name in names for each in runs_store.all_of(ids, name)))
    with render.busy("reading journals"):
        loaded, troubles = runs_store.load_all(opened, ids)
        rows, more = felt(opened, [each for each in loaded if each.state.spec])
        leases = _leases(opened) if leased else None
    troubles += more
    if as_json:
        told = {name: error.message for name, error in troubles}
        asked = {} if leases is None else {"leases": leases}
        render.print_json({"store": opened.url, "runs": rows, **asked, "troubles": told})
    elif rows:
        columns = [
            render.Column("run", keep=9),
            render.Column("state", keep=9),
            render.Column("where", grow=True),
            render.Column("done", right=True),
            render.Column("legs", right=True, keep=3),
            render.Column("cost", right=True, keep=8),
            render.Column("forecast"),
        ]
        render.table(columns, [_texts(each) for each in rows])
        say_if_alone(opened, loaded)
    else:
        click.echo("no runs" if every else "no runs are running; --all shows those that have ended")
    if leases is not None and not as_json:
        _show_leases(leases, opened)
    for run_id, error in troubles[1:]:
        click.echo(f"{run_id}: {error.message}", err=True)
    if troubles:
        raise troubles[0][1]


def _leases(store: Store) -> list[dict[str, str]]:
    from msgspec import to_builtins

    from tradewind.api import clouds

    found: list[dict[str, str]] = to_builtins(clouds.leases(store))
    return found


def _show_leases(leases: list[dict[str, str]], store: Store) -> None:
    click.echo()
    if not leases:
        render.note(f"no hosts that others use too are set up for {store.url}")
        return
    columns = [
        render.Column("host", keep=9),
        render.Column("gpu", keep=9),
        render.Column("state", keep=9),
        render.Column("who", grow=True),
    ]
    fields = ("place", "device", "state", "who")
    render.table(columns, [[visible(each[name]) for name in fields] for each in leases])


def say_if_alone(store: Store, loaded: list[Loaded]) -> None:
    """Those that go on need somebody; each has had its last look when it was written to."""
    from tradewind.upkeep.attended import is_alone

    since = [each.commits[-1].at for each in loaded if each.state.phase in ("waiting", "active")]
    if since and is_alone(store, min(since)):
        render.note(
            "No controller is running for these runs: interrupted machines are not replaced."
            " Start one: `tradewind watch`"
        )


Row = dict[str, Any]


def felt(store: Store, loaded: list[Loaded]) -> tuple[list[Row], list[tuple[str, TradewindError]]]:
    """A row for each, with how far its machines say that it is: that is recorded but rarely. And
    what went wrong with which."""
    from concurrent.futures import ThreadPoolExecutor

    from tradewind.api.follow import Sight

    def one(each: Loaded) -> Row | TradewindError:
        sight = Sight.of(store, each.run_id, each.state, each.commits)
        try:
            with suppress(TradewindError):  # then what was recorded must do
                sight.feel()
            return row(each, sight.step)
        except TradewindError as error:
            return error
        except Exception as error:
            return bug(each.run_id, error)

    if not loaded:
        return [], []
    with ThreadPoolExecutor(min(_WORKERS, len(loaded))) as pool:
        found = list(zip(loaded, pool.map(one, loaded), strict=True))
    rows = [each for _, each in found if not isinstance(each, TradewindError)]
    return rows, [(of.run_id, each) for of, each in found if isinstance(each, TradewindError)]


def row(loaded: Loaded, step: float) -> dict[str, Any]:
    from tradewind.base.units import usd
    from tradewind.cli.runs.runview import cost

    state = loaded.state
    spec, leg = state.spec, state.leg
    assert spec is not None
    return {
        "run": loaded.run_id,
        "name": spec.name,
        "state": leg.state if leg else state.outcome or state.phase,
        "where": leg.request.way.words if leg else "",
        "step": step,
        "work": spec.work if spec.steps else None,
        "legs": len({rented.machine.leg for rented in state.machines.values()}),
        "cost_usd": usd(cost(loaded)),
        "late": state.announced_late,
        "over_budget": state.announced_over,
        "project": spec.project,
    }


def _texts(row: dict[str, Any]) -> list[str]:
    said = [word for key, word in (("late", "late"), ("over_budget", "over budget")) if row[key]]
    share = ""  # where nobody knows
    if row["state"] == "succeeded":
        share = "100 %"  # also where the job does not count its steps
    elif row["work"]:
        share = f"{100 * row['step'] / row['work']:.0f} %"
    return [
        row["run"],
        row["state"].replace("_", " "),
        row["where"],
        share,
        str(row["legs"]),
        f"${render.money(row['cost_usd'] * 1e6)}",
        ", ".join(said) or ("" if row["state"] in OUTCOMES else "in time"),
    ]
