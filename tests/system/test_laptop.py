"""A laptop that is closed: the terminal goes, the watcher goes, and another process goes on."""

from __future__ import annotations

import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.test_run import folder, home, over, printed, tradewind
from tests.eventually import eventually
from tradewind import store as stores
from tradewind.bench.chaos import ours
from tradewind.journal import runs_store

__all__ = ["home"]

pytestmark = pytest.mark.system

STEPS = 120


def in_a_terminal(command: str) -> tuple[int, int]:
    """A shell in a session and on a terminal of its own, which waits for more when it has done the
    command; its pid, and our end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run behind nohup ignore it
        os.execv("/bin/sh", ["/bin/sh", "-c", f"{command}; cat"])
    return pid, terminal


def close(pid: int, terminal: int) -> None:
    os.close(terminal)  # the kernel sends SIGHUP to all that is in front on it
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGHUP


def of_no_machine(home: Path) -> list[ours.Process]:
    """Watchers, a command in the foreground, its shell."""
    return [each for each in ours.all_of(home) if not each.machine]


def started(command: str) -> tuple[str, int, int]:
    shell, terminal = in_a_terminal(command)
    (run,) = eventually(lambda: runs_store.run_ids(stores.open()))
    eventually(lambda: len(printed(run)) > 10)
    return run, shell, terminal


def check(run: str, home: Path) -> None:
    lines = printed(run)
    assert lines == ["from 0", *(f"step {number}" for number in range(1, STEPS + 1))]
    assert len(runs_store.load(stores.open(), run).state.requests) == 1
    eventually(lambda: ours.all_of(home) == [])


def test_left_to_the_background_and_the_battery_dies(home: Path, tmp_path: Path) -> None:
    work = folder(tmp_path, STEPS) / "work.yaml"
    run, *shell = started(f"{sys.executable} -m tradewind run {work} --local --detach --yes")
    close(*shell)
    # The command itself may take a moment to be gone.
    (watcher,) = eventually(lambda: left if len(left := of_no_machine(home)) == 1 else [])
    assert watcher.kind == "controller", "it outlives its terminal"
    os.kill(watcher.pid, signal.SIGKILL)
    eventually(lambda: of_no_machine(home) == [])
    assert not over(run)
    assert "done; 1 leg" in tradewind("watch", run)
    check(run, home)


def test_in_the_foreground_and_the_terminal_is_closed(home: Path, tmp_path: Path) -> None:
    """Nobody is left who looks after the run; each tick is a process of its own."""
    work = folder(tmp_path, STEPS) / "work.yaml"
    run, *shell = started(f"{sys.executable} -m tradewind run {work} --local --yes")
    close(*shell)
    eventually(lambda: of_no_machine(home) == [])
    assert not over(run)
    eventually(lambda: bool(tradewind("tick")) and over(run), within_s=90)
    check(run, home)
