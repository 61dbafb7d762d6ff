"""`make test-all` goes on after a failure, and a skipped system test does not look like a pass."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import test_all  # type: ignore[import-not-found]

FINE = {"code": 0, "minutes": 1.0}


def test_it_goes_on_after_a_failure_and_from_where_it_was(tmp_path: Path) -> None:
    ran: list[str] = []

    def fails(part: str) -> dict[str, Any]:
        ran.append(part)
        return {"code": 2, "minutes": 3.0, "passed": 9, "failed": 1} if part == "test" else FINE

    code, lines = test_all.main("", runs=fails, left=tmp_path)
    assert (code, ran) == (1, list(test_all.PARTS))
    assert "9 passed, 1 failed" in lines[0]
    assert "build/all/test.log" in lines[0]

    ran.clear()
    code, lines = test_all.main("docs", runs=fails, left=tmp_path)
    assert ran == ["docs", "test-system"]
    assert code == 1, "what failed before has failed"
    assert "(before)" in lines[0]


def test_a_skipped_system_test_is_no_pass(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuite><testcase name="a"/><testcase name="b"><skipped message="no tmux"/></testcase>'
        '<testcase name="c"><failure/></testcase></testsuite>'
    )
    told = test_all.counted(report)
    assert (told["passed"], told["failed"], told["skipped"]) == (1, 1, 1)

    def skips(part: str) -> dict[str, Any]:
        return {**FINE, **told, "failed": 0} if part == "test-system" else FINE

    code, lines = test_all.main("", runs=skips, left=tmp_path)
    assert code == 3
    assert "no tmux" in lines[-1]


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    code, lines = test_all.main("tests", left=tmp_path)
    assert code == 2
    assert "FROM=test|check|" in lines[0]
