"""Prompts of about so many tokens, none like another.

Words are drawn anew for each prompt, so that no server can take one from a cache of prefixes. How
many tokens a word is depends on the tokenizer, which the server's own counts tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random  # noqa: TID251

_WORDS = (
    "the river and a small boat went down to old town where people sell bread fish wine salt from "
    "early day until late night some of them have known each other for many years they talk about "
    "rain wind price work money children road house winter summer how long it takes what must be "
    "done who will come when ship leaves with good new red blue green light dark cold warm high "
    "low open close near far under over between first last one two three four five six seven"
).split()


@dataclass(frozen=True, slots=True)
class Prompts:
    """`per_word` tokens for each word, and `extra` beside them (a chat's template)."""

    per_word: float = 1.0
    extra: float = 0.0

    def of(self, tokens: int, draw: random.Random) -> str:
        count = max(round((tokens - self.extra) / self.per_word), 1)
        return words(count, draw)


def words(count: int, draw: random.Random) -> str:
    return " ".join(draw.choices(_WORDS, k=count))


def fitted(first: tuple[int, int], second: tuple[int, int]) -> Prompts:
    """From two prompts: how many words each had, and how many tokens they were."""
    (few, less), (many, more) = first, second
    per_word = max((more - less) / (many - few), 0.05)
    return Prompts(per_word, max(less - per_word * few, 0.0))
