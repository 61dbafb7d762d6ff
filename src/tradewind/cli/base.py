"""What every command has in common: examples at the end of its help.

They are a text of lines such as

    # where is a machine with eight of them, and for how much
    tradewind offers h100:8

and shown as they are, so no line may be longer than 58 characters: then a terminal of 60 columns
shows it whole, and it can be copied. A test parses them all, so that none outlives an option.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

import click


class Command(click.Command):
    def __init__(self, *arguments: Any, examples: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.examples = cleandoc(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write(self.examples, formatter)
        super().format_epilog(ctx, formatter)


class Group(Command, click.Group):
    command_class = Command
    what = "command"
    """What its commands are, to who looks for one that there is not."""
    removes: tuple[str, ...] = ()
    """Of its commands, those that remove things: for another name they are not suggested."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            from difflib import get_close_matches

            meant = [name for name in known if name not in self.removes]
            close = get_close_matches(args[0], meant, n=1)
            close = get_close_matches(args[0], self.removes, n=1, cutoff=0.9) or close
            help_ = f"see `{ctx.command_path} --help`"
            advice = f"did you mean {close[0]!r}?" if close else help_
            raise click.UsageError(f"no {self.what} is called {args[0]!r}; {advice}", ctx)
        return super().resolve_command(ctx, args)


def write(examples: str, formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}".rstrip() + "\n" for line in examples.splitlines()))
