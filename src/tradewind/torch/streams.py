"""Sources of batches that have no order of ours: streams, loaders with a state of their own, and
anything else that can be iterated.

A stream (IterableDataset) that has state_dict and load_state_dict goes on where it was, in each
rank and each worker: the state after a batch travels with the batch, so what was made ahead does
not count. One that has none is read again up to where it was. Both belong to their rank: when the
number of ranks or workers has changed, the epoch begins again, and that is said.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from typing import Any

from tradewind.torch import seeding
from tradewind.torch.order import mixed
from tradewind.torch.workers import WorkerStart, shielded

_STREAM = 5


class _Counting:
    """What the feeds below share: epochs, batches of the epoch so far, and their limit."""

    kind = ""

    def __init__(self) -> None:
        self._epoch = 0
        self._count = 0
        self._last_epoch: int | None = None
        self._iterator: Iterator[Any] | None = None

    def open(self, last_epoch: int | None) -> None:
        self._last_epoch = last_epoch
        if self._iterator is None and not self._over():
            self._begin()

    def _over(self) -> bool:
        return self._last_epoch is not None and self._epoch > self._last_epoch

    def _begin(self) -> None:
        raise NotImplementedError

    def _took(self, batch: Any) -> Any:
        return batch

    def next(self, within: int | None) -> Any:
        """Epochs that turn out to be empty end the data: else it would be looked for for ever."""
        if self._over() or (within is not None and self._epoch > within):
            raise StopIteration
        for _ in range(2):
            if self._iterator is None:
                self._begin()
            assert self._iterator is not None
            try:
                batch = next(self._iterator)
            except StopIteration:
                self._ended()
                if self._over() or (within is not None and self._epoch > within):
                    raise
                continue
            self._count += 1
            return self._took(batch)
        raise StopIteration

    def _ended(self) -> None:
        self._iterator = None
        self._epoch, self._count = self._epoch + 1, 0

    @property
    def epoch(self) -> int:
        return self._epoch

    def shared(self) -> dict[str, Any]:
        return {"kind": self.kind, "epoch": self._epoch, "count": self._count}

    def mine(self) -> dict[str, Any]:
        return {}

    def restore(self, shared: dict[str, Any], mine: dict[str, Any] | None) -> list[str]:
        if shared.get("kind") != self.kind:
            return ["the data comes in another way than at the checkpoint: it begins anew"]
        self._epoch, self._count = int(shared["epoch"]), int(shared["count"])
        return self._placed(mine)

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        return []

    def facts(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._iterator = None


class StreamFeed(_Counting):
    """A loader of an IterableDataset."""

    kind = "stream"

    def __init__(self, loader: Any, *, seed: int, rank: int) -> None:
        super().__init__()
        self._loader, self._seed, self._rank = loader, seed, rank
        self._workers = max(loader.num_workers, 1)
        self._at: dict[int, tuple[int, bytes]] = {}
        """Of each worker: how many samples it has made, and the dataset's state then."""
        self._turn = 0
        """Whose batch comes next."""

    def _begin(self) -> None:
        from torch.utils.data import DataLoader

        theirs = self._loader
        seed = mixed(self._seed, self._rank, self._epoch, _STREAM)
        stream = stream_type()(theirs.dataset, seed, self._epoch, self._at)
        with shielded():
            made = DataLoader(
                stream,
                batch_size=theirs.batch_size,
                drop_last=bool(theirs.drop_last),
                num_workers=theirs.num_workers,
                collate_fn=_Marking(theirs.collate_fn, stream),
                pin_memory=theirs.pin_memory,
                timeout=theirs.timeout,
                worker_init_fn=WorkerStart(theirs.worker_init_fn, turn=self._turn),
                multiprocessing_context=theirs.multiprocessing_context,
                generator=_generator(seed),
                prefetch_factor=theirs.prefetch_factor if theirs.num_workers else None,
            )
            self._iterator = iter(made)

    def _took(self, batch: Any) -> Any:
        batch, worker, count, state = batch
        self._at[worker] = (count, state)
        self._turn = (worker + 1) % self._workers
        return batch

    def _ended(self) -> None:
        super()._ended()
        self._at, self._turn = {}, 0

    def shared(self) -> dict[str, Any]:
        return {**super().shared(), "seed": self._seed}

    def restore(self, shared: dict[str, Any], mine: dict[str, Any] | None) -> list[str]:
        self._seed = int(shared.get("seed", self._seed))
        return super().restore(shared, mine)

    def mine(self) -> dict[str, Any]:
        # No empty bytes: reading weights only, PyTorch does not know them.
        at = {worker: [count, state or None] for worker, (count, state) in self._at.items()}
        return {"at": at, "turn": self._turn, "workers": self._workers}

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        if self._count and (mine is None or mine["workers"] != self._workers):
            what = "ranks" if mine is None else "loader workers"
            self._count = 0
            return [f"the number of {what} has changed: the stream's epoch begins again"]
        if mine is not None and self._count:
            self._at = {int(w): (int(n), state or b"") for w, (n, state) in mine["at"].items()}
            self._turn = int(mine["turn"])
            if not _has_state(self._loader.dataset):
                return [
                    f"the dataset has no state_dict: {self._count} batches are read again and"
                    " skipped, to be where the checkpoint was"
                ]
        return []


def _has_state(dataset: Any) -> bool:
    return hasattr(dataset, "state_dict") and hasattr(dataset, "load_state_dict")


@cache
def stream_type() -> Any:
    """The class, made when it is needed: its base is PyTorch's."""
    from torch.utils.data import IterableDataset

    class Stream(IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
        def __init__(
            self, dataset: Any, seed: int, epoch: int, at: dict[int, tuple[int, bytes]]
        ) -> None:
            self.dataset, self.seed, self._epoch = dataset, seed, epoch
            self._at = dict(at)
            self.worker, self.count = 0, 0

        def __iter__(self) -> Iterator[Any]:
            import torch

            info = torch.utils.data.get_worker_info()
            self.worker = info.id if info is not None else 0
            done, state = self._at.get(self.worker, (0, b""))
            own = seeding.generators(self.dataset)
            if callable(tell := getattr(self.dataset, "set_epoch", None)):
                tell(self._epoch)
            if state:
                self.dataset.load_state_dict(loaded(state))
                self.count = done
            with _apart(info):
                iterator = iter(self.dataset)
            while True:
                with _apart(info):
                    seeding.begin(mixed(self.seed, self.worker, self.count), own)
                    try:
                        sample = next(iterator)
                    except StopIteration:
                        return
                self.count += 1
                if self.count > done:
                    yield sample

        def state(self) -> bytes:
            return dumped(self.dataset.state_dict()) if _has_state(self.dataset) else b""

    Stream.__qualname__ = "Stream"
    return Stream


def __getattr__(name: str) -> Any:
    if name == "Stream":  # for workers that are spawned: they look it up by its name
        return stream_type()
    raise AttributeError(name)


def _apart(info: Any) -> Any:
    """Workers have their random numbers for themselves; the training process has not."""
    from contextlib import nullcontext

    return seeding.aside() if info is None else nullcontext()


class _Marking:
    """Puts a batch together, and says how far its worker is with it."""

    def __init__(self, collate: Any, stream: Any) -> None:
        self._collate, self._stream = collate, stream

    def __call__(self, samples: Any) -> tuple[Any, int, int, bytes]:
        import torch

        stream = self._stream
        with _apart(torch.utils.data.get_worker_info()):
            seeding.begin(mixed(stream.seed, stream.worker, stream.count, _STREAM))
            batch = self._collate(samples)
        return batch, stream.worker, stream.count, stream.state()


class StatefulFeed(_Counting):
    """A loader that knows how to go on by itself, as torchdata's StatefulDataLoader does."""

    kind = "stateful"

    def __init__(self, loader: Any) -> None:
        super().__init__()
        self._loader = loader
        self._goes_on: Any = None

    def _begin(self) -> None:
        if self._goes_on is not None:
            self._loader.load_state_dict(self._goes_on)
            self._goes_on = None
        elif callable(tell := getattr(getattr(self._loader, "sampler", None), "set_epoch", None)):
            tell(self._epoch)
        with shielded():
            self._iterator = iter(self._loader)

    def mine(self) -> dict[str, Any]:
        return {"state": dumped(self._loader.state_dict())}

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        if mine is None:
            self._count = 0
            return ["the number of ranks has changed: the loader's epoch begins again"]
        self._goes_on = loaded(mine["state"])
        return []


class PlainFeed(_Counting):
    """Anything that can be iterated again, and gives the same batches then."""

    kind = "plain"

    def __init__(self, batches: Any) -> None:
        super().__init__()
        self._batches = batches
        self._skip = 0

    def _begin(self) -> None:
        self._iterator = iter(self._batches)
        for _ in range(self._skip):
            next(self._iterator, None)
        self._skip = 0

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        self._skip = self._count
        if not self._count:
            return []
        return [
            f"the data is no DataLoader: {self._count} batches are skipped, to go on after them"
        ]


def dumped(state: Any) -> bytes:
    import torch

    out = io.BytesIO()
    torch.save(state, out)
    return out.getvalue()


def loaded(data: bytes) -> Any:
    import torch

    return torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed & ((1 << 63) - 1))
