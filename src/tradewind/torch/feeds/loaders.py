"""Sources of batches that are neither a loader of a map-style dataset nor of a stream: loaders with
a state of their own, and anything else that can be iterated. And what they share with streams."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds import contents, seeding
from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.workers import shielded
from tradewind.torch.trees import loaded, packed

_PLAIN = 8


class Counting(ABC):
    """What these feeds share: epochs, batches of the epoch so far, and their limit."""

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

    @abstractmethod
    def _begin(self) -> None: ...

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

    def length(self) -> int | None:
        try:
            return len(self._source())
        except TypeError:
            return None

    @abstractmethod
    def _source(self) -> Any: ...

    def more(self, within: int) -> bool | None:
        return None

    def place(self, epoch: int, batches: int) -> None:
        if batches:
            raise InvalidValue(
                f"{batches} batches of the data are done, and it cannot resume after them",
                hint="begin at the beginning, or give a DataLoader of a map-style dataset",
            )
        self._ended()
        self._epoch = epoch

    def shared(self) -> dict[str, Any]:
        return {"kind": self.kind, "epoch": self._epoch, "count": self._count}

    def mine(self) -> dict[str, Any]:
        return {}

    def restore(self, shared: dict[str, Any], mine: dict[str, Any] | None) -> list[str]:
        if shared.get("kind") != self.kind:
            return ["the data is read differently than at the checkpoint: it starts from scratch"]
        self._epoch, self._count = int(shared["epoch"]), int(shared["count"])
        return self._placed(mine)

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        return []

    def facts(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._iterator = None


class StatefulFeed(Counting):
    """A loader that knows how to go on by itself, as torchdata's StatefulDataLoader does."""

    kind = "stateful"

    def __init__(self, loader: Any) -> None:
        super().__init__()
        self._loader = loader
        self._goes_on: Any = None

    def _source(self) -> Any:
        return self._loader

    def _begin(self) -> None:
        if self._goes_on is not None:
            self._loader.load_state_dict(self._goes_on)
            self._goes_on = None
        elif callable(tell := getattr(getattr(self._loader, "sampler", None), "set_epoch", None)):
            tell(self._epoch)
        with shielded():
            self._iterator = iter(self._loader)

    def mine(self) -> dict[str, Any]:
        return {"state": packed(self._loader.state_dict(), "the loader")}

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        if mine is None:
            self._count = 0
            return ["the number of ranks has changed: the loader's epoch begins again"]
        self._goes_on = loaded(mine["state"])
        return []


class PlainFeed(Counting):
    """Anything that can be iterated again, such as a class of the script's own around a loader.

    Whether it gives the same batches again nobody can know beforehand. So each of its batches is
    made with random numbers that follow from its place, which is enough for a loader that shuffles;
    and a digest of those it gave is kept: where the batches that are skipped are others, the data
    cannot go on, and that is an error."""

    kind = "plain"

    def __init__(self, batches: Any, *, seed: int) -> None:
        super().__init__()
        self._batches, self._seed = batches, seed
        self._skip: tuple[int, str] | None = None
        self._digest = ""

    def _source(self) -> Any:
        return self._batches

    def _begin(self) -> None:
        self._digest = ""
        iterator = iter(self._batches)
        own = seeding.generators(self._batches)
        self._iterator = _Seeded(iterator, mixed(self._seed, self._epoch, _PLAIN), own)
        if self._skip is None:
            return
        (count, digest), self._skip = self._skip, None
        for _ in range(count):
            self._digest = _chained(self._digest, next(self._iterator, None))
        if self._digest != digest:
            raise InvalidValue(
                f"the data (a {type(self._batches).__name__}) gives other batches than before the"
                f" checkpoint: the {count} that are done cannot be told from those that are not",
                hint="give a torch.utils.data.DataLoader, or what gives the same batches again",
            )

    def _took(self, batch: Any) -> Any:
        self._digest = _chained(self._digest, batch)
        return batch

    def shared(self) -> dict[str, Any]:
        return {**super().shared(), "seed": self._seed}

    def mine(self) -> dict[str, Any]:
        return {"digest": self._digest}

    def restore(self, shared: dict[str, Any], mine: dict[str, Any] | None) -> list[str]:
        self._seed = int(shared.get("seed", self._seed))
        return super().restore(shared, mine)

    def _placed(self, mine: dict[str, Any] | None) -> list[str]:
        if not self._count:
            return []
        if mine is None:
            self._count = 0
            return ["the number of ranks has changed: the data's epoch begins again"]
        self._skip = (self._count, str(mine.get("digest", "")))
        return [
            f"the data is no DataLoader: it is read again up to where it was, {self._count} batches"
        ]


class _Seeded(Iterator[Any]):
    """Each batch with random numbers of its own; those of the training are set aside."""

    def __init__(self, batches: Iterator[Any], seed: int, own: list[Any]) -> None:
        self._batches, self._seed, self._own, self._count = batches, seed, own, 0

    def __next__(self) -> Any:
        before = seeding.Aside(self._own)
        try:
            seeding.begin(mixed(self._seed, self._count), self._own)
            self._count += 1
            return next(self._batches)
        finally:
            before.back()


def _chained(digest: str, batch: Any) -> str:
    return hashlib.sha256(f"{digest} {contents.digest(batch)}".encode()).hexdigest()[:16]
