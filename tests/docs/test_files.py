"""Files that pages show in part or whole are files that we take."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.catalog.small import REAL
from tests.docs import blocks
from tests.test_docs import record_docs  # type: ignore[attr-defined]
from tests.workload.making import KNOWN, NOW
from tradewind import workload
from tradewind.api import chargefile
from tradewind.catalog import account
from tradewind.controller import budgetfile
from tradewind.economics import team
from tradewind.providers.local import files
from tradewind.sim.market import script as market

YAML = [b for b in blocks.every() if b.language == "yaml"]
JSON = [b for b in blocks.every() if b.language == "json"]
ACCOUNT = {"offers", "discounts", "quotas", "reservations"}
BUDGETS = {"projects", "default", "tell"}
WORK = {"train", "work", "serve", "profile", "gpus"}


@pytest.mark.parametrize("block", YAML, ids=[f"{b.page} {b.number}" for b in YAML])
def test_yaml_is_a_file_of_ours(block: blocks.Block) -> None:
    keys = set(yaml.safe_load(block.text))
    if keys <= ACCOUNT:
        read = account.read(block.text, block.page, REAL.names, REAL.providers)
        read.applied(REAL.table, date(2026, 11, 15))
    elif keys <= BUDGETS:
        assert budgetfile.read(block.text, block.page)
    elif keys == {"shared"}:
        assert chargefile.read(block.text, block.page)
    elif "ways" in keys:
        assert market.read(block.text, block.page).offered
    elif "workloads" in keys:
        assert team.read(block.text, block.page, lambda name: (8.0, 5.0)).jobs
    else:
        # A section that is shown alone belongs to some work.
        more = "" if keys & WORK else "work: {hours: 1, on: 1xA100-80GB}\n"
        assert workload.read(block.text + more, block.page, now=NOW, known=KNOWN)


def test_json_is_what_machines_read() -> None:
    (notice,) = JSON
    assert notice.page == "docs/local.md"
    assert msgspec.json.decode(notice.text, type=files.Notice).taken_at_s > 0


def test_every_example_workload_is_on_the_list() -> None:
    listed = re.findall(
        r"\]\(([\w.-]+)/README\.md\)", (blocks.ROOT / "examples/README.md").read_text()
    )
    there = {path.parent.name for path in (blocks.ROOT / "examples").glob("*/README.md")}
    assert set(listed) == there


def test_the_list_of_commands_is_the_command_line_s() -> None:
    text = (blocks.ROOT / "docs/commands/README.md").read_text()
    assert "<!-- commands -->" in text
    assert record_docs.with_commands(text) == text, "run tools/record_docs.py"


def test_errors_that_are_explained_are_ones_that_we_raise() -> None:
    """What stands in code in the left column of a table, `…` for whatever varies."""
    page = (blocks.ROOT / "docs/troubleshooting.md").read_text()
    source = "".join(_sentences(path) for path in sorted((blocks.ROOT / "src").rglob("*.py")))
    left = [row.split(" | ")[0] for row in page.splitlines() if row.startswith("| ")]
    said = [words for cell in left for words in re.findall(r"`([^`]+ [^`]+)`", cell)]
    assert len(said) > 15
    for words in said:
        for part in re.split(r" ?… ?", words):
            assert part.strip(" :") in source, f"nothing says {words!r}"


def _sentences(path: Path) -> str:
    """The text of a file, with strings that go over several lines joined."""
    return re.sub(r'"\s*\n\s*f?"', "", path.read_text())


def test_the_schema_is_json() -> None:
    assert json.loads((blocks.ROOT / "docs/workload.schema.json").read_text())["type"] == "object"
