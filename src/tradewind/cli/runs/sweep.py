"""`tradewind sweep`: end what no run claims, remove what need not be kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.store.base import Store
    from tradewind.upkeep.sweep import Found, Item

_SMALL = ("token", "wish", "log")
"""Told by their number: a home in use has many, and nobody wants to read their names."""


@click.command(
    "sweep",
    cls=Command,
    examples="""
    # what would be done
    tradewind sweep --dry-run
    # do it, and do not ask
    tradewind sweep --yes
    # only checkpoints and outputs that nobody has fetched
    tradewind sweep --unread 90d
    """,
)
@click.option("--store", "store_url", metavar="URL", help="Store of the runs.")
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would be done.")
@click.option(
    "--unread",
    metavar="AGE",
    help="Only this: checkpoints and outputs of ended runs that nobody has fetched for so long.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    store_url: str | None, dry_run: bool, unread: str | None, yes: bool, as_json: bool
) -> None:
    """Clean up: terminate machines and processes that belong to no run, delete leftover files.

    Nothing of a run that is active, or that is being submitted, is touched."""
    from tradewind import store as stores

    opened = stores.open(store_url)
    with render.busy("looking"):
        found = _find(opened) if unread is None else _unread(opened, unread)
    if not as_json:
        _show(found)
    done: list[dict[str, Any]] = []
    if dry_run or not found.items:
        done = [_row(item, None, "") for item in found.items]
    else:
        if not yes:
            _ask()
        with render.busy("sweeping"):
            done = [_do(item) for item in found.items]
    _tell(opened, found, done, dry_run=dry_run, as_json=as_json)


def _find(store: Store) -> Found:
    from tradewind.api import fleet
    from tradewind.controller.drive import performer
    from tradewind.upkeep import sweep

    providers = fleet.providers(store)
    return sweep.find(store, providers, fleet.loop(store).controller, performer(store, providers))


def _unread(store: Store, age: str) -> Found:
    from tradewind.base.units import parse_duration
    from tradewind.upkeep import sweep

    items, troubles = sweep.unread_data(store, parse_duration(age))
    return sweep.Found(items, [], troubles)


def _show(found: Found) -> None:
    columns = [render.Column("what"), render.Column("name", grow=True), render.Column("why")]
    rows = [[item.kind, item.name, item.words] for item in found.items if item.kind not in _SMALL]
    for kind in _SMALL:
        some = [item for item in found.items if item.kind == kind]
        if some:
            rows.append([kind, render.count(len(some), "file"), some[0].words])
    if rows:
        render.table(columns, rows)
    else:
        click.echo("there is nothing to sweep")
    for stray in found.waiting:
        click.echo(
            f"left for now: {stray.machine.machine_id} is up for {stray.age_s} s, and {stray.why}"
        )


def _ask() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal, cannot ask: add --yes, or --dry-run to look only")
    if not click.confirm("Do it?"):
        raise click.exceptions.Exit(0)


def _do(item: Item) -> dict[str, Any]:
    try:
        return _row(item, item.act(), "")
    except TradewindError as error:
        return _row(item, False, error.message)


def _row(item: Item, done: bool | None, trouble: str) -> dict[str, Any]:
    row = {"kind": item.kind, "name": item.name, "why": item.words, "done": done}
    return row | ({"trouble": trouble} if trouble else {})


def _tell(
    store: Store, found: Found, done: list[dict[str, Any]], *, dry_run: bool, as_json: bool
) -> None:
    failed = [row for row in done if row.get("trouble")]
    if as_json:
        waiting = [
            {"machine": stray.machine.machine_id, "age_s": stray.age_s, "why": stray.why}
            for stray in found.waiting
        ]
        troubles = {name: error.message for name, error in found.troubles}
        render.print_json(
            {
                "store": store.url,
                "dry_run": dry_run,
                "items": done,
                "left_for_now": waiting,
                "troubles": troubles,
            }
        )
    elif done and not dry_run:
        click.echo(f"{sum(bool(row['done']) for row in done)} of {len(done)} done")
        for row in done:
            if not row["done"]:
                words = row.get("trouble") or "it is in use after all"
                click.echo(f"{row['kind']} {row['name']}: {words}", err=True)
    for name, error in found.troubles:
        if not as_json:
            click.echo(f"{name}: {error.message}", err=True)
    if failed:
        raise TradewindError(
            f"{len(failed)} of {len(done)} could not be done: {failed[0]['trouble']}",
            hint="run it again; tradewind doctor says what is wrong",
        )
    if found.troubles:
        raise found.troubles[0][1]
