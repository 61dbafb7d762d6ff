"""A training that goes as far as a test lets it, and the passes of a controller that looks after
it: no machine is done before it is taken."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tests.eventually import eventually
from tests.system.rented import ROOT, Runs
from tests.torch.test_tiny_gpt import EXAMPLE, weights
from tradewind.api import fleet

E = TypeVar("E")
_GATED = """session.step(loss=loss)
        gate, save = Path(os.environ["GATE"]), Path(os.environ["TRADEWIND_SAVE"])
        if session.step_number >= int(gate.read_text()):
            session._checkpoints.finish(60)  # nothing is under way while it stands here
            print(f"stands at {session.step_number}.", flush=True)
            if os.access(gate.parent, os.W_OK):
                gate.with_suffix(".stands").write_text(f"{session.step_number}.")
            while session.step_number >= int(gate.read_text()) and not save.exists():
                import time; time.sleep(0.02)
"""


@contextmanager
def shared() -> Iterator[Path]:
    """A folder that machines see too, which have a /tmp of their own, whoever jobs run as there."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


class Gated:
    """One run of it. `gate` must be a file that machines see as well."""

    def __init__(self, runs: Runs[Any], gate: Path) -> None:
        self.runs, self.gate = runs, gate
        self.loop = fleet.loop(runs.store)
        self.run_id = ""

    def job(self, folder: Path, work: str, each: int) -> Path:
        """The example with a gate in it, that saves every so many steps; BIN and GATE in the
        workload are filled in."""
        job = shutil.copytree(EXAMPLE, folder / "job")
        text = (job / "train.py").read_text()
        text = text.replace("session.step(loss=loss)\n", _GATED)
        text = text.replace("config=given\n", f"config=given, every_steps={each}\n")
        (job / "train.py").write_text(text)
        work = work.replace("BIN", str(Path(sys.executable).parent))
        (job / "work.yaml").write_text(work.replace("GATE: GATE", f"GATE: {self.gate}"))
        return job

    def go_to(self, step: int) -> None:
        """The job does not go further. Written in place, at one length: what is put where another
        file was is not seen by machines that have an overlay over this computer's files."""
        handle = os.open(self.gate, os.O_WRONLY | os.O_CREAT)
        os.pwrite(handle, f"{step:9}".encode(), 0)
        os.close(handle)

    def attend(self, until: Callable[[], object], within_s: float = 300.0) -> None:
        """Passes of a controller, until that is true."""
        told: list[str] = []

        def look() -> bool:
            troubles = self.loop.tick()
            told.extend(f"{where}: {error}" for where, error in troubles)
            return bool(until())

        try:
            eventually(look, within_s=within_s)
        except AssertionError:
            raise AssertionError("\n".join([*told[-5:], self.runs.told(self.run_id)])) from None

    def later(self, seconds: float) -> None:
        """The controller's own clocks go ahead, and nothing else's: what it waits for need not be
        waited for."""
        now, watch = self.loop.controller._clock, self.loop.controller._watch
        self.loop.controller._clock = lambda: now() + seconds
        self.loop.controller._watch = lambda: watch() + seconds

    def events(self, kind: type[E]) -> list[E]:
        commits = self.runs.loaded(self.run_id).commits
        return [event for c in commits for event in c.events if isinstance(event, kind)]

    def stands(self, step: int) -> None:
        """It has come as far as that, whoever looks after it."""
        self.go_to(step)
        try:
            eventually(lambda: self._stands == f"{step}.", within_s=300)
        except AssertionError:
            raise AssertionError(self.runs.told(self.run_id)) from None

    def next(self, step: int) -> str:
        """The machine on which the job has come as far as that, and stands."""
        self.go_to(step)
        self.attend(lambda: self._stands == f"{step}.")
        self.attend(lambda: self._at_work)
        return self._at_work

    @property
    def _stands(self) -> str:
        told = self.gate.with_suffix(".stands")
        if told.exists():
            return told.read_text()
        found = re.findall(r"stands at (\d+\.)", self.runs.output(self.run_id))
        return found[-1] if found else ""

    @property
    def _at_work(self) -> str:
        leg = self.runs.loaded(self.run_id).state.leg
        return leg.machines[0] if leg is not None and leg.state == "running" else ""


def tradewind(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout


def undisturbed(folder: Path, steps: int) -> str:
    """The weights of the same training with nothing around it."""
    job = shutil.copytree(EXAMPLE, folder / "alone")
    done = subprocess.run(
        [sys.executable, "train.py", "--steps", str(steps)],
        cwd=job,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return weights(done.stdout)
