"""The user's loader, iterated by an order of ours that does not depend on the number of ranks.

What the loader says is kept: dataset, batch size, shuffling, samplers, workers, collate_fn, pinned
memory, drop_last. Only which samples come when, and to whom, is `order`'s. A batch counts as
consumed when it is handed to the training; what workers have made ahead does not.

`Feed` is what the session needs of any source of batches; others: streams.py, loaders.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds import contents, order, samples, seeding
from tradewind.torch.feeds.drawn import LONG, Drawn
from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.order import Point, Span, Step
from tradewind.torch.feeds.samples import Collate, Piece, Seeded, below
from tradewind.torch.feeds.workers import WorkerStart, shielded
from tradewind.torch.sessions import users
from tradewind.torch.sessions.looking import Words

_DRAW = 4
_DEEP = 3
_AT_ONCE = 16
"""Steps whose samples are looked up together."""


class Feed(Protocol):
    def open(self, last_epoch: int | None) -> None:
        """Before the first batch: after it, making batches draws no random number of ours."""

    def next(self, within: int | None) -> Any:
        """The next batch, which counts as consumed from now on; StopIteration after the last, and
        where it is of an epoch after `within`."""

    @property
    def epoch(self) -> int: ...

    def length(self) -> int | None:
        """How many batches an epoch has, where that is known."""

    def more(self, within: int) -> bool | None:
        """Whether `next` would give one; None where only trying tells."""

    def place(self, epoch: int, batches: int) -> None:
        """Goes on after so many batches of that epoch, wherever it was."""

    def shared(self) -> dict[str, Any]:
        """How far it is: what all ranks know."""

    def mine(self) -> dict[str, Any]:
        """And what only this one knows."""

    def restore(self, shared: dict[str, Any], mine: dict[str, Any] | None) -> list[str]:
        """Goes on from there, on this number of ranks; what could not be had, in words."""

    def facts(self) -> dict[str, Any]:
        """What should be the same when it is continued."""

    def close(self) -> None: ...


class OrderedFeed:
    """A loader of a map-style dataset."""

    def __init__(self, loader: Any, *, seed: int, rank: int, world: int) -> None:
        self._loader, self._seed = loader, seed
        self._rank, self._world = rank, world
        sampler = loader.sampler if loader.batch_sampler is None else loader.batch_sampler
        self._batches: Any = None  # a sampler of whole batches, which are the unit then
        self._sampler: Any = sampler
        self._batch = 1
        if _is(sampler, "BatchSampler"):
            self._sampler, self._batch = sampler.sampler, int(sampler.batch_size)
        elif loader.batch_sampler is not None:
            self._batches = sampler
        # A sampler that knows its rank draws for this rank alone.
        self._alone = _is_ranked(self._sampler) and not _is(self._sampler, "DistributedSampler")
        self._drop_last = bool(getattr(sampler, "drop_last", False)) and self._batches is None
        self._began: tuple[int, int, int] | None = None
        """An epoch, and the ranks and the batch of those who began it: datasets that are read best
        in an order of their own make it for them."""
        self._order_of = _order(self._sampler, loader.dataset, seed, self._beginners)
        self._known: dict[int, Any] = {}
        self._point = Point()
        self._last_epoch: int | None = None
        self._opened: Iterator[Any] | None = None
        self._told: deque[Step] = deque()
        """To the loader's workers, and not consumed yet."""
        self._plan: deque[tuple[Step, Piece]] = deque()
        """What they are told next."""
        self._drawn_by: dict[str, Any] = {}
        """What the sampler was when it drew the newest order, and"""
        self._made_by: dict[str, Any] = {}
        """the dataset when the loader's workers got their copies."""
        if not self._size(0):
            raise InvalidValue("the dataset has no samples")

    # -- the order ---------------------------------------------------------------------------------

    def _order(self, epoch: int) -> Any:
        if epoch not in self._known:
            self._known = {e: o for e, o in self._known.items() if e >= epoch - 1}
            self._known[epoch] = self._order_of(epoch)
            self._drawn_by = looked_at(self._sampler, self._batches)
        return self._known[epoch]

    def _beginners(self, epoch: int) -> tuple[int, int]:
        if self._began is not None and self._began[0] == epoch:
            return self._began[1:]
        return self._world, self._batch

    def _size(self, epoch: int) -> int:
        return len(self._order(epoch))

    def _shares(self) -> tuple[int, int]:
        return (0, 1) if self._alone else (self._rank, self._world)

    def _all_steps(self, point: Point) -> Iterator[Step]:
        _, world = self._shares()
        return order.steps(
            point,
            self._size,
            world,
            self._batch,
            drop_last=self._drop_last,
            single=self._batches is not None,
            last_epoch=self._last_epoch,
        )

    def _pieces(self) -> Iterator[Piece]:
        """What the loader's workers are told to make, ahead of what is consumed."""
        told, plan = self._told, self._plan
        for some in self._planned():
            plan.extend(some)
            while plan:
                step, piece = plan.popleft()
                told.append(step)
                yield piece

    def _planned(self) -> Iterator[list[tuple[Step, Piece]]]:
        """Several at once: in the middle of a training nothing of this code is in the processor's
        caches, and fetching it takes longer than what it does. An epoch's end is not passed, as
        what comes after it may be drawn only when it is due; nor does a dataset that gets ready
        what comes next hear of more than that."""
        made: list[tuple[Step, Piece]] = []
        for step in self._all_steps(self._point):
            made.append((step, self._piece(step)))
            if len(made) == _AT_ONCE or self._is_near_end(step.after):
                yield made
                made = []
        yield made

    def _is_near_end(self, point: Point) -> bool:
        """Whether the step after it may be another than a plain one of the same epoch."""
        _, world = self._shares()
        order = self._order(point.epoch)
        left = len(order) - point.position
        return left < world * (self._batch + 1) or hasattr(order, "near")

    def _piece(self, step: Step) -> Piece:
        spans = step.of(*self._shares())
        indices = [each for span in spans for each in self._drawn(span)]
        if self._batches is not None:
            (indices,) = indices
            first = spans[0].start << 20  # apart from those of every other batch
            return ((spans[0].epoch, first, first + len(indices)),), indices
        return tuple((each.epoch, each.start, each.stop) for each in spans), indices

    def _drawn(self, span: Span) -> list[Any]:
        order = self._order(span.epoch)
        drawn = order[span.start : span.stop]
        if hasattr(order, "near"):  # what it is read from can be got ready
            self._loader.dataset.tradewind_near(order.near(span.start, span.stop))
        return drawn.tolist() if hasattr(drawn, "tolist") else list(drawn)

    # -- what the session needs --------------------------------------------------------------------

    def open(self, last_epoch: int | None) -> None:
        from torch.utils.data import DataLoader

        changed = self._opened is not None and self._changed()
        if self._opened is not None and self._last_epoch == last_epoch and not changed:
            return
        self.close()
        self._last_epoch = last_epoch
        if self._loader.num_workers:
            self._made_by = looked_at(*below(self._loader.dataset))
        self._check()
        theirs, workers = self._loader, self._loader.num_workers
        generator = _generator(mixed(self._seed, self._rank, _DRAW))
        with shielded():
            made = DataLoader(
                Seeded(theirs.dataset, self._seed, plain=samples.is_plain(theirs.dataset)),
                batch_sampler=_Pieces(self._pieces),
                num_workers=workers,
                collate_fn=Collate(theirs.collate_fn, one=theirs.batch_sampler is None),
                pin_memory=theirs.pin_memory,
                timeout=theirs.timeout,
                worker_init_fn=WorkerStart(theirs.worker_init_fn),
                multiprocessing_context=theirs.multiprocessing_context,
                generator=generator,
                prefetch_factor=theirs.prefetch_factor if workers else None,
            )
            self._opened = iter(made)

    def _changed(self) -> bool:
        """Between epochs, by the script: the size of batches, weights of samples, how strong a
        transform is. What comes next may have been drawn already, and workers have copies."""
        drawn = self._drawn_by != looked_at(self._sampler, self._batches)
        if drawn:
            begun = self._point.epoch if self._point.position else -1
            self._known = {e: o for e, o in self._known.items() if e == begun}
        workers = self._loader.num_workers > 0 and not self._loader.persistent_workers
        return drawn or (workers and self._made_by != looked_at(*below(self._loader.dataset)))

    def _check(self) -> None:
        _, world = self._shares()
        size = self._size(self._point.epoch)
        least = world * (self._batch if self._drop_last else 1)
        if size < least:
            what = "batches" if self._batches is not None else "samples"
            raise InvalidValue(
                f"the data has {size} {what} an epoch, and a step needs {least}",
                hint="use fewer processes, smaller batches or more data",
            )

    def next(self, within: int | None) -> Any:
        assert self._opened is not None
        step = self._following()
        if step is None or (within is not None and step.epoch > within):
            raise StopIteration
        try:
            batch = next(self._opened)
        except BaseException:  # who goes on all the same must not be given the batch after this one
            self.close()
            raise
        self._told.popleft()
        self._point = step.after
        return batch

    def _following(self) -> Step | None:
        if self._told:
            return self._told[0]
        return self._plan[0][0] if self._plan else next(self._all_steps(self._point), None)

    @property
    def epoch(self) -> int:
        return self._point.epoch

    def length(self) -> int | None:
        _, world = self._shares()
        single = self._batches is not None
        size = self._size(self._point.epoch)
        return order.steps_in(size, world, self._batch, drop_last=self._drop_last, single=single)

    def more(self, within: int) -> bool | None:
        step = next(self._all_steps(self._point), None)
        return step is not None and step.epoch <= within

    def place(self, epoch: int, batches: int) -> None:
        self.close()
        self._point = Point(epoch, 0)
        for step in islice(self._all_steps(self._point), batches):
            self._point = step.after

    def shared(self) -> dict[str, Any]:
        unit = "batches" if self._batches is not None else "samples"
        return {
            "kind": "ordered",
            "epoch": self._point.epoch,
            "position": self._point.position,
            "seed": self._seed,
            "unit": unit,
            "ranks": self._world if self._alone else 0,
            "began": list(self._beginners(self._point.epoch)),
        }

    def mine(self) -> dict[str, Any]:
        return {}

    def restore(self, shared: dict[str, Any], mine: dict[str, Any] | None) -> list[str]:
        if shared.get("kind") != "ordered" or shared.get("unit") != self.shared()["unit"]:
            return ["the data is read differently than at the checkpoint: it starts from scratch"]
        said = []
        position = int(shared["position"])
        if self._alone and shared["ranks"] not in (0, self._world):
            position = position * int(shared["ranks"]) // self._world
            said.append(
                f"the sampler draws for each rank alone, and there were {shared['ranks']} ranks:"
                " some samples of this epoch may come twice or not at all"
            )
        self._point = Point(int(shared["epoch"]), position)
        self._seed = int(shared["seed"])
        if "began" in shared:
            ranks, batch = shared["began"]
            self._began = (self._point.epoch, int(ranks), int(batch))
        self._order_of = _order(self._sampler, self._loader.dataset, self._seed, self._beginners)
        self._known = {}
        return said

    def facts(self) -> dict[str, Any]:
        unit = self.shared()["unit"]
        own: dict[str, Any] = getattr(self._loader.dataset, "tradewind_facts", dict)()
        return {
            f"{unit} in an epoch": self._size(0),
            "samples in a batch": self._batch,
            contents.FACT: contents.digest(self._loader.dataset),
            **own,
        }

    def close(self) -> None:
        self._opened = None  # which ends its workers
        self._told, self._plan = deque(), deque()


class _Pieces:
    """Looks like a sampler of batches to PyTorch's loader."""

    def __init__(self, make: Callable[[], Iterator[Piece]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Piece]:
        return self._make()

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("the order stays in the training process")


def _order(
    sampler: Any, dataset: Any, seed: int, beginners: Callable[[int], tuple[int, int]]
) -> Callable[[int], Any]:
    """From the number of an epoch to its order, or to its batches."""
    shuffle = _shuffles(sampler)
    if shuffle is None:
        return lambda epoch: _listed(sampler, seed, epoch)
    if hasattr(dataset, "tradewind_order"):

        def own(epoch: int) -> Any:
            ranks, batch = beginners(epoch)
            return dataset.tradewind_order(seed, epoch, ranks=ranks, batch=batch, shuffle=shuffle)

        return own
    if not shuffle:
        return lambda _: range(len(dataset))
    return lambda epoch: order.permutation(len(dataset), seed, epoch)


def _shuffles(sampler: Any) -> bool | None:
    """Whether it gives every sample once in any order, or in the dataset's; None: neither."""
    if _is(sampler, "SequentialSampler"):
        return False
    if _is(sampler, "DistributedSampler"):
        return bool(sampler.shuffle)
    if _is(sampler, "RandomSampler") and not sampler.replacement and sampler._num_samples is None:
        return True
    return None


def looked_at(*parts: Any) -> dict[str, Any]:
    """What of the user's own objects may be other the next time."""
    words = Words(set())
    for number, each in enumerate(parts):
        if each is not None and users.is_users_class(type(each)):  # type: ignore[arg-type]
            words.tell(str(number), each, _DEEP)
        elif hasattr(each, "weights"):  # PyTorch's own, of samples
            words.tell(str(number), each.weights, 1)
    return words.found


def _listed(sampler: Any, seed: int, epoch: int) -> Any:
    """What a sampler of the user's own draws for an epoch, of numbers that depend on that alone. A
    long epoch, or one without an end, is drawn piece by piece."""
    own = seeding.generators(sampler)
    with seeding.aside():
        if callable(tell := getattr(sampler, "set_epoch", None)):
            tell(epoch)
        size = _length(sampler)
        if size is None or size > LONG:
            return Drawn(sampler, size, mixed(seed, epoch, _DRAW), own)
        seeding.begin(mixed(seed, epoch, _DRAW), own)
        return list(sampler)


def _length(sampler: Any) -> int | None:
    try:
        return len(sampler)
    except (TypeError, NotImplementedError):
        return None


def _is(sampler: Any, name: str) -> bool:
    """Exactly PyTorch's own: a subclass may draw as it likes."""
    from torch.utils import data
    from torch.utils.data import distributed

    known = getattr(data, name, None) or getattr(distributed, name)
    return type(sampler) is known


def _is_ranked(sampler: Any) -> bool:
    return hasattr(sampler, "num_replicas") and hasattr(sampler, "rank")


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed)
