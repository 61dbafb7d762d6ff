"""What demos leave when they are killed, and that nothing else is taken for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tradewind.upkeep import demos

_DEMO = """
import os, subprocess, sys
from tradewind.upkeep import demos
with demos.lived_in(keep=False) as home:
    marked = {**os.environ, "TRADEWIND_HOME": str(home)}
    child = subprocess.Popen(
        ["sleep", "300"], env=marked, stdout=subprocess.DEVNULL, start_new_session=True
    )
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _demo(temporary: Path) -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen(
        [sys.executable, "-c", _DEMO],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def _lives(pid: int) -> bool:
    return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes() if _there(pid) else False


def _there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_sigterm_leaves_nothing(temporary: Path) -> None:
    process, child = _demo(temporary)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert not _lives(child)
    assert list(temporary.iterdir()) == []


def test_what_a_killed_one_leaves_is_found_and_a_living_one_is_left_alone(temporary: Path) -> None:
    process, child = _demo(temporary)
    assert demos.left() == []
    process.kill()
    process.communicate(timeout=60)
    (found,) = demos.left()
    assert found.pids == (child,)
    demos.remove(found)
    assert not _lives(child)
    assert demos.left() == []


def test_a_kept_home_is_nobodys_leftover(temporary: Path) -> None:
    with demos.lived_in(keep=True) as home:
        (home / "kept").touch()
    assert demos.left() == []
    assert (home / "kept").exists()
