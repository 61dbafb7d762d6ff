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
    if not wanted:
        return True  # of a folder that was named, or the name itself
    if wanted[0] == _ANY:
        return any(_fits(parts[at:], wanted[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])


def _leads(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted or not parts or wanted[0] == _ANY:
        return True
    return fnmatchcase(parts[0], wanted[0]) and _leads(parts[1:], wanted[1:])
