"""The random numbers of Python, NumPy and PyTorch: kept, put back, and begun anew for a sample.

What a dataset draws while it makes a sample depends on the sample alone: its seed, its epoch and
its place in the epoch's order. So augmentation does not depend on how many workers there are, on
who made which sample before, or on how many ranks share the work; and going on in the middle of an
epoch needs no replay.
"""

from __future__ import annotations

import random  # noqa: TID251 -- its global generator is what people's code draws from
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tradewind.torch.order import Span, mixed

_SAMPLE, _COLLATE = 2, 3


# -- all generators of a process -------------------------------------------------------------------


def captured() -> dict[str, Any]:
    """Of Python, of NumPy (if it is used), of PyTorch's CPU and of every device that has begun."""
    import torch

    state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if "numpy" in sys.modules:
        import numpy as np

        legacy: Any = np.random.get_state(legacy=True)
        kind, keys, *rest = legacy
        state["numpy"] = (kind, torch.from_numpy(keys.astype(np.int64)), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restored(state: dict[str, Any]) -> None:
    import torch

    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    torch.set_rng_state(state["torch"])
    if "numpy" in state:
        import numpy as np

        kind, keys, *rest = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))
    devices = state.get("cuda") or []
    if devices and torch.cuda.is_available():
        for device, each in enumerate(devices[: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(each, device)


def begun(seed: int) -> None:
    """All of them anew: where a rank has no numbers to go on with, because it is a new one."""
    import torch

    _cpu(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def _cpu(seed: int) -> None:
    import torch

    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)
    # Not torch.manual_seed: that one begins the devices anew as well.
    torch.default_generator.manual_seed(seed)


def begin(seed: int, own: Sequence[Any] = ()) -> None:
    """Those of the processor, and these others; devices go on."""
    _cpu(seed)
    for number, generator in enumerate(own):
        _reseed(generator, mixed(seed, number))


class Aside:
    """The generators of the processor, as they were when it was made."""

    def __init__(self) -> None:
        import torch

        self._numpy = sys.modules["numpy"].random if "numpy" in sys.modules else None
        self._python, self._torch = random.getstate(), torch.get_rng_state()
        self._keys = self._numpy.get_state() if self._numpy else None

    def back(self) -> None:
        import torch

        random.setstate(self._python)
        torch.set_rng_state(self._torch)
        if self._numpy:
            self._numpy.set_state(self._keys)


@contextmanager
def aside() -> Iterator[None]:
    """What is drawn inside is not drawn from what the training draws from."""
    before = Aside()
    try:
        yield
    finally:
        before.back()


# -- generators that a dataset keeps for itself ----------------------------------------------------


def generators(owner: Any, depth: int = 3) -> list[Any]:
    """Those among its attributes, in an order that does not depend on the process; datasets wrap
    datasets and transforms, so a few levels down."""
    import torch

    kinds = [random.Random, torch.Generator]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"].random
        kinds += [numpy.Generator, numpy.RandomState]
    found: dict[int, Any] = {}
    _search(owner, tuple(kinds), depth, found, set())
    return list(found.values())


def _search(
    owner: Any, kinds: tuple[type, ...], depth: int, found: dict[int, Any], seen: set[int]
) -> None:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    if isinstance(owner, kinds):
        found.setdefault(id(owner), owner)
        return
    inside: list[Any] = []
    if isinstance(owner, (list, tuple)) and len(owner) <= 64:
        inside = list(owner)
    elif isinstance(owner, dict) and len(owner) <= 64:
        inside = list(owner.values())
    elif not isinstance(owner, (str, bytes, int, float, type)):
        inside = list(getattr(owner, "__dict__", {}).values())
    if depth > 0:
        for each in inside:
            _search(each, kinds, depth - 1, found, seen)


def _reseed(generator: Any, seed: int) -> None:
    """`generator` goes on as a new one of its kind would begin."""
    if isinstance(generator, random.Random):
        generator.seed(seed)
    elif hasattr(generator, "bit_generator"):
        kind = type(generator.bit_generator)
        generator.bit_generator.state = kind(seed).state
    elif hasattr(generator, "manual_seed"):
        generator.manual_seed(seed)
    else:
        generator.seed(seed & 0xFFFFFFFF)


# -- a dataset whose samples are a function of their place -----------------------------------------


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
    before: Aside | None = None


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
        before = Aside()
        try:
            made = self._made(piece)
        except BaseException:
            before.back()
            raise
        made.before = before
        return made

    def _made(self, piece: Piece) -> Fetched:
        if self._own is None:
            self._own = [] if self._plain else generators(self.dataset)
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
        begin(mixed(self._seed, epoch, position, _SAMPLE), self._own or ())


class Collate:
    """The user's collate_fn, which may draw numbers too (masks of language models are made there).
    `one`: samples are not put together."""

    def __init__(self, collate: Any, *, one: bool) -> None:
        from torch.utils.data import default_collate

        self._collate, self._one = collate, one
        self._draws = collate is not default_collate

    def __call__(self, made: Fetched) -> Any:
        import torch

        samples: Any = made[0] if self._one else list(made)
        before = made.before
        if self._draws:
            if before is None and torch.utils.data.get_worker_info() is None:
                before = Aside()
            _cpu(made.seed)
        try:
            return self._collate(samples)
        finally:
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
    return type(dataset) is TensorDataset or isinstance(dataset, (list, tuple, range))
