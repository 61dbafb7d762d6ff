"""The commands in a real terminal (tmux), as wide as a user has it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.system


@pytest.fixture
def session() -> Iterator[str]:
    assert shutil.which("tmux"), "tmux is not installed; run `make test-system`"
    name = f"tradewind-{uuid.uuid4().hex[:8]}"
    yield name
    subprocess.run(["tmux", "kill-session", "-t", name], check=False, capture_output=True)


def tmux(*arguments: str) -> str:
    done = subprocess.run(["tmux", *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def screen(session: str, width: int, command: str) -> list[str]:
    """What stands on a screen of that width when the command has ended."""
    # The command waits for its terminal to have that size: a new one begins as 80 × 24.
    ready = f"until [ \"$(stty size)\" = '50 {width}' ]; do sleep 0.05; done"
    script = f"{ready}; env -u COLUMNS {command}; echo; echo THE-END; sleep 60"
    size = ("-x", str(width), "-y", "50")
    tmux("-f", "/dev/null", "new-session", "-d", "-s", session, *size, script)
    for _ in range(200):
        shown = tmux("capture-pane", "-p", "-t", session)
        if "THE-END" in shown:
            return shown.splitlines()
        time.sleep(0.1)
    raise AssertionError(f"it did not end: {shown}")


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_of_the_table_wraps(session: str, width: int, tmp_path: Path) -> None:
    command = f"TRADEWIND_HOME={tmp_path} {sys.executable} -m tradewind offers --all --limit 30"
    lines = screen(session, width, command)
    table = lines[: lines.index("")]
    assert table[0].startswith("PROVIDER")
    assert len(table) == 31
    assert all(len(line) <= width for line in table)
