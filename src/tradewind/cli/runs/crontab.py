"""A line for a user's crontab, which looks after runs also when the process that did is killed, or
the computer restarts. It is offered once, to be read and pasted; nothing is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

import click

from tradewind.base.ownfiles import append, home
from tradewind.cli import render


def line(store_url: str) -> str:
    """With all that a crontab does not know: where Python is, and this user's own files."""
    chosen = os.environ.get("TRADEWIND_HOME")
    own = f"TRADEWIND_HOME={quote(str(Path(chosen).absolute()))} " if chosen else ""
    command = f"{own}{quote(sys.executable)} -P -m tradewind tick --store {quote(store_url)}"
    return f"* * * * * {command.replace('%', chr(92) + '%')} >/dev/null 2>&1"  # % ends a line there


def offer(store_url: str) -> None:
    """The first time; where that cannot be remembered, never: it is no line to read each time."""
    if not _first("crontab-offered"):
        return
    click.echo(
        "  If that process is killed, or this computer restarts, no controller watches its runs."
    )
    click.echo("  With this line in `crontab -e` a pass each minute does:")
    click.echo(f"    {line(store_url)}")


def asleep(store_url: str) -> None:
    """Before machines are rented from a computer that may be closed, once too."""
    if not _first("asleep-told"):
        return
    words = (
        "while this computer sleeps, machines work on, keep to the budget and to a hard deadline,"
        " and end at the latest after what `at most` says; nobody replaces those that are taken,"
        " and nobody moves to on demand in time. What helps, here or on any computer that reaches"
        f" the store: `tradewind tick --store {store_url}` each minute, from cron, a CI job or a"
        " function; or a deadline with room for the sleep"
    )
    render.paragraph(f"  asleep    {words}", indent=" " * 12)


def _first(name: str) -> bool:
    told = home() / "watch" / name
    if told.exists():
        return False
    try:
        append(told).close()
    except OSError:
        return False
    return True
