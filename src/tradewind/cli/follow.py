"""Looking on while a run goes on: in the foreground with a line that tells how it stands, or left
to a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import click

from tradewind import clock, journal, runs_store
from tradewind.cli import runview
from tradewind.ownfiles import home

if TYPE_CHECKING:
    from tradewind.controller.loop import Loop, Troubles
    from tradewind.store.base import Store


class Teller:
    """Prints what is new in a run's journal, and in place how far it is."""

    def __init__(self, store: Store, loop: Loop, run_id: str, *, quiet: bool) -> None:
        self._store, self._loop, self._run_id, self._quiet = store, loop, run_id, quiet
        self._read = 0
        self._line = ""
        self._told = ""
        self._began = False

    @property
    def outcome(self) -> str:
        """How the run ended; empty while it goes on."""
        if not self._began:
            return ""  # what is remembered may be from before it was resumed
        memory = self._loop.controller.memory.runs.get(self._run_id)
        # Without one, whoever was quicker has closed it, and it is no longer looked at.
        state = memory.state if memory else runs_store.load(self._store, self._run_id).state
        return state.outcome if state.phase == "closed" else ""

    def tell(self, troubles: Troubles) -> None:
        self._began = True
        for run_id, error in troubles:
            if run_id in ("", self._run_id) and error.message != self._told:
                self._say(f"trouble: {error.message}")
                self._told = error.message
        if self._quiet:
            return
        for commit in journal.read(self._store, self._run_id, self._read):
            self._read = commit.number
            for event in commit.events:
                words = runview.event_words(event)
                if words:
                    self._say(f"{commit.at.astimezone():%H:%M:%S}  {words}")
        memory = self._loop.controller.memory.runs.get(self._run_id)
        if memory and sys.stdout.isatty():
            self._clear()
            self._line = runview.status(memory.state, memory.pulses, clock.now().timestamp())
            click.echo(self._line, nl=False)

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._clear()
            click.echo(text)

    def _clear(self) -> None:
        if self._line:
            click.echo("\r" + " " * len(self._line) + "\r", nl=False)
            self._line = ""


def until_over(store: Store, run_id: str, *, quiet: bool = False) -> str:
    """How the run ended. Ctrl-C leaves it to the background, and ends this process."""
    from tradewind.cli import fleet

    loop = fleet.loop(store)
    teller = Teller(store, loop, run_id, quiet=quiet)
    if not quiet:
        click.echo(f"run {run_id} in {store.url}")
    try:
        loop.watch(lambda: not teller.outcome, tell=teller.tell)
    except KeyboardInterrupt:
        click.echo("")
        leave(store, run_id, quiet=quiet)
        raise click.exceptions.Exit(0) from None
    if not quiet:
        click.echo(runview.ending(runs_store.load(store, run_id)))
    return teller.outcome


def leave(store: Store, run_id: str, *, quiet: bool = False) -> None:
    """To a process in the background, which outlives this one and its terminal."""
    log = home() / "watch" / f"{run_id}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tradewind", "watch", run_id, "--store", store.url]
    with log.open("ab") as stream:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    if not quiet:
        click.echo(f"{run_id} goes on in the background ({log})")
        click.echo(f"  how it stands   tradewind show {run_id}")
        click.echo(f"  what it prints  tradewind logs {run_id} -f")
        click.echo(f"  come back       tradewind watch {run_id}")
        click.echo(f"  end it          tradewind stop {run_id}")
