"""Whether a flaw is published for any version in constraints.txt: `make audit`.

pip-audit asks PyPI's advisories. Found flaws fail. That nobody could be asked is said and does not
fail: a change must not depend on somebody else's server, and the next run asks again.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ASK = [sys.executable, "-P", "-m", "pip_audit", "--requirement", str(ROOT / "constraints.txt"),
       "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json"]  # fmt: skip


def judged(report: str, said: str) -> tuple[int, list[str]]:
    """Exit code and lines: of what pip-audit printed, and what it said besides."""
    try:
        found: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        why = said.strip().splitlines() or ["it said nothing"]
        return 0, [f"not audited: no advisories could be had: {why[-1]}"]
    asked = [each for each in found if "skip_reason" not in each]
    if not asked:
        return 0, ["not audited: the package index has no advisories"]
    flaws = [
        f"{each['name']} {each['version']}: {flaw['id']}"
        f" (fixed in {', '.join(flaw['fix_versions']) or 'no version yet'})"
        for each in asked
        for flaw in each["vulns"]
    ]
    left = [each["name"] for each in found if "skip_reason" in each]
    lines = [*flaws, f"{len(asked)} packages audited, {len(flaws)} published flaws"]
    if left:
        lines.append(f"not audited: {', '.join(left)}")
    return int(bool(flaws)), lines


def main() -> int:
    done = subprocess.run(ASK, capture_output=True, text=True, check=False)
    code, lines = judged(done.stdout, done.stderr)
    print("\n".join(lines))  # noqa: T201
    return code


if __name__ == "__main__":
    sys.exit(main())
