"""Streams: loaders of an IterableDataset.

One that has state_dict and load_state_dict goes on where it was, in each rank and each worker: the
state after a batch travels with the batch, so what was made ahead does not count. One that has none
is read again up to where it was. Both belong to their rank: when the number of ranks or workers has
changed, the epoch begins again, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from tradewind.torch.feeds import seeding
from tradewind.torch.feeds.loaders import Counting
from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.workers import WorkerStart, shielded
from tradewind.torch.trees import dumped, loaded, readable

_STREAM = 5


class StreamFeed(Counting):
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

    def _source(self) -> Any:
        return self._loader

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
        for _, state in self._at.values():
            if state:
                readable(state, "the dataset")
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


def _apart(info: Any) -> AbstractContextManager[None]:
    """Workers have their random numbers for themselves; the training process has not."""
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


def _generator(seed: int) -> Any:
    import torch

    return torch.Generator().manual_seed(seed & ((1 << 63) - 1))
