"""Local machines whose supervisors are small scripts, and what is left of them in /proc."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import json

from tests.eventually import eventually
from tradewind.model.run import Machine
from tradewind.providers.local.provider import LocalProvider

IDLE = "import signal\nwhile True: signal.pause()\n"


def command(script: str = IDLE) -> tuple[str, ...]:
    """A supervisor; sys.argv[1] is its boot.json. -S -E: they start faster."""
    return (sys.executable, "-S", "-E", "-c", script)


def open_local(home: str) -> LocalProvider:
    return LocalProvider(Path(home), "memory://", command=command())


def folder(home: Path, machine: Machine) -> Path:
    return home.resolve() / "local" / "machines" / machine.machine_id


def written(home: Path, machine: Machine, name: str) -> Any:
    """The JSON file of this name in the machine's folder; None: it is not there."""
    path = folder(home, machine) / name
    return json.decode(path.read_bytes()) if path.exists() else None


def pids(where: Path) -> list[int]:
    """Everything in /proc, zombies too as far as they can be told, that has the mark of a machine
    below this folder. Written apart from the product's own way."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environ = (path / "environ").read_bytes()
        except OSError:
            continue
        if f"\0TRADEWIND_MACHINE_FOLDER={where.resolve()}".encode() in b"\0" + environ:
            found.append(int(path.name))
    return found


def exists(pid: int) -> bool:
    """As a process or as a zombie."""
    return Path(f"/proc/{pid}").exists()


def pid_in(path: Path) -> int:
    """Of the process that writes its pid and a line's end into this file."""
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def children() -> set[int]:
    """Of this process, zombies too."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(path.parent.name))
    return found


@contextmanager
def a_home(path: Path) -> Iterator[Path]:
    """A home folder; what a test has left running there is terminated after it."""
    before = children()
    yield path
    provider = open_local(str(path))
    for _ in range(2):
        provider.terminate([m.machine_id for m in provider.list_machines().machines])
    # A host has told the end before it leaves, and then init has to notice.
    eventually(lambda: pids(path / "local" / "machines") == [])
    assert children() <= before, "zombies"
