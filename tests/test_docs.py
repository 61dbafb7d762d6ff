"""The documentation is complete, and what it shows works."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import click
import pytest

from tradewind.cli import app

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import record_docs  # type: ignore[import-not-found]  # noqa: E402

PAGES: list[Path] = record_docs.pages()
BENCH = ROOT / "docs" / "commands" / "bench.md"


def leaves() -> Iterator[tuple[str, str, click.Command]]:
    """Every command: the page it belongs on, its full name, itself."""
    context = click.Context(app.command)
    for name in app.COMMANDS:
        found = app.command.get_command(context, name)
        assert found is not None
        yield name, name, found
        if isinstance(found, click.Group):
            for sub_name, sub in found.commands.items():
                yield name, f"{name} {sub_name}", sub


ALL = list(leaves())


@pytest.mark.parametrize(("page", "name", "command"), ALL, ids=[name for _, name, _ in ALL])
def test_every_command_and_option_is_documented(
    page: str, name: str, command: click.Command
) -> None:
    text = (ROOT / "docs" / "commands" / f"{page}.md").read_text()
    heading = f"# tradewind {name}\n"
    assert heading in text
    # A subcommand's options stand in its own section, or in the page's head for all of them.
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    own = next((s for s in sections if s.startswith(f"tradewind {name}\n")), "")
    where = sections[0] + own if " " in name else text
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert f"`{option}" in where, (
                    f"{option} of {name} is not in docs/commands/{page}.md"
                )
            assert parameter.help, f"{option} of {name} has no help text"
    assert command.help


def test_the_short_helps_tell_what_the_commands_do() -> None:
    for name, words in app.COMMANDS.items():
        assert words.endswith(".")
        assert (ROOT / "docs" / "commands" / f"{name}.md").exists()
        assert f"commands/{name}.md" in (ROOT / "docs" / "README.md").read_text()


LONG_PAGES = {
    "pictures.md", "plan-walkthrough.md", "own.md", "commands/place.md", "commands/plan.md",
    "commands/estimate.md", "commands/cost.md", "commands/own.md", "export/terraform.md",
    "export/dockerfile.md", "commands/sim.md",
}  # fmt: skip
"""Whose commands take seconds each."""


def marked(page: Path) -> Any:
    """Measuring takes a minute; that its commands work is shown in little in cli/test_bench.py."""
    marks = [pytest.mark.system] if page == BENCH else []
    if str(page.relative_to(ROOT)).removeprefix("docs/") in LONG_PAGES:
        marks = [pytest.mark.slow]
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", [marked(p) for p in PAGES if record_docs.commands(p)])
def test_commands_in_the_documentation_do_what_it_says(page: Path, tmp_path: Path) -> None:
    for command, recorded in record_docs.commands(page):
        done = record_docs.run(command, tmp_path)
        assert (done.returncode != 0) == ("error: " in recorded), done.stdout
        if " bench " not in command:  # whose figures are the machine's
            shown = record_docs.shown(done, tmp_path)
            assert shown == recorded, f"{page.name}: run tools/record_docs.py"


def test_benchmarks_in_the_documentation_can_be_asked_for() -> None:
    """Their names and options, also of those whose output is shown but not recorded anew."""
    shown = re.findall(r"^\$ tradewind (bench .*)$", BENCH.read_text(), re.MULTILINE)
    assert len(shown) >= 8
    context = click.Context(app.command)
    group = app.command.get_command(context, "bench")
    assert isinstance(group, click.Group)
    for line in shown:
        _, name, *options = shlex.split(line)
        group.commands[name].make_context(name, options, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_exit_code_is_documented() -> None:
    from tradewind.base import errors

    text = (ROOT / "docs" / "exit-codes.md").read_text()
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.TradewindError):
            assert f"| {kind.exit_code} |" in text
            assert kind.__name__ in (errors.__doc__ or "")


def test_every_price_source_is_documented() -> None:
    from tradewind.catalog.refresh import SOURCES, source

    text = (ROOT / "docs" / "commands" / "catalog.md").read_text()
    for name in SOURCES:
        row = next((line for line in text.splitlines() if line.startswith(f"| {name} |")), "")
        assert row, f"{name} is not in the table of sources"
        for variable in source(name).credentials:
            assert f"`{variable}`" in row
        for market in source(name).markets:
            assert market.replace("_", "-") in row


def test_the_example_account_file_is_right() -> None:
    from tests.catalog.small import REAL
    from tradewind.catalog import account

    text = (ROOT / "docs" / "account.md").read_text()
    example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    read = account.read(example, "example", REAL.names, REAL.providers)
    read.applied(REAL.table, date(2026, 11, 15))
    assert read.idle(REAL.table) == []
    assert (len(read.offers), len(read.discounts), len(read.quotas), len(read.reservations)) == (
        1,
        4,
        2,
        1,
    )


def test_the_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(example, "python.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "Counter(" in shown
    assert "compute" in shown
    assert "10000000000 2385 512" in shown
    assert "best: " in shown


def test_the_tables_and_the_schema_of_workloads_are_the_reader_s() -> None:
    from tradewind.workload import page, schema
    from tradewind.workload.fields import SECTIONS

    text = (ROOT / "docs" / "workload.md").read_text()
    assert page.renewed(text) == text, "run tools/record_docs.py"
    for section in SECTIONS:
        assert f"<!-- fields: {section.name} -->" in text
    written = (ROOT / "docs" / "workload.schema.json").read_text()
    assert written == schema.text(), "run tools/record_docs.py"


def test_the_example_workloads_on_the_page_are_right() -> None:
    from tests.workload.making import KNOWN, NOW
    from tradewind import workload

    text = (ROOT / "docs" / "workload.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 4
    for example in examples:
        workload.read(example, "example", now=NOW, known=KNOWN)
