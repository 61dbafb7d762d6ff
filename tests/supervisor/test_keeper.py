"""Whom the keeper kills: what it found, and nobody who has got the number of what has ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tradewind.supervisor import keeper


@pytest.fixture
def job() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], env={keeper.VARIABLE: "keeper-test"}) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("handles", [True, False])
def test_a_process_that_was_started_at_another_time_is_another(
    job: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, handles: bool
) -> None:
    if not handles:  # as in a Python that was built for an old kernel
        monkeypatch.delattr(os, "pidfd_open")
    found = keeper.living("keeper-test")
    assert list(found) == [job.pid]
    keeper.kill(job.pid, found[job.pid] - 1)
    assert keeper.find("keeper-test") == [job.pid]
    keeper.kill(job.pid, found[job.pid])
    assert job.wait(60) == -9


def test_what_has_ended_is_not_missed(job: subprocess.Popen[bytes]) -> None:
    found = keeper.living("keeper-test")
    job.kill()
    job.wait(60)
    keeper.kill(job.pid, found[job.pid])
    assert keeper.end_all("keeper-test")


HEADLESS = """
import ctypes, os, threading, time
def go():
    state = lambda: open("/proc/self/stat").read().rpartition(")")[2].split()[0]
    while state() != "Z": time.sleep(0.01)
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(1000)
threading.Thread(target=go).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_found_and_killed() -> None:
    """It looks like a zombie, and its environment cannot be read: it is found by its parent."""
    shell = ["sh", "-c", '"$0" -c "$1" & wait', sys.executable, HEADLESS]
    with subprocess.Popen(shell, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        try:
            pid = int(parent.stdout.readline())
            found = keeper.living("keeper-test", parent.pid)
            assert list(found) == [pid]
            keeper.kill(pid, found[pid])
            assert parent.wait(60) == 0
        finally:
            parent.kill()
