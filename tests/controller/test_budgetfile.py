from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tradewind.base.errors import BadFile, NoAccess
from tradewind.controller import budgetfile
from tradewind.ledger.budgets import Budget, Budgets

ROOT = Path(__file__).parent.parent.parent


def test_what_is_read() -> None:
    text = (
        "projects:\n  nlp: {month: $500, what: warn}\n  42: {month: 1.5k}\ndefault: {month: $0}\n"
    )
    assert budgetfile.read(text, "b") == Budgets(
        projects={
            "nlp": Budget(month=500_000_000, what="warn"),
            "42": Budget(month=1_500_000_000, what="stop"),
        },
        default=Budget(month=0),
    )
    for nothing in ("", "projects:\n", "# later\n"):
        assert not budgetfile.read(nothing, "b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("project: {}", "b line 1: project: there is no such field; did you mean 'projects'?"),
        ("projects: 5", "b line 1: projects: expected projects with their budgets, found a value"),
        ("projects: {nlp: $5}", "b line 1: projects.nlp: expected fields (month, what …)"),
        ("projects:\n  nlp:\n    what: stop", "b line 2: projects.nlp: month is missing"),
        ("default: {month: much}", "b line 1: default.month: 'much' is not an amount of money"),
        ("default: {month: -5}", "b line 1: default.month: '-5' is negative"),
        ("default: {month: $5, what: die}", "'die' is not what can happen; stop or warn"),
        ("default: {month: $5, mouth: $6}", "default.mouth: there is no such field"),
        ("- 1", "b line 1: file: expected fields"),
        ("a: b: c", "not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(BadFile, match=re.escape(complaint)):
        budgetfile.read(text, "b")


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(BadFile) as raised:
        budgetfile.read("projects:\n  a: {month: x}\n  b: {}\ndefault: 1\n", "b")
    assert [line.split(":")[0] for line in raised.value.message.splitlines()] == [
        "b line 2",
        "b line 3",
        "b line 4",
    ]


def test_the_file_of_the_home(tmp_path: Path) -> None:
    env = {"TRADEWIND_HOME": str(tmp_path)}
    assert budgetfile.load(env) == Budgets()
    path = tmp_path / "budgets.yaml"
    path.write_text("default: {month: $5}")
    assert budgetfile.load(env).of("any") == Budget(month=5_000_000)
    path.write_bytes(b"\xff")
    with pytest.raises(NoAccess):
        budgetfile.load(env)
    if os.getuid():
        path.chmod(0)
        with pytest.raises(NoAccess):
            budgetfile.load(env)


def test_the_examples_on_the_page_are_right() -> None:
    text = (ROOT / "docs" / "budgets.md").read_text()
    limits, told = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert set(budgetfile.read(limits, "example").projects) == {"nlp", "vision"}
    assert set(budgetfile.read(told, "example").projects) == {"nlp"}
