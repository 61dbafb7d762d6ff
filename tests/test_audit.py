"""What `make audit` makes of what pip-audit prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import audit  # type: ignore[import-not-found]

FINE = {"name": "click", "version": "8.5.1", "vulns": []}
SKIPPED = {"name": "torch", "skip_reason": "Dependency not found on PyPI"}
FLAWED = {
    "name": "urllib3",
    "version": "2.2.0",
    "vulns": [
        {"id": "CVE-2025-50181", "fix_versions": ["2.5.0"], "aliases": [], "description": ""}
    ],
}


def report(*dependencies: Any) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


def test_a_published_flaw_fails() -> None:
    code, lines = audit.judged(report(FINE, FLAWED), "")
    assert code == 1
    assert lines == [
        "urllib3 2.2.0: CVE-2025-50181 (fixed in 2.5.0)",
        "2 packages audited, 1 published flaws",
    ]


def test_none_is_well_and_what_was_not_asked_about_is_said() -> None:
    assert audit.judged(report(FINE, SKIPPED), "") == (
        0,
        ["1 packages audited, 0 published flaws", "not audited: torch"],
    )


@pytest.mark.parametrize(
    "printed", ["", "[]", '{"dependencies": null', report(SKIPPED), '{"dependencies": 1']
)
def test_that_nobody_could_be_asked_is_said_and_does_not_fail(printed: str) -> None:
    code, lines = audit.judged(printed, "WARNING: x\nERROR: Connection refused\n")
    assert code == 0
    assert lines[0].startswith("not audited: ")


def test_a_flaw_fails_even_where_the_rest_could_not_be_asked_about() -> None:
    assert audit.judged(report(SKIPPED, FLAWED), "")[0] == 1
