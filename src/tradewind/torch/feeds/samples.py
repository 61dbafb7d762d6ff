"""Datasets whose samples are a function of their place.

What a dataset draws while it makes a sample depends on the sample alone: its seed, its epoch and
its place in the epoch's order. So augmentation does not depend on how many workers there are, on
who made which sample before, or on how many ranks share the work; and going on in the middle of an
epoch needs no replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tradewind.torch.feeds import seeding
from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.sessions import users
from tradewind.torch.sessions.words import Voice

_SAMPLE, _COLLATE = 2, 3
_LOOKS = 3


Piece = tuple[tuple[tuple[int, int, int], ...], Sequence[Any]]
"""What one fetch makes: some of an epoch's order (epoch, start and stop), and the dataset's numbers
for it. Nothing but tuples: a thread of the training process pickles it for a worker, and while it
runs Python, the training does not."""


def _places(spans: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    for epoch, start, stop in spans:
        yield from ((epoch, position) for position in range(start, stop))


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
        self._looks, self._counts = 0, dict[str, Any]()

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

        worker = torch.utils.data.get_worker_info()
        if worker is not None and worker.id == 0 and self._looks < _LOOKS:
            self._look()
        if self._plain or worker is not None:
            return self._made(piece)
        before = seeding.Aside(self._generators())
        try:
            made = self._made(piece)
        except BaseException:
            before.back()
            raise
        made.before = before
        return made

    def _look(self) -> None:
        """Numbers of the dataset's own that change in a worker are seen by nobody else."""
        now = {
            name: value
            for each in below(self.dataset)
            if users.is_users_class(type(each))  # type: ignore[arg-type]
            for name, value in getattr(each, "__dict__", {}).items()
            if type(value) in (int, float) and not name.startswith("_")
        }
        changed = [name for name, value in self._counts.items() if now.get(name, value) != value]
        self._looks, self._counts = self._looks + 1, now
        if changed:
            self._looks = _LOOKS
            Voice(0).warn(
                f"{', '.join(changed[:3])}: numbers of the dataset that change while it makes"
                " samples. Each loader worker has its own, and they start from scratch when the"
                " training resumes; samples should depend on their index and on random numbers"
            )

    def _generators(self) -> list[Any]:
        """The dataset's own; looked for in each process, as workers have copies."""
        if self._own is None:
            self._own = [] if self._plain else seeding.generators(self.dataset)
        return self._own

    def _made(self, piece: Piece) -> Fetched:
        self._generators()
        many = self.dataset.__getitems__ if fetches_many(self.dataset) else None
        spans, indices = piece
        places = list(_places(spans))
        made = Fetched()
        made.seed = mixed(self._seed, *places[0], _COLLATE)
        if many is not None:  # all at once, as it wants: then the batch is what numbers depend on
            self._begin(*places[0])
            made.extend(many(indices))
            return made
        for (epoch, position), index in zip(places, indices, strict=True):
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


def below(dataset: Any) -> list[Any]:
    """The datasets in subsets and joins of it."""
    from torch.utils.data import ConcatDataset, Subset

    if isinstance(dataset, ConcatDataset):
        return [inner for each in dataset.datasets for inner in below(each)]
    if isinstance(dataset, Subset):
        return below(dataset.dataset)
    return [] if dataset is None else [dataset]


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
