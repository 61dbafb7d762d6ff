"""The two ways in which `tradewind bench recovery` runs its job, what is killed of each, and how
long it takes until the job gets on.

A job gets on when it has made a step that it had not made before the kill. It stamps its steps with
the wall clock, which all processes of a computer share, so nothing depends on how often we look.
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

from tradewind import store as stores
from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.bench import recovery_job
from tradewind.model import places
from tradewind.providers.local import processes
from tradewind.providers.local.provider import LocalProvider

_PATIENCE_S = 300.0
"""For a start or a restart: a machine that is busy otherwise takes ten times as long as usual."""
_LOOK_S = 0.02
_LEAVE_S = 30.0
_AFTER_SAVE = 2
"""Jobs are killed so many steps after a checkpoint: those are made again, and count as well."""

Ended = Callable[[], str]
"""How something has ended; empty while it goes on."""
Kill = Callable[[], float]
"""Kills, and returns how many seconds it took until the job got on."""


class Step(NamedTuple):
    pid: int
    number: int
    at: float


class Job:
    """A job in a folder of its own, with what it has told of its steps."""

    def __init__(self, folder: Path, ended: Ended) -> None:
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir(parents=True)
        (folder / "job").mkdir()
        self.script = folder / "job" / "job.py"
        self.script.write_text(Path(recovery_job.__file__).read_text("utf-8"), "utf-8")
        self.ended = ended
        self._read = 0
        self._steps: list[Step] = []

    def steps(self) -> list[Step]:
        with suppress(FileNotFoundError), (self.data / "steps").open("rb") as stream:
            stream.seek(self._read)
            whole = stream.read().rpartition(b"\n")[0]
            for line in whole.splitlines():
                pid, number, at = line.split()
                self._steps.append(Step(int(pid), int(number), float(at)))
            self._read += len(whole) + 1 if whole else 0
        return self._steps

    def settled(self) -> Step:
        """Its last step, once its process has come so far that it goes on by itself."""

        def found() -> Step | None:
            steps = self.steps()
            far = len(steps) > 2 * recovery_job.SAVE_EVERY
            if not far or steps[-2 * recovery_job.SAVE_EVERY].pid != steps[-1].pid:
                return None
            due = steps[-1].number % recovery_job.SAVE_EVERY == _AFTER_SAVE
            return steps[-1] if due else None

        return self._until(found)

    def recovered_s(self, killed_at: float) -> float:
        reached = max(step.number for step in self.steps() if step.at <= killed_at)

        def found() -> Step | None:
            late = (s for s in self.steps() if s.at > killed_at and s.number > reached)
            return min(late, key=lambda step: step.at, default=None)

        return self._until(found).at - killed_at

    def _until(self, found: Callable[[], Step | None]) -> Step:
        begun = clock.stopwatch()
        while clock.stopwatch() - begun < _PATIENCE_S:
            if step := found():
                return step
            if ended := self.ended():
                raise TradewindError(f"the job that was to be killed is over: {ended}")
            clock.sleep(_LOOK_S)
        raise TradewindError(
            f"the job that was to be killed made no step for {_PATIENCE_S:.0f} s",
            hint="is this computer very busy? try again later",
        )


@contextmanager
def under_torchrun(folder: Path, kills: int) -> Iterator[Kill]:
    """One worker on one machine. What is killed is the worker."""
    job = Job(folder, lambda: "" if process.poll() is None else log.read_text("utf-8")[-2000:])
    log = folder / "torchrun.log"
    command = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone",
               "--nproc-per-node=1", f"--max-restarts={kills}",
               str(job.script), str(job.data)]  # fmt: skip
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, cwd=folder, start_new_session=True
        )
    try:
        yield lambda: job.recovered_s(_kill(job.settled().pid))
    finally:
        process.terminate()  # it passes that on to its worker
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_S)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Ours(NamedTuple):
    kill_job: Kill
    kill_machine: Kill


@contextmanager
def under_tradewind(folder: Path) -> Iterator[Ours]:
    """As a user has it: `tradewind run --local --detach`, and a store in a folder."""
    home, store = folder / "home", stores.open((folder / "store").as_uri())
    env = os.environ | {"TRADEWIND_HOME": str(home)}
    env.pop("TRADEWIND_NOW", None)  # with that, no time would pass

    def tradewind(*words: str) -> str:
        command = [sys.executable, "-P", "-m", "tradewind", *words, "--store", store.url]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TradewindError(f"`tradewind {words[0]}` failed: {done.stderr[-2000:]}")
        return done.stdout

    def ended() -> str:
        if places.live(run) in store.list_after(places.LIVE):
            return ""
        return (home / "watch" / f"{run}.log").read_text("utf-8")[-2000:]

    job = Job(folder, ended)
    work = job.script.with_name("work.yaml")
    work.write_text(
        "name: recovery\nwork: {hours: 1, on: 1xA100-80GB}\n"
        f"run: {{command: {json.dumps(f'python job.py {job.data}')}}}\n"
    )
    run = json.loads(tradewind("run", str(work), "--local", "--yes", "--detach", "--json"))["run"]
    try:
        yield Ours(
            lambda: job.recovered_s(_kill(job.settled().pid)),
            lambda: job.recovered_s(_kill_machine(job.settled().pid)),
        )
    finally:
        with suppress(TradewindError):
            tradewind("stop", run)
        provider = LocalProvider(home, store.url)
        provider.terminate([machine.machine_id for machine in provider.list_machines().machines])


def _kill(pid: int) -> float:
    at = clock.epoch()
    os.kill(pid, signal.SIGKILL)
    return at


def _kill_machine(pid: int) -> float:
    """The machine that this process is of: its host, its supervisor, its keeper, its job."""
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    mark = f"{processes.MARK_FOLDER}=".encode()
    (folder,) = (word.removeprefix(mark) for word in words if word.startswith(mark))
    at = clock.epoch()
    processes.kill_all(Path(os.fsdecode(folder)))
    return at
