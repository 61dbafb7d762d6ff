"""Datasets whose samples are a function of their place.

What a dataset draws while it makes a sample depends on the sample alone: its seed, its epoch and
its place in the epoch's order. So augmentation does not depend on how many workers there are, on
who made which sample before, or on how many ranks share the work; and going on in the middle of an
epoch needs no replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tradewind.torch.feeds import seeding
from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.order import Span

_SAMPLE, _COLLATE = 2, 3


class Piece:
    """What one fetch makes: some of an epoch's order, and the dataset's numbers for it."""

    __slots__ = ("indices", "spans")

    def __init__(self, spans: tuple[Span, ...], indices: Sequence[Any]) -> None:
        self.spans, self.indices = spans, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __reduce__(self) -> tuple[type[Piece], tuple[Any, ...]]:
        return Piece, (self.spans, self.indices)

    def places(self) -> Iterator[tuple[int, int]]:
        for span in self.spans:
            yield from ((span.epoch, position) for position in range(span.start, span.stop))


class Fetched(list[Any]):
    """Samples on their way to being put together, with the seed for that; and what to put back
    afterwards."""

    seed = 0
    before: seeding.Aside | None = None


class Seeded:
    """The user's dataset, as the loader's fetchers see it."""

    def __init__(self, dataset: Any, seed: int, *, plain: bool) -> None:
        self.dataset = dataset
        self._seed, self._plain = seed, plain
        self._epoch = -1
        self._own: list[Any] | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "dataset":  # or copying it would go round for ever
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitems__(self, piece: Piece) -> Fetched:
        """In a worker, or in the training process itself: then what is drawn is set aside, until
        the samples are put together."""
        import torch

        if self._plain or torch.utils.data.get_worker_info() is not None:
            return self._made(piece)
        before = seeding.Aside(self._generators())
        try:
            made = self._made(piece)
        except BaseException:
            before.back()
            raise
        made.before = before
        return made

    def _generators(self) -> list[Any]:
        """The dataset's own; looked for in each process, as workers have copies."""
        if self._own is None:
            self._own = [] if self._plain else seeding.generators(self.dataset)
        return self._own

    def _made(self, piece: Piece) -> Fetched:
        self._generators()
        many = self.dataset.__getitems__ if fetches_many(self.dataset) else None
        places = list(piece.places())
        made = Fetched()
        made.seed = mixed(self._seed, *places[0], _COLLATE)
        if many is not None:  # all at once, as it wants: then the batch is what numbers depend on
            self._begin(*places[0])
            made.extend(many(piece.indices))
            return made
        for (epoch, position), index in zip(places, piece.indices, strict=True):
            self._begin(epoch, position)
            made.append(self.dataset[index])
        return made

    def _begin(self, epoch: int, position: int) -> None:
        if epoch != self._epoch:
            self._epoch = epoch
            if callable(tell := getattr(self.dataset, "set_epoch", None)):
                tell(epoch)
        if self._plain:
            return
        seeding.begin(mixed(self._seed, epoch, position, _SAMPLE), self._own or ())


class Collate:
    """The user's collate_fn, which may draw numbers too (masks of language models are made there).
    `one`: samples are not put together."""

    def __init__(self, collate: Any, *, one: bool) -> None:
        from torch.utils.data import default_collate

        self._collate, self._one = collate, one
        self._draws = collate is not default_collate
        self._own: list[Any] | None = None

    def __call__(self, made: Fetched) -> Any:
        import torch

        samples: Any = made[0] if self._one else list(made)
        before, collating = made.before, None
        if self._draws:
            if self._own is None:
                self._own = seeding.generators(self._collate)
            if torch.utils.data.get_worker_info() is None:
                collating = seeding.Aside(self._own)
            seeding.begin(made.seed, self._own)
        try:
            return self._collate(samples)
        finally:
            if collating is not None:
                collating.back()
            if before is not None:
                before.back()


def fetches_many(dataset: Any) -> bool:
    """Whether it makes a whole batch at once. Subset has the method for whatever is below it."""
    from torch.utils.data import Subset

    if type(dataset) is Subset:
        return fetches_many(dataset.dataset)
    return callable(getattr(dataset, "__getitems__", None))


def is_plain(dataset: Any) -> bool:
    """Whether it only looks things up, so that seeding each sample would be for nothing."""
    from torch.utils.data import ConcatDataset, Subset, TensorDataset

    if type(dataset) is Subset:
        return is_plain(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(is_plain(each) for each in dataset.datasets)
    if "draws_nothing" in vars(type(dataset)):  # says so itself; its subclasses may draw
        return True
    return type(dataset) is TensorDataset or isinstance(dataset, (list, tuple, range))
