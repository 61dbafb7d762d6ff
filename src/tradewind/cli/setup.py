"""`tradewind setup CLOUD`: what machines at a cloud need for a store, made as it was shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.clouds import CloudGroup, ask, rows, show, store_option

if TYPE_CHECKING:
    from tradewind.providers.cloud import Rentable


def _command(cloud: Rentable) -> click.Command:
    url = f"{cloud.schemes[0]}://my-bucket"

    @click.pass_context
    def callback(ctx: click.Context, /, **given: Any) -> None:
        _set_up(cloud, **given)

    options: list[Callable[..., Any]] = [
        store_option(cloud),
        click.option(
            "--region",
            "regions",
            multiple=True,
            metavar="REGION",
            help="Where machines may be; a new bucket is made in the first. May be repeated.",
        ),
        *(
            click.option(each.flag, each.name, metavar=each.metavar, help=each.words)
            if each.metavar
            else click.option(each.flag, each.name, is_flag=True, help=each.words)
            for each in cloud.settings
        ),
        click.option(
            "--print",
            "printed",
            type=click.Choice(list(cloud.prints)),
            help="Print instead, and change nothing: "
            + "; ".join(f"{words} ({kind})" for kind, words in cloud.prints.items())
            + ".",
        ),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ]
    body: Any = callback
    for option in reversed(options):
        body = option(body)
    return click.command(
        cloud.name,
        cls=Command,
        short_help=f"Set up {cloud.title} for a store.",
        help=f"Make what machines at {cloud.title} need for a store.\n\n"
        "Shows first what is missing, and asks. What is there already is left as it is, so it may"
        " be run again at any time. Credentials are found as by the cloud's own tools.",
        examples=f"# shown, then made\ntradewind setup {cloud.name} --store {url}",
    )(body)


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
    printed: str | None,
    yes: bool,
    as_json: bool,
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
        "whoever shares this store trusts each other: a job on one machine can read all its"
        " runs, and overwrite and delete what machines write; who must not trust each other"
        " take a bucket each"
    )
