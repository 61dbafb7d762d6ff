"""What setup and teardown would do, thing by thing, and then do as it was shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tradewind.providers.aws.footprint import OWNER


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

    def add(self, words: str, act: Callable[[], object]) -> None:
        self.changes.append(Change(words, act))


def owned(store_url: str) -> list[dict[str, object]]:
    """EC2's filter for what is ours."""
    return [{"Name": f"tag:{OWNER}", "Values": [store_url]}]
