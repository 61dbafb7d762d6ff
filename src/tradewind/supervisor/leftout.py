"""What git's ignore files kept out of a bundle, and how to send it nevertheless.

A repository ignores its data and weights (`*.bin`, `data/`) because they are not source; a job may
need them all the same. What nobody's job reads, environments, caches and editors' files, is not
told of, nor what `.tradewindignore` names, which was said for the sake of what is sent, nor files
that hold secrets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from tradewind.base.units import format_bytes

_NOISE = (
    "__pycache__", "*.pyc", "*.pyo", ".venv", "venv", "env", "*.egg-info", ".eggs", "node_modules",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".tox", ".nox", ".cache",
    ".idea", ".vscode", ".DS_Store", "Thumbs.db", "*.swp", "*~", ".direnv", "htmlcov", ".coverage",
)  # fmt: skip
_SHOWN = 5
_LOOKED_AT = 20_000
"""Entries below an ignored folder: what it weighs is told, and need not be exact."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file, or a folder that is ignored whole."""

    name: str
    """In the bundle it would have had; a folder's ends in a slash."""
    size: int
    files: int = 1
    more: bool = False
    """There is more below it than was looked at."""

    @property
    def words(self) -> str:
        size = ("more than " if self.more else "") + format_bytes(self.size, digits=3)
        return f"{self.name} ({size})"


def is_noise(name: str, path: Path) -> bool:
    """`name` is its own, without its folder."""
    return any(fnmatchcase(name, each) for each in _NOISE) or (path / "pyvenv.cfg").is_file()


def weighed(path: Path, name: str) -> LeftOut | None:
    """A folder, with all that is below it; None for an empty one."""
    size = files = seen = 0
    for folder, folders, names in os.walk(path):
        folders[:] = [each for each in folders if not is_noise(each, Path(folder, each))]
        for each in names:
            with suppress(OSError):
                size += os.lstat(f"{folder}/{each}").st_size
                files += 1
        seen += len(folders) + len(names)
        if seen > _LOOKED_AT:
            return LeftOut(name, size, files, more=True)
    return LeftOut(name, size, files) if files else None


def advice(left: Sequence[LeftOut], most: int) -> str:
    """What to do for a job that reads them. `most`: bytes that a bundle may have."""
    if size_of(left) > most:
        return (
            f"a job that reads them has to fetch them: that is more than the {format_bytes(most)}"
            " that are sent with one (docs/data.md)"
        )
    return f"a job that reads them needs this line below `run:` of its workload file: {line(left)}"


def in_words(left: Sequence[LeftOut]) -> str:
    """The biggest first."""
    shown = _shown(left)
    rest = len(left) - len(shown)
    return ", ".join(each.words for each in shown) + (f" and {rest:,} more" if rest else "")


def line(left: Sequence[LeftOut]) -> str:
    """For the section `run:` of a workload file: it sends those that `in_words` names."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in _shown(left):
        path = PurePosixPath(each.name)
        suffix = "" if each.name.endswith("/") else path.suffix
        kind = (str(path.parent), suffix) if suffix else (each.name, "")
        alike.setdefault(kind, []).append(each.name.rstrip("/"))
    patterns = [
        names[0] if len(names) == 1 else str(PurePosixPath(folder) / f"*{suffix}")
        for (folder, suffix), names in alike.items()
    ]
    return f"include: [{', '.join(_quoted(each) for each in patterns)}]"


def size_of(left: Sequence[LeftOut]) -> int:
    """Of those that `line` sends."""
    return sum(each.size for each in _shown(left))


def _shown(left: Sequence[LeftOut]) -> list[LeftOut]:
    return sorted(left, key=lambda each: (-each.size, each.name))[:_SHOWN]


def _quoted(text: str) -> str:
    """As YAML takes it in brackets: `*x` alone would be an alias."""
    plain = text[0].isalnum() or text[0] in "._/"
    plain = plain and all(letter.isalnum() or letter in "._-/* " for letter in text)
    return text if plain and text == text.strip() else "'" + text.replace("'", "''") + "'"
