"""`tradewind setup CLOUD`: what machines at a cloud need for a store, made as it was shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli import render
from tradewind.cli.clouds.clouds import CloudGroup, ask, command_of, rows, show
from tradewind.model import buckets

if TYPE_CHECKING:
    from tradewind.providers.cloud import Rentable


def _printing(cloud: Rentable) -> Callable[..., Any]:
    kinds = "; ".join(f"{words} ({kind})" for kind, words in cloud.prints.items())
    return click.option(
        "--print",
        "printed",
        type=click.Choice(list(cloud.prints)),
        help=f"Print instead, and change nothing: {kinds}.",
    )


def _command(cloud: Rentable) -> click.Command:
    return command_of(
        cloud,
        _set_up,
        *(
            click.option(
                each.flag, each.name, metavar=each.metavar, multiple=each.many, help=each.words
            )
            if each.metavar
            else click.option(each.flag, each.name, is_flag=True, help=each.words)
            for each in cloud.settings
        ),
        *([_printing(cloud)] if cloud.prints else []),
        regions="Where machines may be. May be repeated."
        if not set(cloud.schemes) & set(buckets.STORES)
        else "Where machines may be; a new bucket is made in the first. May be repeated.",
        words=f"Make what machines at {cloud.title} need for a store.",
        more="Shows first what is missing, and asks. What is there already is left as it is, so it"
        " may be run again at any time. Credentials are found as by the cloud's own tools.",
        example=f"# shown, then made\ntradewind setup {cloud.name}",
    )


@click.group(
    "setup",
    cls=CloudGroup,
    make=_command,
    examples="""
    # a bucket, a role and a network: shown, then made
    tradewind setup aws --store s3://my-bucket/tradewind
    """,
)
def command() -> None:
    """Set up an account at a cloud for a store: what machines there need."""


def _set_up(
    cloud: Rentable,
    store_url: str,
    regions: tuple[str, ...],
    yes: bool,
    as_json: bool,
    printed: str | None = None,
    **settings: Any,
) -> None:
    url = cloud.checked(store_url)
    if printed:
        click.echo(cloud.printed(printed, url, regions, settings), nl=False)
        return
    from tradewind.api.setup import plan_setup

    with render.busy("looking"):
        plan = plan_setup(cloud, url, cloud.look(url, regions, settings))
    lines = plan.prepared.lines
    if not as_json:
        click.echo(f"account {plan.prepared.account}, store {url}")
        show(lines)
    if plan.recorded:
        footprint, changed = plan.known, 0
        words = "nothing to do: all of it is there"
    else:
        if not as_json and not plan.prepared.changes:
            click.echo("all of it is there; only the record in the store is missing")
        ask(yes, as_json, "Make it?" if plan.prepared.changes else "Write it?")
        changed = plan.prepared.changes
        with render.busy("making"):
            footprint = plan.carry_out()
        words = f"{render.count(changed, 'change')} made, and written down in the store"
    if as_json:
        from msgspec import to_builtins

        record = to_builtins(footprint)
        render.print_json({"store": url, "changes": changed, "things": rows(lines), **record})
        return
    click.echo(words)
    for note in cloud.notes(url, settings):
        render.note(note)
    render.note(
        "everyone who shares this store trusts the others: a job on one machine can read all its"
        " runs, and overwrite and delete what machines write; who must not trust each other"
        " take a bucket each"
    )
