"""Writes down how long the tests took, for tests/test_durations.py to judge.

    make test test-slow test-system        each leaves build/durations/<target>.xml
    python tools/record_durations.py       those of them that are there go into tests/durations.json

For each target: how many tests, their seconds all together (two run at once: the target takes about
half of it), and the longest. On a machine that does nothing else, or it is not the tests' fault.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "tests" / "durations.json"
LEFT = ROOT / "build" / "durations"
LONG_S = 3.0
"""What took less is not named: the record stays short, and changes only where it matters."""


def recorded(report: Path) -> dict[str, Any]:
    """What a report of pytest's, as JUnit's, says of the tests that passed."""
    seconds: dict[str, float] = {}
    for case in ET.parse(report).iter("testcase"):
        if not list(case.iterfind("skipped")):
            name = _test_id(case.get("classname", ""), case.get("name", ""))
            seconds[name] = seconds.get(name, 0.0) + float(case.get("time", "0"))
    longest = {name: round(s, 1) for name, s in seconds.items() if s >= LONG_S}
    return {
        "tests": len(seconds),
        "seconds": round(sum(seconds.values())),
        "longest": dict(sorted(longest.items(), key=lambda each: (-each[1], each[0]))),
    }


def _test_id(dotted: str, name: str) -> str:
    """`tests.store.test_cloud.TestS3`, `test_x`: as one would say it to pytest."""
    parts = dotted.split(".")
    for many in range(len(parts), 0, -1):
        path = Path(*parts[:many]).with_suffix(".py")
        if (ROOT / path).is_file():
            return "::".join([str(path), *parts[many:], name])
    return f"{dotted}::{name}"


def main() -> int:
    reports = sorted(LEFT.glob("*.xml"))
    if not reports:
        sys.stderr.write(f"nothing is in {LEFT}: run `make test` first\n")
        return 3
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record |= {report.stem: recorded(report) for report in reports}
    RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1, ensure_ascii=False) + "\n")
    for report in reports:
        told = record[report.stem]
        sys.stdout.write(f"{report.stem}: {told['tests']} tests, {told['seconds']} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
