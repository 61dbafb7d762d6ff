"""The two ways in which `tradewind bench recovery` runs its job, what is killed of each, and how
long it takes until the job gets on.

A job gets on when it has made a step that nobody had made before the kill. The job stamps its steps
with the wall clock, which all processes of a computer share, so nothing depends on how often we
look.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tradewind import clock
from tradewind.bench import recovery_job
from tradewind.errors import TradewindError
from tradewind.providers.local import processes
from tradewind.providers.local.provider import LocalProvider

_PATIENCE_S = 120.0
_LOOK_S = 0.02
_RESTARTS = 3
"""torchrun's own; every job is killed once."""


class Step(NamedTuple):
    pid: int
    number: int
    at: float


class Job:
    """A job in a folder of its own, with what it has told of its steps."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir(parents=True)
        (folder / "job").mkdir()
        self.script = folder / "job" / "job.py"
        self.script.write_text(Path(recovery_job.__file__).read_text("utf-8"), "utf-8")

    def steps(self) -> list[Step]:
        try:
            lines = (self.data / "steps").read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        cells = (line.split() for line in lines if line.endswith("\n"))
        return [Step(int(pid), int(number), float(at)) for pid, number, at in cells]

    def settled(self, alive: Callable[[], str]) -> Step:
        """Its last step, once there is a checkpoint of it to go on from and it has just got on."""
        process = steps[-1].pid if (steps := self.steps()) else 0

        def found() -> Step | None:
            mine = [step for step in self.steps() if step.pid == process or not process]
            far = len(mine) > 2 * recovery_job.SAVE_EVERY
            # As far from the last checkpoint each time: steps done again count as well.
            return mine[-1] if far and mine[-1].number % recovery_job.SAVE_EVERY == 2 else None

        return _until(found, alive, "the job does not get on")

    def recovered_s(self, killed_at: float, alive: Callable[[], str]) -> float:
        """From the kill until the first step that is new."""
        reached = max(step.number for step in self.steps() if step.at <= killed_at)

        def found() -> Step | None:
            later = (s for s in self.steps() if s.at > killed_at and s.number > reached)
            return next(later, None)

        return _until(found, alive, "the job does not come back").at - killed_at


@contextmanager
def under_torchrun(job: Job) -> Iterator[Callable[[], float]]:
    """Gives what kills the job and waits for it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
               "--nproc-per-node=1", f"--max-restarts={_RESTARTS}",
               str(job.script), str(job.data)]  # fmt: skip
    log = job.folder / "torchrun.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, cwd=job.folder, start_new_session=True
        )

    def alive() -> str:
        return "" if process.poll() is None else log.read_text()[-2000:]

    def kill() -> float:
        return job.recovered_s(_kill(job.settled(alive).pid), alive)

    try:
        yield kill
    finally:
        process.terminate()  # it passes that on to its workers
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            for pid in {step.pid for step in job.steps()}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class Ours(NamedTuple):
    kill_job: Callable[[], float]
    kill_machine: Callable[[], float]


@contextmanager
def under_tradewind(job: Job) -> Iterator[Ours]:
    """As a user has it: `tradewind run --local --detach`, and a store in a folder."""
    home, store = job.folder / "home", (job.folder / "store").as_uri()
    env = os.environ | {"TRADEWIND_HOME": str(home)}
    env.pop("TRADEWIND_NOW", None)  # with that, no time would pass
    work = job.script.with_name("work.yaml")
    work.write_text(
        "name: recovery\nwork: {hours: 1, on: 1xA100-80GB}\n"
        f"run: {{command: {json.dumps(f'python job.py {job.data}')}}}\n"
    )
    provider = LocalProvider(home, store)

    def tell(*words: str) -> str:
        command = [sys.executable, "-m", "tradewind", *words, "--store", store]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TradewindError(f"`tradewind {words[0]}` failed: {done.stderr[-2000:]}")
        return done.stdout

    def machines() -> list[str]:
        return [m.machine_id for m in provider.list_machines().machines if m.ended_s is None]

    run = json.loads(tell("run", str(work), "--local", "--yes", "--detach", "--json"))["run"]

    def alive() -> str:
        return ""

    def kill_job() -> float:
        return job.recovered_s(_kill(job.settled(alive).pid), alive)

    def kill_machine() -> float:
        job.settled(alive)
        (name,) = machines()
        at = clock.epoch()
        processes.kill_all(home.resolve() / "local" / "machines" / name)
        return job.recovered_s(at, alive)

    try:
        yield Ours(kill_job, kill_machine)
    finally:
        with suppress(TradewindError):
            tell("stop", run)
        provider.terminate(machines())


def _kill(pid: int) -> float:
    at = clock.epoch()
    os.kill(pid, signal.SIGKILL)
    return at


def _until(
    found: Callable[[], Step | None], alive: Callable[[], str], trouble: str
) -> Step:
    begun = clock.stopwatch()
    while clock.stopwatch() - begun < _PATIENCE_S:
        if step := found():
            return step
        if ended := alive():
            raise TradewindError(f"{trouble}: {ended}")
        clock.sleep(_LOOK_S)
    raise TradewindError(f"{trouble} within {_PATIENCE_S:.0f} s")
