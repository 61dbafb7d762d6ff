"""A run in the demo's world: its controller is a process of its own, which can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tradewind import clock, runs_store
from tradewind.api import fleet, reporting, submit
from tradewind.api.follow import Sight
from tradewind.api.logs import Reader
from tradewind.demo.alone import weights_in
from tradewind.demo.world import World
from tradewind.errors import TradewindError
from tradewind.model.event import Commit
from tradewind.report.figures import Report
from tradewind.store.base import Store

_LOOK_S = 0.25
_MOST_S = 900.0


class Rehearsal:
    """`with` ends whatever it has started, however it is left."""

    def __init__(self, store: Store, world: World, folder: Path, log: Path) -> None:
        self.store, self.world = store, world
        self.run_id = submit.submit(store, world.spec, folder, world.wish)
        self.sight = Sight(store, self.run_id)
        self._log = log
        self._controller: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Rehearsal:
        self.look_after()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_controller()
        with suppress(TradewindError):
            provider = fleet.local(self.store)
            alive = [m.machine_id for m in provider.list_machines().machines if m.ended_s is None]
            provider.terminate(alive)

    def look_after(self) -> None:
        """By a new controller."""
        with self._log.open("ab") as log:
            self._controller = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tradewind",
                    "watch",
                    self.run_id,
                    "--store",
                    self.store.url,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_controller(self) -> None:
        if self._controller is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._controller.pid, signal.SIGKILL)
            self._controller.wait()
            self._controller = None

    def kill_machine(self) -> str:
        """A spot machine, without notice; its name, or empty where there is none at work."""
        leg = self.sight.state.leg
        working = [name for name, beat in self.sight.beats.items() if beat.doing == "working"]
        if leg is None or leg.request.way.market != "spot" or not working:
            return ""
        fleet.local(self.store).interrupt(working[:1], 0.0)
        return working[0]

    def passing(self) -> Iterator[list[Commit]]:
        """What is new in its journal, again and again, until it is over."""
        until_s = clock.stopwatch() + _MOST_S
        while not self.sight.outcome:
            new = self.sight.look()
            self.sight.feel()
            yield new
            if clock.stopwatch() > until_s:
                raise TradewindError(
                    f"the run has not ended in {_MOST_S / 60:.0f} minutes",
                    hint=f"is this computer very busy? what its controller said: {self._log}",
                )
            clock.sleep(_LOOK_S)

    def weights(self) -> str:
        reader = Reader(self.store, self.run_id, leg=None, rank=None)
        lines = [line.text for line in reader.lines(self.sight.state, last=True)]
        return weights_in("\n".join(text.rstrip("\n") for text in lines))

    def report(self) -> Report:
        loaded = runs_store.load(self.store, self.run_id)
        return reporting.report_of(Sight.of(self.store, self.run_id, loaded.state, loaded.commits))
