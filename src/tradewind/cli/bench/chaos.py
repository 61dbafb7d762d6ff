"""`tradewind bench chaos`: runs among real processes that are really killed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "chaos",
    cls=Command,
    examples="""
    # kill twenty times
    tradewind bench chaos --kills 20 --runs 2
    """,
)
@click.option(
    "--kills", type=click.IntRange(1, 100_000), default=200, show_default=True, help="How often."
)
@click.option(
    "--runs",
    type=click.IntRange(1, 64),
    default=6,
    show_default=True,
    metavar="N",
    help="Side by side.",
)
@click.option("--store", "store_url", metavar="URL", help="An empty one. Default: a folder.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of whom to kill and when.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kills: int, runs: int, store_url: str | None, seed: int, as_json: bool) -> None:
    """Kill controllers, supervisors, jobs and whole machines, and see what is lost."""
    import shutil
    import tempfile

    from tradewind import store as stores
    from tradewind.api import submit
    from tradewind.base.errors import InvalidValue
    from tradewind.bench import chaos

    if store_url and stores.open(store_url).list_after(""):
        raise InvalidValue(f"{store_url} is not empty", hint="name a prefix of its own in it")
    root = Path(tempfile.mkdtemp(prefix="tradewind-chaos-")).resolve()
    # All that is started from here on has it, and is known by it.
    os.environ["TRADEWIND_HOME"] = str(root / "home")
    os.environ.pop("TRADEWIND_NOW", None)
    store = stores.open(store_url or root / "home" / "store")
    with render.bars(["kills"], quiet=as_json) as bar:
        found = chaos.measure(
            chaos.Wish(kills=kills, runs=runs, seed=seed),
            root,
            store,
            lambda spec, folder: submit.submit(store, spec, folder),
            lambda done, total: bar("kills", done, total),
        )
    whole = chaos.is_whole(found)
    if whole:
        for key in store.list_after(""):
            store.delete(key)
        shutil.rmtree(root)
        found["folder"] = ""
    if as_json:
        render.print_json(found)
    else:
        _show(found)
    if not whole:
        raise click.exceptions.Exit(1)


def _show(found: dict[str, Any]) -> None:
    for name, value in found.items():
        if not isinstance(value, dict | list):
            click.echo(f"{name:<29} {value}")
    for run_id, why in found["why_lost"].items():
        click.echo(f"  {run_id}: {why}")
    for each in found["what_is_left"]:
        click.echo(f"  left: {each}")
    if found["folder"]:
        click.echo(f"everything was kept in {found['folder']}")
