"""`tradewind demo`: the whole journey, for real, and what it leaves behind: its pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.system


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "temporary"
    place.mkdir()
    yield place
    assert _processes_of(place) == []


def _processes_of(place: Path) -> list[str]:
    """Those whose TRADEWIND_HOME is a demo's: whatever it may have started."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if f"TRADEWIND_HOME={place}".encode() in (each / "environ").read_bytes():
                found.append((each / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def _demo(tmp_path: Path, temporary: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tradewind", "demo", "--folder", str(tmp_path / "pages"), *options],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )


def test_the_journey(tmp_path: Path, temporary: Path) -> None:
    process = _demo(tmp_path, temporary, "--steps", "600")
    told, _ = process.communicate(timeout=900)
    assert process.returncode == 0, told
    assert "Why others lost" in told
    assert "kills its machine: SIGKILL" in told
    assert "kills the controller: SIGKILL" in told
    assert "another controller reads the journal" in told
    assert "every weight is equal, bit for bit" in told
    assert "on demand alone it would have been" in told
    assert "with perfect foresight" in told
    assert "not known" not in told
    page = (tmp_path / "pages" / "report.html").read_text()
    assert "at 600 times its speed" in page
    assert "made up" in page
    assert (tmp_path / "pages" / "plan.html").stat().st_size > 10_000
    assert list(temporary.iterdir()) == []


def _begun(process: subprocess.Popen[str]) -> str:
    """What it told until machines of its run are there."""
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if "leg 1:" in line:
            break
    time.sleep(2)  # it may be in the middle of anything
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_ends_it_leaves_nothing_behind(tmp_path: Path, temporary: Path, number: int) -> None:
    process = _demo(tmp_path, temporary, "--steps", "400")
    told = _begun(process)
    process.send_signal(number)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130, told + rest
    assert "error: interrupted" in rest
    assert list(temporary.iterdir()) == []


def test_what_a_killed_one_leaves_is_found_and_removed(tmp_path: Path, temporary: Path) -> None:
    process = _demo(tmp_path, temporary, "--steps", "400")
    _begun(process)
    process.kill()
    process.communicate(timeout=60)
    assert _processes_of(temporary)
    doctor = subprocess.run(
        [sys.executable, "-m", "tradewind", "doctor", "computer"],
        env={**os.environ, "TMPDIR": str(temporary), "TRADEWIND_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "a demo that was killed has left" in doctor.stdout
    assert "of its processes still run" in doctor.stdout

    following = _demo(tmp_path, temporary, "--steps", "400")
    assert following.stdout is not None
    assert "processes ended, removed" in following.stdout.readline()
    following.terminate()
    following.communicate(timeout=60)
