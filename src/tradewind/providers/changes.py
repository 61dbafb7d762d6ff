"""What setup and teardown of a cloud would do, thing by thing, and then do as it was shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Change:
    words: str
    act: Callable[[], object]


@dataclass(slots=True)
class Line:
    """A thing and what is to be done about it; nothing: it is there, and as it should be."""

    what: str
    name: str
    region: str
    there: bool
    changes: list[Change] = field(default_factory=list)
    remark: str = ""
    last: bool = False
    """It goes after the record of what was set up, which lies in it."""

    def add(self, words: str, act: Callable[[], object]) -> None:
        self.changes.append(Change(words, act))

    def carry_out(self) -> None:
        for change in self.changes:
            change.act()


@dataclass(slots=True)
class Prepared(Generic[R]):
    """A setup that was looked at, and not made yet."""

    lines: list[Line]
    account: str
    record: Callable[[], R]
    """What is to be written down, once all is made."""

    @property
    def changes(self) -> int:
        return sum(len(line.changes) for line in self.lines)

    def carry_out(self, told: Callable[[Line], None] = lambda line: None) -> R:
        for line in self.lines:
            if line.changes:
                told(line)
            line.carry_out()
        return self.record()
