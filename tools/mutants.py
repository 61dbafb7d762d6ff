"""Puts one fault at a time into a copy of the code, and sees whether the tests of its room notice.

Usage: python tools/mutants.py [ROOM]...      all rooms of tools/mutants.toml, or these
       JOBS=8 python tools/mutants.py         so many at once; as many as there are processors

Each fault in the list is one that loses money, time or data, or ends machines of others. One that
no test notices is printed with what it would have cost. Exits with 1 if more than one in twenty are
not noticed, with 2 if the list names code that is not there any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tradewind"
LIST = Path(__file__).with_suffix(".toml")
ENOUGH = 0.95
_FAST = "not slow and not long and not system and not terraform"
_MOST_S = 900


@dataclass(frozen=True)
class Mutant:
    room: str
    file: str
    was: str
    now: str
    loses: str
    tests: tuple[str, ...]

    @property
    def times(self) -> int:
        """How often the code has what it replaces: once, while the list is true."""
        path = PACKAGE / self.file
        return path.read_text().count(self.was) if path.is_file() else 0

    def put_into(self, package: Path) -> None:
        path = package / self.file
        path.write_text(path.read_text().replace(self.was, self.now))


def listed() -> list[Mutant]:
    rooms = tomllib.loads(LIST.read_text())
    return [
        Mutant(
            name, each["file"], each["was"], each["now"], each["loses"],
            tuple(each.get("tests", room["tests"])),
        )
        for name, room in rooms.items()
        for each in room["mutants"]
    ]  # fmt: skip


def passes(tests: tuple[str, ...], mutant: Mutant | None = None) -> bool:
    """Whether all of these do, with that fault in the code."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            mutant.put_into(source / "tradewind")
        told = subprocess.run(
            [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", "-m", _FAST, *tests],
            cwd=ROOT,
            env=os.environ
            | {"PYTHONPATH": f"{source}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
            capture_output=True,
            text=True,
            timeout=_MOST_S,
            check=False,
        )
    if told.returncode and mutant is None:
        print(told.stdout[-2000:] + told.stderr[-500:], file=sys.stderr)
    return told.returncode == 0


def main(rooms: list[str]) -> int:
    known = listed()
    stale = [each for each in known if each.times != 1]
    for each in stale:
        print(f"error: {each.file} has {each.times} times: {each.was}", file=sys.stderr)
    if stale:
        return 2
    missing = [room for room in rooms if room not in {each.room for each in known}]
    if missing:
        names = ", ".join(dict.fromkeys(each.room for each in known))
        print(f"error: no room is called {missing[0]!r}\nhint: there are {names}", file=sys.stderr)
        return 2
    tried = [each for each in known if not rooms or each.room in rooms]
    with ThreadPoolExecutor(int(os.environ.get("JOBS") or os.cpu_count() or 1)) as pool:
        rooms_tests = list(dict.fromkeys(each.tests for each in tried))
        for tests, good in zip(rooms_tests, pool.map(passes, rooms_tests), strict=True):
            if not good:  # and would "notice" every fault
                print(f"error: {' '.join(tests)} fail as it is", file=sys.stderr)
                return 2
        missed = 0
        for mutant, trouble in zip(tried, pool.map(unnoticed, tried), strict=True):
            if trouble:
                missed += 1
                print(f"{mutant.room:12} {mutant.file}: {trouble}", flush=True)
    print(f"{len(tried) - missed} of {len(tried)} faults were noticed")
    return int(len(tried) - missed < ENOUGH * len(tried))


def unnoticed(mutant: Mutant) -> str:
    """What it would have cost; "" where a test fails."""
    try:
        return mutant.loses if passes(mutant.tests, mutant) else ""
    except subprocess.TimeoutExpired:
        return ""  # who waits for it notices


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
