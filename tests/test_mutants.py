"""The list of faults is true of the code as it is: each can be put in, and leaves Python."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import mutants  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]


def test_each_fault_can_be_put_in() -> None:
    listed = mutants.listed()
    assert len(listed) > 60
    for each in listed:
        assert each.times == 1, f"{each.file} has {each.times} times: {each.was}"
        text = (mutants.PACKAGE / each.file).read_text()
        ast.parse(text.replace(each.was, each.now))
        assert all((ROOT / name).exists() for name in each.tests), each.tests
