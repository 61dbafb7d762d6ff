"""In which order samples are seen, and by which rank. Pure.

An epoch is one order of all samples, the same on every rank and for every number of ranks. How far
it is, is the number of its samples that all ranks together have consumed. Each step takes the next
samples of that order and gives every rank its slice. So a run can go on at any place with any
number of ranks, and every sample is seen once an epoch.

Near its end an epoch does not divide: see `take`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.scattered import Scattered

Sizes = int | Callable[[int], int]
"""How many samples an epoch has: some samplers draw more in one than in another."""


class Point(Struct, frozen=True):
    """How far the data is: `position` samples (or batches, where batches are the unit) of `epoch`
    are consumed."""

    epoch: int = 0
    position: int = 0


class Span(Struct, frozen=True):
    """Samples `start` to `stop` of an epoch's order."""

    epoch: int
    start: int
    stop: int


def take(
    left: int, world: int, batch: int, *, drop_last: bool = False, single: bool = False
) -> int:
    """How many of the `left` samples of an epoch all ranks together take in the next step: at least
    one each and at most `batch` each, so that no rank is ever without and memory holds. 0: these
    few cannot be shared out any more.

    A whole batch on each rank, as long as what it leaves can be shared out too. Else all of it in
    one step, evenly, or where that would be too much for a rank, half of it. Only where batches are
    of one sample there is no half: then one step takes up to two a rank. `single`: never that,
    because what is shared out are batches themselves."""
    whole = world * batch
    if left >= whole + world or left == whole or (single and left > whole):
        return whole
    if drop_last:
        return whole if left >= whole else 0
    if left < world:
        return 0
    if left < whole or batch == 1:
        return left
    return left // 2


def slices(count: int, world: int) -> list[tuple[int, int]]:
    """Where each rank's part of `count` samples begins and ends: even, and larger ones first."""
    least, more = divmod(count, world)
    ends = [(rank + 1) * least + min(rank + 1, more) for rank in range(world)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def steps_in(
    left: int, world: int, batch: int, *, drop_last: bool = False, single: bool = False
) -> int:
    """How many steps `left` samples of an epoch make."""
    whole = world * batch
    made = max(0, (left - world) // whole)
    left -= made * whole
    while size := take(left, world, batch, drop_last=drop_last, single=single):
        left, made = left - size, made + 1
    return made


class Step(Struct, frozen=True):
    """One step: what all ranks take, where the data is after it, and whether an epoch ended before
    some of it."""

    spans: tuple[Span, ...]
    after: Point

    @property
    def epoch(self) -> int:
        return self.spans[-1].epoch

    @property
    def count(self) -> int:
        return sum(span.stop - span.start for span in self.spans)

    def of(self, rank: int, world: int) -> tuple[Span, ...]:
        begin, end = slices(self.count, world)[rank]
        mine, before = [], 0
        for span in self.spans:
            size = span.stop - span.start
            low, high = max(begin - before, 0), min(end - before, size)
            if low < high:
                mine.append(Span(span.epoch, span.start + low, span.start + high))
            before += size
        return tuple(mine)


def following(
    place: Point,
    size: Sizes,
    world: int,
    batch: int,
    *,
    drop_last: bool = False,
    single: bool = False,
    last_epoch: int | None = None,
) -> Step | None:
    """The step that comes at `place`, or None where `last_epoch` is over.

    A few samples that cannot be shared out (fewer than ranks: the number of ranks has changed, or
    batches are the unit) go into the first step of the next epoch; after the last epoch there is
    none, and some samples are taken a second time instead."""
    here = size(place.epoch) if callable(size) else size
    left = here - place.position
    count = take(left, world, batch, drop_last=drop_last, single=single) if left > 0 else 0
    if count:
        end = place.position + count
        return Step(spans=(Span(place.epoch, place.position, end),), after=Point(place.epoch, end))
    over = last_epoch is not None and place.epoch >= last_epoch
    carried = () if drop_last or left <= 0 else (Span(place.epoch, place.position, here),)
    if over and not carried:
        return None
    if over:
        again = Span(place.epoch, 0, world - left)
        return Step(spans=(*carried, again), after=Point(place.epoch, here))
    had = left if carried else 0
    more = size(place.epoch + 1) if callable(size) else size
    rest = take(more + had, world, batch, drop_last=drop_last, single=single) - had
    if rest <= 0:
        return None
    first = Span(place.epoch + 1, 0, rest)
    return Step(spans=(*carried, first), after=Point(place.epoch + 1, rest))


def steps(
    place: Point,
    size: Sizes,
    world: int,
    batch: int,
    *,
    drop_last: bool = False,
    single: bool = False,
    last_epoch: int | None = None,
) -> Iterator[Step]:
    """All steps from `place` on; without a last epoch, for ever."""
    while True:
        step = following(
            place, size, world, batch, drop_last=drop_last, single=single, last_epoch=last_epoch
        )
        if step is None:
            return
        yield step
        place = step.after


LARGE = 1 << 24
"""From so many samples on an order is computed where it is read: as a list it would take seconds to
make and gigabytes to keep, in every rank."""


def permutation(size: int, seed: int, epoch: int) -> Any:
    """The order of an epoch's samples, as NumPy's. Of its generators RandomState is the one whose
    numbers never change from version to version: a run may move to a machine with another."""
    import numpy as np

    if size >= LARGE:
        return Scattered(size, mixed(seed, epoch, 1))
    word = mixed(seed, epoch, 1)
    return np.random.RandomState([word & 0xFFFFFFFF, word >> 32]).permutation(size)
