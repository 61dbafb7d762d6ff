"""Trainings that a framework runs, killed and gone on with: to the bit as if they were not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torch.lives import Life, Nursery, Training, differ

MODULES = {name: f"tests.torch.frameworks.{name}" for name in ("hf", "lightning", "accelerated")}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(*MODULES.values())
    yield made
    made.close()


def told(life: Life) -> list[str]:
    """What it says at its end: its log, its counters, what was best."""
    lines = [line for line in life.log().splitlines() if line.startswith(("log", "ended"))]
    assert lines, life.log()
    return lines


@pytest.mark.parametrize(
    ("framework", "options"),
    [
        ("hf", "--best"),
        ("hf", "--workers 2 --accumulate 3 --epochs 4"),
        ("lightning", "--best"),
        ("lightning", "--workers 2 --accumulate 3 --epochs 4"),
        ("accelerated", "--best"),
        ("accelerated", "--workers 2 --accumulate 3 --epochs 4"),
    ],
)
def test_killed_and_asked_to_end(
    nursery: Nursery, tmp_path: Path, framework: str, options: str
) -> None:
    module = MODULES[framework]
    whole, broken = (Training(nursery, tmp_path / name, module) for name in ("whole", "broken"))
    words = ("--every-steps", "3", *options.split())
    first = whole.start(*words).done()
    life = broken.start(*words, "--step-s", "0.05").has_saved(5).at(11)
    life.kill()
    second = broken.start(*words, "--step-s", "0.05").at(21)
    assert second.begun() > 0
    os.killpg(second.pids[0], signal.SIGTERM)
    assert second.codes() == [143], second.log()
    ended = second.step()
    assert f"ends after step {ended}; step {ended} is saved" in second.log()
    last = broken.start(*words).done()
    assert last.begun() == ended
    assert differ(whole, broken) == []
    assert told(last) == told(first)
    again = broken.start(*words).done()  # what is done is not done again
    assert again.step() == 0
    assert differ(whole, broken) == []
