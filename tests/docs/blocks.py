"""Every fenced block of every page, and the commands in it.

A block is told by its language: `sh` holds commands, `console` commands (`$ `) with what they
print, `python` Python. `text` that has lines `$ …` holds commands too: recorded by hand, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^ *```(?P<language>[^\n`]*)\n(?P<text>.*?)^ *```$", re.DOTALL | re.MULTILINE)
LANGUAGES = {"sh", "console", "python", "yaml", "json", "text", ""}


@dataclass(frozen=True)
class Block:
    page: str
    number: int
    """Of all blocks of the page, from 1."""
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        if self.language == "sh":
            return list(_commands(self.text))
        if self.language in ("console", "text", ""):
            return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]
        return []


def pages() -> list[Path]:
    own = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [
        *own,
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "examples").rglob("*.md")),
    ]


def of(page: Path) -> list[Block]:
    name = str(page.relative_to(ROOT))
    found = FENCE.finditer(page.read_text())
    return [
        Block(name, number, match["language"].strip(), match["text"])
        for number, match in enumerate(found, 1)
    ]


def every() -> list[Block]:
    return [block for page in pages() for block in of(page)]


def _commands(text: str) -> Iterator[str]:
    """One for each line; `\\` at its end and `<<'END'` join what belongs together."""
    lines = iter(text.splitlines())
    for line in lines:
        whole = line
        while whole.endswith("\\"):
            whole += "\n" + next(lines)
        if here := re.search(r"<<'(\w+)'", whole):
            for more in lines:
                whole += "\n" + more
                if more == here[1]:
                    break
        if whole.strip() and not whole.startswith("#"):
            yield whole
