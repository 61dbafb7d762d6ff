"""A line for a user's crontab, which looks after runs also when the process that did is killed, or
the computer restarts. It is offered once, to be read and pasted; nothing is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

import click

from tradewind.base.ownfiles import append, home


def line(store_url: str) -> str:
    """With all that a crontab does not know: where Python is, and this user's own files."""
    chosen = os.environ.get("TRADEWIND_HOME")
    own = f"TRADEWIND_HOME={quote(str(Path(chosen).absolute()))} " if chosen else ""
    command = f"{own}{quote(sys.executable)} -P -m tradewind tick --store {quote(store_url)}"
    return f"* * * * * {command.replace('%', chr(92) + '%')} >/dev/null 2>&1"  # % ends a line there


def offer(store_url: str) -> None:
    """The first time; where that cannot be remembered, never: it is no line to read each time."""
    offered = home() / "watch" / "crontab-offered"
    if offered.exists():
        return
    try:
        append(offered).close()
    except OSError:
        return
    click.echo(
        "  If that process is killed, or this computer restarts, no controller watches its runs."
    )
    click.echo("  With this line in `crontab -e` a pass each minute does:")
    click.echo(f"    {line(store_url)}")
