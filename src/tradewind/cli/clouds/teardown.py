"""`tradewind teardown CLOUD`: what setup has made at a cloud for a store, removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.clouds.clouds import CloudGroup, ask, ask_name, command_of, rows, show

if TYPE_CHECKING:
    from tradewind.providers.cloud import Rentable


def _command(cloud: Rentable) -> click.Command:
    return command_of(
        cloud,
        _tear_down,
        click.option(
            "--delete-bucket",
            "delete_store",
            is_flag=True,
            help="With all runs, checkpoints and versions.",
        ),
        regions="Look there too; those that were set up are looked at anyway. May be repeated.",
        words=f"Remove what setup made at {cloud.title} for a store: by name and tag, and nothing"
        " else.",
        more="Refuses while runs of the store are active or its machines are up. The bucket stays,"
        " unless it is asked for.",
        example=f"# what would be removed, and then remove it\ntradewind teardown {cloud.name}",
    )


@click.group(
    "teardown",
    cls=CloudGroup,
    make=_command,
    examples="""
    # what would be removed, and then remove it
    tradewind teardown aws --store s3://my-bucket
    """,
)
def command() -> None:
    """Remove what `tradewind setup` has made at a cloud for a store."""


def _tear_down(
    cloud: Rentable,
    store_url: str,
    regions: tuple[str, ...],
    delete_store: bool,
    yes: bool,
    as_json: bool,
) -> None:
    from tradewind.api.setup import plan_teardown

    url = cloud.checked(store_url)
    bucket = url.partition("://")[2].partition("/")[0]
    with render.busy("looking"):
        look = cloud.look(url, regions, {})
        removal = plan_teardown(cloud, url, look, delete_store=delete_store)
    if not as_json:
        show(removal.lines)
    if not removal.changes:
        words = "nothing to do: nothing is there"
    else:
        there = removal.store is not None
        if delete_store and there:
            ask_name(yes, as_json, bucket)
        else:
            ask(yes, as_json, "Remove it?")
        with render.busy("removing"):
            removal.carry_out()
        stays = there and not delete_store
        kept = f"bucket {bucket}" if bucket else "store"
        words = "removed" + (f"; the {kept} and all in it stay" if stays else "")
    if as_json:
        render.print_json(
            {"store": url, "removed": removal.changes > 0, "things": rows(removal.lines)}
        )
    else:
        click.echo(words)
