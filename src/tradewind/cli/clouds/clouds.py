"""What the commands about clouds have in common: one command for each cloud, made from what its
folder says of it; what would be done, shown; and the question before it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tradewind.api import clouds
from tradewind.cli import render
from tradewind.cli.base import Command, Group
from tradewind.model import buckets
from tradewind.providers import registry
from tradewind.providers.cloud import Named

if TYPE_CHECKING:
    from tradewind.providers.changes import Line
    from tradewind.providers.cloud import Rentable


class CloudGroup(Group):
    """Imports a cloud only to run its command, or to show its help."""

    what = "cloud that can be set up"

    def __init__(
        self, *arguments: Any, make: Callable[[Rentable], click.Command], **more: Any
    ) -> None:
        super().__init__(*arguments, **more)
        self._make = make

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(registry.CLOUDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in registry.CLOUDS:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = (
                _nothing(str(self.name))
                if cmd_name == registry.LOCAL
                else self._make(registry.rentable(cmd_name))
            )
        return self.commands[cmd_name]


def _nothing(verb: str) -> click.Command:
    """Of this computer: it is a cloud that needs neither."""
    words = "Nothing to do: this computer needs no setup."

    @click.command(
        registry.LOCAL,
        cls=Command,
        short_help=words,
        help=words,
        examples=f"tradewind {verb} {registry.LOCAL}",
    )
    @click.option("--store", "store_url", metavar="URL", help="Any store will do.")
    @click.option("--yes", is_flag=True, help="There is nothing to ask.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    def command(store_url: str | None, yes: bool, as_json: bool) -> None:
        if as_json:
            render.print_json({"store": store_url, "changes": 0, "things": []})
            return
        click.echo("nothing to do: this computer needs no setup")
        render.note(
            f"`tradewind run WORKLOAD --on {registry.LOCAL}` runs there;"
            f" `tradewind doctor {registry.LOCAL}` checks it"
        )

    return command


def command_of(
    cloud: Rentable,
    do: Callable[..., None],
    *options: Callable[..., Any],
    regions: str,
    words: str,
    more: str,
    example: str,
) -> click.Command:
    """A cloud's command: `do(cloud, …)`, with what all of them take and these options."""
    schemes = clouds.schemes(cloud)
    urls = [f"{scheme}://bucket" for scheme in schemes if scheme in buckets.STORES]
    places = " or ".join(f"{url} or {url}/prefix" for url in urls)
    if len(urls) < len(schemes):
        places += " or file:///folder that its machines share"
    name, regions = (
        (cloud.place, cloud.place_words) if isinstance(cloud, Named) else ("region", regions)
    )

    def callback(**given: Any) -> None:
        do(cloud, **given)

    body: Any = callback
    for option in reversed(
        (
            click.option("--store", "store_url", metavar="URL", required=True, help=f"{places}."),
            click.option(f"--{name}", "regions", multiple=True, metavar=name.upper(), help=regions),
            *options,
            click.option("--yes", is_flag=True, help="Do not ask."),
            click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        )
    ):
        body = option(body)
    made: click.Command = click.command(
        cloud.name,
        cls=Command,
        short_help=words,
        help=f"{words}\n\n{more}",
        examples=f"{example} --store {schemes[0]}://my-bucket",
    )(body)
    return made


def show(lines: list[Line]) -> None:
    columns = [
        render.Column("what"),
        render.Column("name"),
        render.Column("region"),
        render.Column("there"),
        # Whoever says yes must have seen all of it.
        render.Column("to do", grow=True, wrap=True, keep=9),
    ]
    table = []
    for line in lines:
        words = [change.words for change in line.changes] or [line.remark or "nothing"]
        first = [line.what, line.name, line.region or "all", "yes" if line.there else "no"]
        table.append([*first, words[0]])
        table += [["", "", "", "", more] for more in words[1:]]
    if table:
        render.table(columns, table)


def rows(lines: list[Line]) -> list[dict[str, Any]]:
    return [
        {
            "what": line.what,
            "name": line.name,
            "region": line.region or None,
            "there": line.there,
            "changes": [change.words for change in line.changes],
        }
        for line in lines
    ]


def ask(yes: bool, as_json: bool, question: str) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("not a terminal, cannot ask: add --yes")
    if not click.confirm(question):
        raise click.exceptions.Exit(0)


def ask_name(yes: bool, as_json: bool, bucket: str) -> None:
    """What cannot be undone is not done by a slip of a finger."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("not a terminal, cannot ask: add --yes")
    typed = click.prompt("All runs and checkpoints go with the bucket. Type its name")
    if typed.strip() != bucket:
        click.echo("that is not its name: nothing was removed")
        raise click.exceptions.Exit(0)
