"""Questions to plan for, drawn at random, as people ask them. Pure: one seed is one list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from typing import TYPE_CHECKING, TypeVar

from tradewind.base import clock
from tradewind.base.units import parse_duration
from tradewind.model import Limits, Market, Train, Workload

if TYPE_CHECKING:
    from random import Random  # noqa: TID251

    from tradewind.catalog import Catalog

_T = TypeVar("_T")
# Of each kind, the least and the most that is trained on.
_TRAININGS: tuple[tuple[str, Train, int, int], ...] = (
    ("lora-8b", Train(model="llama-3.1-8b", tokens=1, sequence=2048, global_batch=64, lora=16),
     10**7, 10**9),
    ("full-8b", Train(model="llama-3.1-8b", tokens=1, sequence=4096, global_batch=64),
     10**7, 2 * 10**9),
    ("qlora-70b", Train(model="llama-3.1-70b", tokens=1, sequence=2048, global_batch=64, qlora=16),
     10**6, 10**8),
    ("gpt3-1.3b", Train(model="gpt3-1.3b", tokens=1, sequence=2048, global_batch=512),
     10**9, 3 * 10**10),
    ("gpt2-xl", Train(model="gpt2-xl", tokens=1, sequence=1024, global_batch=512),
     10**8, 10**10),
    ("llama-2-7b", Train(model="llama-2-7b", tokens=1, sequence=4096, global_batch=512),
     10**8, 10**10),
    ("resnet-50", Train(model="resnet-50", samples=1, global_batch=1024), 10**7, 3 * 10**8),
)  # fmt: skip
_DEADLINES = ("6h", "12h", "1d", "2d", "3d", "7d", "14d")
_MARKETS: tuple[tuple[Market, ...] | None, ...] = (None, None, ("spot",), ("on_demand",))
_NODES = (None, 1, 1, 4)
_CONFIDENCES = (None, None, 0.8, 0.95)


def asks(catalog: Catalog, number: int, seed: int = 0) -> list[Workload]:
    """Some of them are about the providers that have the most offers: one, or three."""
    draw = clock.generator(seed)
    many = Counter(offer.provider for offer in catalog.offers()).most_common(4)
    one = [(name,) for name, _ in many]
    places = (None, None, *one, tuple(name for name, _ in many[:3]))
    return [_ask(draw, i, places) for i in range(number)]


def _ask(draw: Random, number: int, places: Sequence[tuple[str, ...] | None]) -> Workload:
    name, train, least, most = draw.choice(_TRAININGS)
    size = round(exp(draw.uniform(log(least), log(most))))
    train = replace(train, samples=size) if train.samples else replace(train, tokens=size)
    deadline = _one(draw, (None, *_DEADLINES))
    limits = Limits(
        within_s=None if deadline is None else parse_duration(deadline),
        confidence=_one(draw, _CONFIDENCES),
        markets=_one(draw, _MARKETS),
        providers=_one(draw, places),
        max_nodes=_one(draw, _NODES),
    )
    return Workload(name=f"{name}-{number}", train=train, limits=limits)


def _one(draw: Random, values: Sequence[_T]) -> _T:
    return values[draw.randrange(len(values))]
