"""Help texts: each ends in examples, which parse; and each fits a narrow terminal."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Cli
from tests.test_docs import ALL, ROOT
from tradewind.cli import app

COMMANDS = [("", app.command), *((name, command) for _, name, command in ALL)]
EVERY = pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[n or "-" for n, _ in COMMANDS])
QUICK = {"offers", "accelerators", "compare", "estimate", "schema", "explain", "completion"} | {
    "catalog status",
    "catalog doctor",
    "catalog observe",
    "plan",
    "cost",
}
"""These ask nobody outside and change nothing: they are run, not only parsed."""


def lines_of(command: click.Command) -> Iterator[str]:
    """Each example as one line, without what the shell adds to it."""
    for line in command.examples.replace("\\\n", "").splitlines():  # type: ignore[attr-defined]
        if not line.startswith("#"):
            inner = re.fullmatch(r'eval "\$\((.*)\)"', line)
            yield (inner[1] if inner else line).partition(" >")[0]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the examples' files are."""
    shutil.copy(ROOT / "examples" / "lora-8b-overnight" / "work.yaml", tmp_path / "work.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@EVERY
def test_every_command_has_examples_that_parse(
    name: str, command: click.Command, folder: Path
) -> None:
    found = list(lines_of(command))
    assert 1 <= len(found) <= 3
    for line in found:
        words = shlex.split(line)
        assert words[0] == "tradewind"
        assert words[1 : 1 + len(name.split())] == name.split()
        parsed(words[1:])


def parsed(words: list[str]) -> None:
    """Down to the last command, which then refuses what it does not know."""
    group: click.Command = app.command
    context = click.Context(group, info_name="tradewind")
    while isinstance(group, click.Group):
        if group.invoke_without_command and (not words or words[0].startswith("-")):
            return  # its own options were parsed above
        word, found, words = group.resolve_command(context, words)
        assert found is not None
        context = found.make_context(word, list(words), parent=context)
        group = found


@EVERY
def test_examples_are_run(name: str, command: click.Command, folder: Path, cli: Cli) -> None:
    for line in lines_of(command) if name in QUICK else ():
        ran = cli(*shlex.split(line)[1:])
        known = "there is no run" in ran.err and "finetune" in line
        assert ran.code == 0 or known, f"{line}: {ran.err}"


def test_a_renamed_option_would_be_seen() -> None:
    for wrong in ("offers --sorted hour", "plan a b", "catalog refrsh", "logs"):
        with pytest.raises(click.UsageError):
            parsed(wrong.split())


@EVERY
@pytest.mark.parametrize("width", [60, 80])
def test_help_fits(name: str, command: click.Command, width: int) -> None:
    context = click.Context(
        command, info_name=f"tradewind {name}".strip(), max_content_width=width,
        terminal_width=width,
    )  # fmt: skip
    text = context.get_help()
    choices = re.compile(r"\[\S+\|\S+\]$")  # which click does not break
    long = [line for line in text.splitlines() if len(line) > width and not choices.search(line)]
    assert long == []
    assert "Examples:\n  " in text
    assert text.rstrip().splitlines()[-1].lstrip() in command.examples  # type: ignore[attr-defined]


def test_help_through_a_pipe_is_plain() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", "plan", "--help"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "\x1b" not in done.stdout
    assert done.stdout.rstrip().endswith("tradewind plan work.yaml --why p5.48xlarge")
