"""Looking after one run: in this process, telling whoever wants to know, or left to another.

What is told comes from the store and not from the controller's memory: another process may be at
work on the run, and ours stands back meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tradewind.base import clock
from tradewind.base.errors import BadFile, NotFound, TooLarge, TradewindError
from tradewind.base.ownfiles import append, home
from tradewind.controller import seed
from tradewind.controller.loop import Troubles
from tradewind.journal import journal
from tradewind.journal.journal import Commit
from tradewind.lifecycle import beats as claims
from tradewind.lifecycle import fold
from tradewind.lifecycle.state import RunState
from tradewind.model import bounds, places
from tradewind.model.figures import Figures
from tradewind.model.run import Heartbeat
from tradewind.store.base import Store


class Sight:
    """A run as it stands, read again and again."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.store, self.run_id = store, run_id
        self.state = RunState()
        self.commits: list[Commit] = []
        self.beats: dict[str, Heartbeat] = {}
        self._seed: bytes | None = None

    @classmethod
    def of(cls, store: Store, run_id: str, state: RunState, commits: list[Commit]) -> Sight:
        """Of a run whose journal was read already."""
        sight = cls(store, run_id)
        sight.state, sight.commits = state, commits
        return sight

    @property
    def step(self) -> float:
        """How far it is: what its machines say, or what was recorded last."""
        return max((beat.step for beat in self.beats.values()), default=0.0) or self.state.step

    @property
    def figures(self) -> list[Figures]:
        """What its processes measure of themselves, rank by rank, as its machines last said."""
        told = (each for beat in self.beats.values() for each in beat.figures)
        return sorted(told, key=lambda each: each.rank)

    def look(self) -> list[Commit]:
        """The commits that are new; BadFile where the journal is damaged."""
        new = journal.read(self.store, self.run_id, self.state.number)
        if new:
            self.state = fold(new, self.state)
            self.commits += new
        return new

    def feel(self) -> None:
        """What the machines of its leg do now."""
        beats = {}
        for name in self.state.claimed:
            try:
                key = places.heartbeat(self.run_id, name)
                data = self.store.get(key, most=bounds.HEARTBEAT)
            except (NotFound, TooLarge):
                continue  # it is not up yet, or what it says is nothing to go by
            if self._seed is None:
                self._seed = seed.find(self.store)
            beat = claims.read(self.state, name, data, self._seed)
            if beat is not None:
                beats[name] = beat
        self.beats = beats

    @property
    def outcome(self) -> str:
        """How it ended; empty while it goes on."""
        return self.state.outcome if self.state.phase == "closed" else ""

    @property
    def cost(self) -> int:
        """So far, micro-dollars."""
        from tradewind.ledger.postings import cost_of

        events = (event for commit in self.commits for event in commit.events)
        return cost_of(self.run_id, events, now=int(clock.now().timestamp())).micros


Tell = Callable[[list[Commit], Troubles], None]


def watch(
    sight: Sight,
    *,
    tell: Tell = lambda commits, troubles: None,
    timeout_s: float | None = None,
) -> str:
    """Looks after the run until it is over; how it ended, or "" if that took too long. `tell` is
    called after each pass with what is new and what went wrong."""
    from tradewind.api import fleet

    loop = fleet.loop(sight.store)
    begun = clock.stopwatch()
    troubles: Troubles = []

    def wanted() -> bool:
        nonlocal troubles
        # With those of the store and of providers, which are everybody's.
        others = loop.controller.memory.runs.keys() - {sight.run_id}
        told, troubles = [met for met in troubles if met[0] not in others], []
        new: list[Commit] = []
        try:
            new = sight.look()
            sight.feel()
        except BadFile:
            raise  # damaged, or of a newer version: no pass will change that
        except TradewindError as error:
            told = [*told, (sight.run_id, error)]
        tell(new, told)
        late = timeout_s is not None and clock.stopwatch() - begun >= timeout_s
        return not sight.outcome and not late

    loop.watch(wanted, tell=lambda met: troubles.extend(met))
    return sight.outcome


def leave(store: Store, run_id: str) -> Path:
    """To a process in the background, which outlives this one and its terminal; where that writes
    what it sees, or would: the run is submitted, and looked after in any case."""
    log = log_of(run_id)
    command = [sys.executable, "-P", "-m", "tradewind", "watch", run_id, "--store", store.url]
    try:
        stream = append(log)
    except OSError:
        stream = Path(os.devnull).open("ab")  # noqa: SIM115
    with stream:
        # The shell is gone at once and leaves the other to init: whoever called us, and may live
        # for weeks, has no child to bury.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", *command],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            check=True,
        )
    return log


def log_of(run_id: str) -> Path:
    return home() / "watch" / f"{run_id}.log"
