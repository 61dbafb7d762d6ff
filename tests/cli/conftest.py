from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.small import facts, row
from tradewind.base import clock
from tradewind.catalog import files
from tradewind.catalog.table import Row


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home of Tradewind's, and a plain environment."""
    folder = tmp_path / "home"
    monkeypatch.setenv("TRADEWIND_HOME", str(folder))
    # The day must not change while a test runs, nor its outcome with the year.
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00")
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TRADEWIND_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def cli(home: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command line in this process, as a pipe would see it."""
    from tradewind.cli.app import run

    def call(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(arguments)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)

    return call


def days_ago(days: int) -> str:
    return (clock.today() - timedelta(days=days)).isoformat()


def install(home: Path, *rows: Row) -> Path:
    """Puts a small catalog in place of the packaged one, dated now."""
    path = home / "catalog.json.gz"
    files.save(replace(facts(*rows), made_at=clock.now() + timedelta(days=1)), path)
    return path


def fresh(*arguments: Any, **more: Any) -> Row:
    """A row priced three days ago: what a test shows must not depend on the day it runs."""
    return row(*arguments, **({"as_of": days_ago(3)} | more))


def on_a_terminal(home: Path, *arguments: str, **env: str) -> str:
    """What a real terminal, 100 columns wide, would show."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tradewind", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={
            **os.environ,
            "TRADEWIND_HOME": str(home),
            "TERM": "xterm-256color",
            "COLUMNS": "100",
            **env,
        },
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end has closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    process.wait()
    return shown.decode()
