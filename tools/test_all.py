"""Everything, one part after the other, with a line a part, going on after a failure.

    make test-all                    all of it
    make test-all FROM=test-slow     from there on; what came before is told as it was
    ROOM=aws make test-slow          of any part that tests: only one room's

What was printed lies in build/all/<part>.log. It fails where a part failed, and (exit code 3) where
tests of `test-system` were skipped: what a machine has no package for has not passed on it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tradewind.base.clock import stopwatch

ROOT = Path(__file__).parent.parent
PARTS = ("test", "check", "test-slow", "audit", "docs", "test-system")
LEFT = ROOT / "build" / "all"
REPORTS = ROOT / "build" / "durations"
NEEDS_PACKAGES = ("test-system",)


def counted(report: Path) -> dict[str, Any]:
    """Of a report of pytest's, as JUnit's; nothing where a part has none."""
    if not report.exists():
        return {}
    cases = list(ET.parse(report).iter("testcase"))
    reasons = [skip.get("message", "") for case in cases for skip in case.iterfind("skipped")]
    failed = sum(bool(list(case.iter("failure")) + list(case.iter("error"))) for case in cases)
    return {
        "passed": len(cases) - failed - len(reasons),
        "failed": failed,
        "skipped": len(reasons),
        "reasons": sorted(set(reasons)),
    }


def line(part: str, told: dict[str, Any]) -> str:
    counts = (f"{told[name]:,} {name}" for name in ("passed", "failed", "skipped") if name in told)
    said = ", ".join(counts) or ("passed" if told["code"] == 0 else "failed")
    ended = "" if told["code"] == 0 else f"  exit code {told['code']}: build/all/{part}.log"
    return f"{part:<12} {told['minutes']:5.1f} min  {said}{ended}"


def run(part: str) -> dict[str, Any]:
    report = REPORTS / f"{part}.xml"
    report.unlink(missing_ok=True)
    begun = stopwatch()
    with (LEFT / f"{part}.log").open("wb") as log:
        code = subprocess.run(
            ["make", part], cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False
        ).returncode
    return {"code": code, "minutes": (stopwatch() - begun) / 60, **counted(report)}


def main(
    first: str, *, runs: Callable[[str], dict[str, Any]] = run, left: Path = LEFT
) -> tuple[int, list[str]]:
    """Exit code, and what was told."""
    if first and first not in PARTS:
        return 2, [f"there is no part {first!r}. hint: FROM={'|'.join(PARTS)}"]
    left.mkdir(parents=True, exist_ok=True)
    record = left / "record.json"
    begin = PARTS.index(first) if first else 0
    before = json.loads(record.read_text()) if first and record.exists() else {}
    told = {part: before[part] for part in PARTS[:begin] if part in before}
    lines = [f"{line(part, each)}  (before)" for part, each in told.items()]
    for before_line in lines:
        _say(before_line)
    for part in PARTS[begin:]:
        told[part] = runs(part)
        record.write_text(json.dumps(told, indent=1))
        lines.append(line(part, told[part]))
        _say(lines[-1])
    missing = [part for part in PARTS if part not in told]
    if missing:
        lines.append(f"not run: {', '.join(missing)}")
    skipped = [part for part in NEEDS_PACKAGES if told.get(part, {}).get("skipped")]
    for part in skipped:
        lines.append(f"{part} skipped tests, which has not shown that they pass:")
        lines += [f"  {reason}" for reason in told[part]["reasons"]]
    for late in lines[len(told) :]:
        _say(late)
    if missing or any(each["code"] for each in told.values()):
        return 1, lines
    return (3 if skipped else 0), lines


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    exit_code, said = main(sys.argv[1] if len(sys.argv) > 1 else "")
    if exit_code == 2:
        _say(said[0])
    sys.exit(exit_code)
