"""No command on a page without a test, or a reason; and what is excused can at least be read."""

from __future__ import annotations

import re
import shlex
import tomllib

import click
import pytest

from tests.docs import blocks, scenes
from tests.docs.excuses import EXCUSES, excuse
from tests.test_docs import PAGES
from tradewind.cli import app

BLOCKS = blocks.every()
RECORDED = {str(page.relative_to(blocks.ROOT)) for page in PAGES}
COMMANDS = [(b.page, b.language, command) for b in BLOCKS for command in b.commands]


def test_blocks_are_of_kinds_that_we_know() -> None:
    unknown = [(b.page, b.language) for b in BLOCKS if b.language not in blocks.LANGUAGES]
    assert unknown == [], "say in tests/docs/blocks.py what this is, and run it"
    for block in BLOCKS:
        assert block.language != "console" or block.text.startswith("$ "), block
        looks_like_one = re.search(r"^(tradewind|python|pip|make|torchrun) ", block.text, re.M)
        assert block.language not in ("text", "") or not looks_like_one, block


def test_commands_are_run_or_excused() -> None:
    for page, language, command in COMMANDS:
        where = f"{page}: {command}"
        if language == "console":
            assert page in RECORDED, f"{where}: only README.md and docs/ are recorded and run"
        elif language != "sh":
            assert excuse(page, command), f"{where}: let it be recorded, or say why it is not"
        elif not excuse(page, command):  # then tests/docs/test_scripts.py runs it
            ours = "tradewind " in command or page in scenes.COPIED
            assert ours or _plain(command), f"{where}: say in excuses.py why it is not run"


def _plain(command: str) -> bool:
    """Of the shell, before a command of ours."""
    return command.split()[0] in ("mkdir", "cd", "cat", "printf")


@pytest.mark.parametrize("each", EXCUSES, ids=lambda e: f"{e.page}: {e.command}")
def test_no_excuse_is_left_over(each: object) -> None:
    used = [excuse(page, command) for page, language, command in COMMANDS if language != "console"]
    assert each in used, "nothing on the page is like this any more"


def test_what_is_excused_is_a_command_with_these_options() -> None:
    seen = 0
    for page, _, command in COMMANDS:
        if not excuse(page, command) or "tradewind " not in command:
            continue
        line = command.removeprefix("* * * * *").replace("\\\n", " ")
        words = shlex.split(line, comments=True)
        if "tradewind" in words:
            _parsed(words[words.index("tradewind") + 1 :], f"{page}: {command}")
            seen += 1
    assert seen > 20


def _parsed(words: list[str], what: str) -> None:
    command: click.Command = app.command
    context = click.Context(command, info_name="tradewind")
    while isinstance(command, click.Group):
        if command.invoke_without_command and (not words or words[0].startswith("-")):
            break
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"{what}: there is no {name}"
        command = found
    try:
        command.make_context(command.name, words, parent=context).close()
    except click.UsageError as error:
        raise AssertionError(f"{what}: {error.message}") from None


def test_commands_in_prose_are_there_with_their_options() -> None:
    """`tradewind run --local`, between the words: names and options, whatever their values."""
    seen = 0
    for page in blocks.pages():
        prose = blocks.FENCE.sub("", page.read_text())
        for words in re.findall(r"`tradewind ([^`]+)`", prose):
            _named(words.split(), f"{page.name}: tradewind {words}")
            seen += 1
    assert seen > 100


def _named(words: list[str], what: str) -> None:
    command: click.Command = app.command
    while isinstance(command, click.Group) and words and re.fullmatch(r"[a-z-]+", words[0]):
        if words[0].startswith("-"):
            break
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"{what}: there is no {words[0]}"
        command, words = found, words[1:]
    there = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert used <= there | {"--help", "-h", "--version"}, what


def test_what_is_made_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (blocks.ROOT / "Makefile").read_text(), re.M))
    for page in blocks.pages():
        inline = re.findall(r"`make ([a-z-]+)`", page.read_text())
        shown = [c.split()[1] for b in blocks.of(page) for c in b.commands if c.startswith("make ")]
        assert {*inline, *shown} <= targets, page


def test_what_is_installed_is_an_extra() -> None:
    project = tomllib.loads((blocks.ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    shown: set[str] = set()
    for page in blocks.pages():
        for names in re.findall(r"'(?:tradewind|\.)\[([a-z,]+)\]'", page.read_text()):
            shown |= set(names.split(","))
    assert shown <= extras
    assert {"torch", "cloud", "plot"} <= shown


def test_scripts_that_are_named_are_there() -> None:
    for page in blocks.pages():
        for name in re.findall(r"\btools/[\w-]+\.(?:py|sh)\b", page.read_text()):
            assert (blocks.ROOT / name).is_file(), f"{page}: {name}"
