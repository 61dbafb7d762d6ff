"""Names of files by patterns, as a workload writes them. Pure.

A pattern is a path from the job's folder, with `/` between its parts. In a part `*`, `?` and
`[abc]` stand for letters of a name, never for a `/`; `**` alone is any number of folders, also
none. What names a folder means all that is below it. Git's ignore files have other rules (they are
read by supervisor/ignores.py): there `*.bin` is in any folder, here that is `**/*.bin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

_ANY = "**"
MOST = 200
"""Patterns in a list."""
LONGEST = 500


def problem(pattern: str) -> str:
    """Why it cannot be one; empty where it can."""
    if len(pattern) > LONGEST:
        return f"it has more than {LONGEST} characters"
    if not pattern.isprintable() or "\\" in pattern:
        return "it holds a character that no name of a file there should have"
    if pattern.startswith(("/", "~")):
        return "it is not below the job's folder: write it relative to that"
    parts = _parts(pattern)
    if ".." in parts:
        return "it leads out of the job's folder"
    return "" if parts else "it names nothing"


def fits(name: str, patterns: Iterable[str]) -> bool:
    parts = name.split("/")
    return any(_fits(parts, _parts(pattern)) for pattern in patterns)


def may_hold(folder: str, patterns: Iterable[str]) -> bool:
    """Whether something below a folder may fit: so that nobody looks where nothing can."""
    parts = folder.rstrip("/").split("/")
    return any(_leads(parts, _parts(pattern)) for pattern in patterns)


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in ("", ".")]


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a name, or a folder above it, is meant. What stands between two `**` is looked for
    once, and where it is first: what comes after a name's folder is free, so no later place could
    do better, and the time is that of one length times the other however many `**` there are."""
    at = 0
    for number, block in enumerate(_blocks(wanted)):
        last = len(parts) - len(block) if number else at
        while at <= last and not _is_here(parts, at, block):
            at += 1
        if at > last or at + len(block) > len(parts):
            return False
        at += len(block)
    return True


def _blocks(wanted: Sequence[str]) -> list[list[str]]:
    """What stands before, between and behind each `**`."""
    blocks: list[list[str]] = [[]]
    for part in wanted:
        if part == _ANY:
            blocks.append([])
        else:
            blocks[-1].append(part)
    return blocks


def _is_here(parts: Sequence[str], at: int, block: Sequence[str]) -> bool:
    here = parts[at : at + len(block)]
    return len(here) == len(block) and all(map(fnmatchcase, here, block))


def _leads(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted or not parts or wanted[0] == _ANY:
        return True
    return fnmatchcase(parts[0], wanted[0]) and _leads(parts[1:], wanted[1:])
