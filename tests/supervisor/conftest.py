from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.supervisor.machines import MachineUnderTest, Run


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., MachineUnderTest]]:
    """`launch(command, setup=…, machine={…})`: a run of one machine, whose supervisor is at
    work."""
    machines: list[MachineUnderTest] = []

    def make(command: str, machine: dict[str, Any] | None = None, **run: Any) -> MachineUnderTest:
        made = Run(tmp_path, command=command, **run).machine(**(machine or {}))
        machines.append(made)
        return made.start()

    yield make
    for each in machines:
        each.end()
