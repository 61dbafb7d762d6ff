"""Small jobs for runs on this computer, and what cleans up after them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tradewind.providers.local.provider import LocalProvider

WORK = "name: count\nwork: {hours: 1, on: 1xA100-80GB}\n"


def job(place: Path, command: str = "echo one; echo two; printf three", more: str = "") -> Path:
    """The path of a workload file in a folder of its own."""
    place.mkdir(parents=True)
    path = place / "work.yaml"
    path.write_text(f"{WORK}{more}run:\n  command: {command}\n")
    return path


@contextmanager
def cleaned(home: Path) -> Iterator[Path]:
    yield home
    provider = LocalProvider(home, "memory://")
    provider.terminate([m.machine_id for m in provider.list_machines().machines])
