"""The `sh` blocks of each page, and its Python, do what they are there for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import and_long
from tests.docs import blocks, running, scenes

pytestmark = pytest.mark.slow

NAMES = [str(page.relative_to(blocks.ROOT)) for page in blocks.pages()]
SCRIPTS = [name for name in NAMES if running.script(name) and name not in scenes.HEAVY]
PYTHON = [
    name
    for name in NAMES
    if running.python(name)
    and name not in scenes.HEAVY
    and name != "docs/python.md"  # tests/test_docs.py runs it, and looks at what it prints
]


MEASURING = ("docs/benchmarks.md", "docs/commands/bench.md")


@pytest.mark.parametrize(
    "page", and_long([name for name in SCRIPTS if name not in MEASURING], MEASURING)
)
def test_its_commands(page: str, tmp_path: Path) -> None:
    done = running.run_script(page, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", PYTHON)
def test_its_python(page: str, tmp_path: Path) -> None:
    done = running.run_python(page, tmp_path)
    assert done.returncode == 0, done.stdout


def test_every_scene_is_played() -> None:
    played = {*SCRIPTS, *PYTHON, *scenes.HEAVY}
    assert set(scenes.SHELL) | set(scenes.AFTER) | set(scenes.PYTHON) <= played
    assert len(SCRIPTS) > 10
    assert len(PYTHON) > 4
