"""Which ranks hold and compute the same: what a strategy tells the session about its model.

Without a word, every rank has the whole model and samples of its own. Ranks that split a model by
tensors or by stages see the same samples; and of a pipeline each stage has parameters that no other
has, so what is said once for all ranks must first be gathered from the stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec import Struct

from tradewind.torch import messages

_MARK = "_tradewind_ranks"

T = TypeVar("T")


class Ranks(Struct, frozen=True):
    data_rank: int
    """Which share of the samples this rank sees, of `data_world`."""
    data_world: int
    share: int
    """Which of the `sharers`: ranks with the same parameters, who share the writing of them."""
    sharers: int
    stage: int = 0
    stages: int = 1
    group: Any = None
    """A gloo group of all ranks, where there are stages."""

    def gathered(self, value: T, kind: type[T]) -> list[tuple[int, T]]:
        """What each stage has to say: of one rank of each, with its number, in the order of
        stages."""
        said = messages.gathered(value if self.share == 0 else None, kind, self.group)
        return [(rank, each) for rank, each in enumerate(said) if each is not None]


def mark(module: Any, ranks: Ranks) -> None:
    object.__setattr__(module, _MARK, ranks)


def ranks_of(modules: Iterable[Any], rank: int, world: int) -> Ranks:
    """What was said of any of them; else each rank is for itself."""
    for module in modules:
        found: Ranks | None = getattr(module, _MARK, None)
        if found is not None:
            return found
    return Ranks(rank, world, rank, world)
