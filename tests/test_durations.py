"""What has to pass before a change lands, and before a release, is short enough to be run.

No clock is asked: tests/durations.json is what `tools/record_durations.py` wrote down of whole
runs. A test that is named here is made quicker, or moved (CONTRIBUTING.md says what belongs where),
and then the target is recorded again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from record_durations import RECORD, recorded  # type: ignore[import-not-found]

TOLD = json.loads(RECORD.read_text())
AT_ONCE = 2  # as the Makefile has it
MINUTES = {"test": 8, "test-slow": 13, "test-system": 34}
MOST_S = {"test": 10, "test-slow": 60, "test-system": 240}
EXCUSED: dict[str, str] = {
    "tests/planning/test_planner.py::test_the_answer_is_that_of_trying_everything": (
        "every plan there is, against the search: the one test of the whole answer"
    ),
    "tests/api/test_rented.py::test_nothing_is_rented_where_nothing_is_set_up": (
        "the first of its file: a server of AWS's API starts with it"
    ),
    "tests/test_docs.py::test_commands_in_the_documentation_do_what_it_says[docs/pictures.md]": (
        "draws every chart of the page, each in a process that imports matplotlib"
    ),
}


@pytest.mark.parametrize("target", sorted(TOLD.keys() & MINUTES))
def test_what_has_to_pass_is_short(target: str) -> None:
    taken_s = TOLD[target]["seconds"] / AT_ONCE
    assert taken_s <= 60 * MINUTES[target], f"make {target} has outgrown its budget"


@pytest.mark.parametrize("target", sorted(TOLD.keys() & MOST_S))
def test_no_test_has_outgrown_its_target(target: str) -> None:
    longest = TOLD[target]["longest"]
    grown = {test: s for test, s in longest.items() if s > MOST_S[target] and test not in EXCUSED}
    assert not grown


def test_all_together_take_less_than_an_hour() -> None:
    assert sum(MINUTES.values()) <= 55  # with `make check` and `make audit`, which take a few


def test_a_report_is_read(tmp_path: Path) -> None:
    report = tmp_path / "test.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.test_durations" name="test_x[1]" time="4.04"/>'
        '<testcase classname="tests.store.test_cloud.TestS3" name="test_y" time="12.0"/>'
        '<testcase classname="tests.gone" name="test_z" time="0.5"/>'
        '<testcase classname="tests.gone" name="test_a" time="99"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    assert recorded(report) == {
        "tests": 3,
        "seconds": 17,
        "longest": {
            "tests/store/test_cloud.py::TestS3::test_y": 12.0,
            "tests/test_durations.py::test_x[1]": 4.0,
        },
    }
