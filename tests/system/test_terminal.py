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


def screen(session: str, width: int, command: str) -> list[str]:
    """What stands on a screen of that width when the command has ended."""
    subprocess.run(
        ["tmux", "new-session", "-d", "-s", session, "-x", str(width), "-y", "50",
         f"{command}; echo; echo THE-END; sleep 60"],
        check=True,
    )  # fmt: skip
    for _ in range(200):
        shown = subprocess.run(
            ["tmux", "capture-pane", "-p", "-t", session],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        if "THE-END" in shown:
            return shown.splitlines()
        time.sleep(0.1)
    raise AssertionError(shown)


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_of_the_table_wraps(session: str, width: int, tmp_path: Path) -> None:
    command = f"TRADEWIND_HOME={tmp_path} {sys.executable} -m tradewind offers --all --limit 30"
    lines = screen(session, width, command)
    table = lines[: lines.index("")]
    assert table[0].startswith("PROVIDER")
    assert len(table) == 31
    assert all(len(line) <= width for line in table)
