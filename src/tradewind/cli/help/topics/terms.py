"""Words that people bring along, from other tools or from a cloud's errors, and what they are here.

They stand in `terms.list`, a block each: the words, what they are here, a command or two (indented
by four blanks), and `topic:` or `page:` to read on. A block without a text leads to its topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "terms.list"


@dataclass(frozen=True, slots=True)
class Term:
    words: tuple[str, ...]
    text: str
    commands: tuple[str, ...]
    topic: str | None
    page: str | None


@cache
def every() -> tuple[Term, ...]:
    return tuple(_read(block) for block in _FILE.read_text("utf-8").strip().split("\n\n"))


def find(asked: str) -> Term | None:
    """By any of its words, in the plural too, and however it is spelled: on-demand, on demand."""
    wanted = _plain(asked)
    return next((t for t in every() if wanted in {_plain(word) for word in t.words}), None)


def _plain(word: str) -> str:
    plain = " ".join(word.lower().replace("-", " ").replace("_", " ").split())
    return plain[:-1] if plain.endswith("s") and len(plain) > 3 else plain


def _read(block: str) -> Term:
    first, *rest = block.splitlines()
    fields = dict(line.split(": ", 1) for line in rest if line.startswith(("topic: ", "page: ")))
    commands = tuple(line.strip() for line in rest if line.startswith("    "))
    text = [line for line in rest if not line.startswith(("    ", "topic: ", "page: "))]
    words = tuple(word.strip() for word in first.split(","))
    return Term(words, " ".join(text), commands, fields.get("topic"), fields.get("page"))
