"""Pages whose commands or Python take longer than `make test` has time for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import running, scenes

pytestmark = pytest.mark.system


@pytest.mark.parametrize("page", [p for p in sorted(scenes.HEAVY) if running.script(p)])
def test_its_commands(page: str, tmp_path: Path) -> None:
    done = running.run_script(page, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", [p for p in sorted(scenes.HEAVY) if running.python(p)])
def test_its_python(page: str, tmp_path: Path) -> None:
    done = running.run_python(page, tmp_path)
    assert done.returncode == 0, done.stdout
