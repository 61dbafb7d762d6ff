"""A run in the demo's world: its controller is a process of its own, which can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tradewind.api import fleet, reporting, submit
from tradewind.api.follow import Sight
from tradewind.api.logs import Reader
from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.demo.alone import weights_in
from tradewind.demo.world import World
from tradewind.journal import runs_store
from tradewind.model.event import Commit
from tradewind.report.figures import Report
from tradewind.store.base import Store

_LOOK_S = 0.25
_MOST_S = 900.0
_TROUBLE_S = 15.0


class Rehearsal:
    """`with` ends whatever it has started, however it is left."""

    def __init__(self, store: Store, world: World, folder: Path, log: Path) -> None:
        self.store, self.world = store, world
        self.run_id = submit.submit(store, world.spec, folder, world.wish)
        self.sight = Sight(store, self.run_id)
        self._log = log
        self._controller: subprocess.Popen[bytes] | None = None
        self._troubled_s: float | None = None

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
                    "-P",
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

    def kill_machine(self, *, spot: bool) -> str:
        """Without notice; its name, or empty where none has got anywhere yet. `spot`: only such."""
        leg = self.sight.state.leg
        if leg is None or (spot and leg.request.way.market != "spot"):
            return ""
        working = [
            name
            for name, beat in self.sight.beats.items()
            if beat.doing == "working" and not beat.notice and beat.step > leg.began_at
        ]
        if not working:
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
                    hint=f"is this computer very busy? {' '.join(self._said()[-1:])}",
                )
            self._check()
            clock.sleep(_LOOK_S)

    def _check(self) -> None:
        """A controller that cannot go on, on a full disk for instance, tries for as long as it
        lives, which is right for a run; a demo gives up."""
        troubled = next((line for line in reversed(self._said()) if "trouble" in line), "")
        if not troubled.startswith("trouble: "):
            self._troubled_s = None
        elif self._troubled_s is None:
            self._troubled_s = clock.stopwatch()
        elif clock.stopwatch() - self._troubled_s > _TROUBLE_S:
            raise TradewindError(
                f"the run cannot continue: {troubled.removeprefix('trouble: ')}",
                hint="fix that, and run the demo again",
            )

    def _said(self) -> list[str]:
        try:
            return self._log.read_text(errors="replace").splitlines()
        except OSError:
            return []

    def weights(self) -> str:
        reader = Reader(self.store, self.run_id, leg=None, rank=None)
        lines = [line.text for line in reader.lines(self.sight.state, last=True)]
        return weights_in("\n".join(text.rstrip("\n") for text in lines))

    def report(self) -> Report:
        loaded = runs_store.load(self.store, self.run_id)
        return reporting.report_of(Sight.of(self.store, self.run_id, loaded.state, loaded.commits))
