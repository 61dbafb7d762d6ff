"""The examples of docs/data.md run, and print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "data.md").read_text()
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for example, shown in blocks:
        exec(compile(example, "data.md", "exec"), names)
        said = capfd.readouterr()
        wanted = [line for line in shown.splitlines() if not line.startswith("tradewind.torch:")]
        assert said.out.splitlines() == wanted
        assert said.err.count("tradewind.torch:") == len(shown.splitlines()) - len(wanted)
