"""Supervisors in processes of their own, killed in the middle of their work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.machines import RUN, MachineUnderTest, Run, lives, until
from tradewind.model.event import LegOver
from tradewind.supervisor.logs import read_logs

ROOT = Path(__file__).parents[2]


class Started:
    def __init__(self, machine: MachineUnderTest) -> None:
        boot = machine.folder / "boot.json"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.supervisor.fast_supervisor", "20", str(boot)],
            cwd=ROOT,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def started() -> Iterator[list[Started]]:
    all_of_them: list[Started] = []
    yield all_of_them
    for each in all_of_them:
        each.kill()


def pids(machine: MachineUnderTest, many: int) -> list[int]:
    """Of the job's tries, as they told them."""

    def told() -> list[int]:
        lines = machine.spool().splitlines() if (machine.folder / "spool.log").exists() else []
        found = [int(line[4:]) for line in lines if line.startswith("pid=")]
        return found if len(found) >= many else []

    return until(told, f"{many} tries")


def test_a_job_does_not_outlive_its_supervisor_and_the_next_begins_it_again(
    tmp_path: Path, started: list[Started]
) -> None:
    command = "setsid sleep 1000 & echo pid=$!; echo pid=$$; trap '' TERM HUP; sleep 1000"
    machine = Run(tmp_path, command=command, setup="echo setup").machine()
    started.append(Started(machine))
    first = pids(machine, 2)
    machine.does("working")
    beat = machine.beat()
    assert beat is not None
    started[0].kill()
    until(lambda: not any(lives(pid) for pid in first), "the job dies with its supervisor")
    until(lambda: not machine.left(), "its keeper too")

    started.append(Started(machine))
    again = pids(machine, 4)[2:]
    assert all(lives(pid) for pid in again)
    until(lambda: (now := machine.beat()) and now.beat > beat.beat and now.uptime_s > beat.uptime_s)
    machine.run.record(LegOver(leg=1, cause="moved", reason="enough"))
    assert started[1].process.wait(60) == 0
    assert not any(lives(pid) for pid in again)
    log = read_logs(machine.run.calm, RUN, 1, 0).decode()
    assert (log.count("setup\n"), log.count("pid=")) == (1, 4)
    assert log == machine.spool()


def test_a_job_that_has_ended_is_not_begun_again(tmp_path: Path, started: list[Started]) -> None:
    machine = Run(tmp_path, command="echo once; exit 3", tries=1).machine()
    started.append(Started(machine))
    before = machine.does("failed")
    started[0].kill()
    started.append(Started(machine))
    until(lambda: (now := machine.beat()) and now.beat > before.beat)
    after = machine.does("failed")
    assert (after.exit_code, after.trouble, after.tail) == (3, "user", before.tail)
    assert after.failures == 1
    started[1].process.send_signal(signal.SIGTERM)
    assert started[1].process.wait(60) == 0
    assert machine.spool().count("once\n") == 1


def test_what_outlived_both_supervisor_and_keeper_is_ended_by_the_next(
    tmp_path: Path, started: list[Started]
) -> None:
    machine = Run(tmp_path, command="echo pid=$$; sleep 1000").machine()
    started.append(Started(machine))
    (pid,) = pids(machine, 1)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(started[0].process.pid, signal.SIGSTOP)  # neither has time to see the other's end
    os.kill(keeper, signal.SIGKILL)
    started[0].kill()
    assert lives(pid)
    started.append(Started(machine))
    assert len(pids(machine, 2)) == 2
    assert not lives(pid)


def test_a_signal_ends_the_supervisor_and_its_job(tmp_path: Path, started: list[Started]) -> None:
    machine = Run(tmp_path, command="echo pid=$$; sleep 1000").machine()
    started.append(Started(machine))
    (pid,) = pids(machine, 1)
    started[0].process.terminate()
    assert started[0].process.wait(60) == 0
    assert not lives(pid)
    assert "signal 15 from outside" in read_logs(machine.run.calm, RUN, 1, 0).decode()
