"""Looking on while a run goes on: in the foreground with a line that tells how it stands, or left
to a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind import clock, journal, runs_store
from tradewind.cli import render, runview
from tradewind.errors import TradewindError
from tradewind.ownfiles import home

if TYPE_CHECKING:
    from tradewind.controller.loop import Loop, Troubles
    from tradewind.store.base import Store


class Teller:
    """Prints what is new in a run's journal, and in place how far it is.

    Nothing that goes wrong here ends the watch: a store that does not answer is said and asked
    again, and where nothing can be printed (a log on a full disk) nothing is."""

    def __init__(self, store: Store, loop: Loop, run_id: str, *, quiet: bool) -> None:
        self._store, self._loop, self._run_id, self._quiet = store, loop, run_id, quiet
        self._read = 0
        self._line = ""
        self._told: set[str] = set()
        self._began = False
        self._outcome = ""

    @property
    def outcome(self) -> str:
        """How the run ended; empty while it goes on."""
        if not self._began or self._outcome:
            return self._outcome  # what is remembered may be from before it was resumed
        memory = self._loop.controller.memory.runs.get(self._run_id)
        try:
            # Without one, whoever was quicker has closed it, and it is no longer looked at.
            state = memory.state if memory else runs_store.load(self._store, self._run_id).state
        except TradewindError as error:
            self._trouble(error)
            return ""
        self._outcome = state.outcome if state.phase == "closed" else ""
        return self._outcome

    def tell(self, troubles: Troubles) -> None:
        self._began = True
        runs = self._loop.controller.memory.runs
        # With those of the store and of providers, which are everybody's.
        mine = [error for name, error in troubles if name == self._run_id or name not in runs]
        for error in mine:
            self._trouble(error)
        if self._told and not mine:
            self._say("the trouble is over")
            self._told.clear()
        if self._quiet:
            return
        try:
            self._tell_news()
        except TradewindError as error:
            self._trouble(error)
        memory = self._loop.controller.memory.runs.get(self._run_id)
        if memory and sys.stdout.isatty():
            self._clear()
            self._line = runview.status(memory.state, memory.pulses, clock.now().timestamp())
            _print(self._line, nl=False)

    def _tell_news(self) -> None:
        for commit in journal.read(self._store, self._run_id, self._read):
            self._read = commit.number
            for event in commit.events:
                words = runview.event_words(event)
                if words:
                    self._say(f"{commit.at.astimezone():%H:%M:%S}  {words}")

    def _trouble(self, error: TradewindError) -> None:
        """Once, until it is over."""
        if error.message not in self._told:
            self._say(f"trouble: {error.message}")
            self._told.add(error.message)

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._clear()
            _print(text)

    def _clear(self) -> None:
        if self._line:
            _print("\r" + " " * len(self._line) + "\r", nl=False)
            self._line = ""


def _print(text: str, *, nl: bool = True) -> None:
    """A reader who has left is not the same as a disk that is full."""
    try:
        click.echo(text, nl=nl)
    except BrokenPipeError:
        raise
    except OSError:
        return


def until_over(store: Store, run_id: str, *, quiet: bool = False) -> str:
    """How the run ended. Ctrl-C leaves it to the background, and ends this process."""
    from tradewind.cli import fleet

    loop = fleet.loop(store)
    teller = Teller(store, loop, run_id, quiet=quiet)
    try:
        if not quiet:
            _print(f"run {run_id} in {store.url}")
        loop.watch(lambda: not teller.outcome, tell=teller.tell)
    except KeyboardInterrupt:
        click.echo("")
        leave(store, run_id, quiet=quiet)
        raise click.exceptions.Exit(0) from None
    except BrokenPipeError:
        # Whoever read our output has left; the run goes on, as after Ctrl-C.
        leave(store, run_id, quiet=True)
        raise
    outcome = teller.outcome
    if not quiet:
        try:
            _print(runview.ending(runs_store.load(store, run_id)))
        except TradewindError:  # the store has gone after all was done
            _print(runview.OUTCOMES.get(outcome, outcome))
    return outcome


def leave(store: Store, run_id: str, *, quiet: bool = False) -> None:
    """To a process in the background, which outlives this one and its terminal."""
    log = home() / "watch" / f"{run_id}.log"
    command = [sys.executable, "-m", "tradewind", "watch", run_id, "--store", store.url]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        stream = log.open("ab")
    except OSError as error:  # the run is submitted: it must be looked after in any case
        render.remark(f"{log} cannot be written ({error.strerror or error}): nothing is kept there")
        stream = Path(os.devnull).open("ab")  # noqa: SIM115
    with stream:
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
