"""Looking on while a run goes on: what happens line by line, and how it stands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from tradewind.api import attended, follow
from tradewind.base import clock
from tradewind.cli import render
from tradewind.cli.runs import crontab, runview

if TYPE_CHECKING:
    from tradewind.controller.loop import Troubles
    from tradewind.journal.journal import Commit
    from tradewind.store.base import Store

_EACH_S = 60.0
"""Into a file or a pipe, how it stands is told so often."""


class Teller:
    """Prints what is new in a run's journal, and how far it is: on a terminal in place. Where
    nothing can be printed (a log on a full disk), nothing is."""

    def __init__(self, sight: follow.Sight) -> None:
        self._sight = sight
        self._line = ""
        self._told: set[str] = set()
        self._due = clock.stopwatch() + _EACH_S

    def tell(self, commits: list[Commit], troubles: Troubles) -> None:
        for _, error in troubles:
            if error.message not in self._told:
                self._told.add(error.message)
                self._say(f"trouble: {error.message}")
        if self._told and not troubles:
            self._told.clear()
            self._say("the error has cleared")
        for commit in commits:
            for event in commit.events:
                words = runview.event_words(event)
                if words:
                    self._say(f"{commit.at.astimezone():%H:%M:%S}  {words}")
        if self._sight.state.outcome:
            self._clear()  # its machines are given back, and then comes the last line
        elif sys.stdout.isatty():
            self._clear()
            self._line = self._status()[: get_terminal_size().columns - 1]
            _print(self._line, nl=False)
        elif clock.stopwatch() >= self._due:
            self._due = clock.stopwatch() + _EACH_S
            _print(f"{clock.now().astimezone():%H:%M:%S}  {self._status()}")

    def _status(self) -> str:
        now = clock.now().timestamp()
        return runview.status(self._sight.state, self._sight.beats, now, self._sight.cost)

    def _say(self, text: str) -> None:
        self._clear()
        _print(text)

    def _clear(self) -> None:
        if self._line:
            with _tolerant():
                render.wipe(len(self._line))
            self._line = ""


class Recorder:
    """The same for programs: a line of JSON for each event and each trouble."""

    def __init__(self, sight: follow.Sight) -> None:
        self._sight = sight

    def tell(self, commits: list[Commit], troubles: Troubles) -> None:
        from msgspec import to_builtins

        for _, error in troubles:
            render.print_line({"run": self._sight.run_id, "trouble": error.message})
        for commit in commits:
            for event in commit.events:
                found = {"run": self._sight.run_id, "number": commit.number}
                render.print_line(found | to_builtins({"at": commit.at, "event": event}))


def _print(text: str, *, nl: bool = True) -> None:
    with _tolerant():
        click.echo(text, nl=nl)


@contextmanager
def _tolerant() -> Iterator[None]:
    """A reader who has left is not the same as a disk that is full."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        return


def carry_out(store: Store, run_id: str, *, detach: bool, as_json: bool) -> None:
    """To its end, or in the background; exits with 1 where it did not end well."""
    outcome = None
    if detach:
        leave(store, run_id, quiet=as_json)
    else:
        outcome = until_over(store, run_id, quiet=as_json)
    if as_json:
        render.print_json({"run": run_id, "store": store.url, "outcome": outcome})
    if outcome not in (None, "succeeded"):
        raise click.exceptions.Exit(1)


def until_over(store: Store, run_id: str, *, quiet: bool = False) -> str | None:
    """How the run ended; None: Ctrl-C was pressed, and it continues in the background."""
    sight = follow.Sight(store, run_id)
    tell = Teller(sight).tell if not quiet else _silent
    try:
        if not quiet:
            _print(f"run {run_id} in {store.url}")
        outcome = follow.watch(sight, tell=tell)
    except KeyboardInterrupt:
        if not quiet:
            click.echo("")
        leave(store, run_id, quiet=quiet)
        if not quiet and sight.state.spec and (unended := attended.words(sight.state.spec)):
            render.note(f"{unended}: this computer must stay up, or another one look")
        return None
    except BrokenPipeError:
        # Whoever read our output has left; the run goes on, as after Ctrl-C.
        leave(store, run_id, quiet=True)
        raise
    if not quiet:
        _print(runview.ending(sight.state, sight.cost))
        more = runview.more(event for commit in sight.commits for event in commit.events)
        if more:
            _print(f"more: {more}")
    return outcome


def _silent(commits: list[Commit], troubles: Troubles) -> None:
    pass


def leave(store: Store, run_id: str, *, quiet: bool = False) -> None:
    from tradewind import store as stores

    log = follow.leave(store, run_id)
    if not quiet:
        where = "" if stores.open().url == store.url else f" --store {quote(store.url)}"
        click.echo(f"{run_id} continues in the background ({log})")
        click.echo(f"  how it stands   tradewind show {run_id}{where}")
        click.echo(f"  what it prints  tradewind logs {run_id} -f{where}")
        click.echo(f"  come back       tradewind watch {run_id}{where}")
        click.echo(f"  end it          tradewind stop {run_id}{where}")
        crontab.offer(store.url)
