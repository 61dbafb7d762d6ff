"""Sources of batches that are neither a loader of a map-style dataset nor of a stream: loaders with
a state of their own, and anything else that can be iterated. And what they share with streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.errors import InvalidValue
from tradewind.torch.feeds.workers import shielded
from tradewind.torch.trees import loaded, packed


class Counting:
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

    def length(self) -> int | None:
        try:
            return len(self._source())
        except TypeError:
            return None

    def _source(self) -> Any:
        raise NotImplementedError

    def more(self, within: int) -> bool | None:
        return None

    def place(self, epoch: int, batches: int) -> None:
        if batches:
            raise InvalidValue(
                f"{batches} batches of the data are done, and it cannot go on after them",
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
            return ["the data comes in another way than at the checkpoint: it begins anew"]
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
    """Anything that can be iterated again, and gives the same batches then."""

    kind = "plain"

    def __init__(self, batches: Any) -> None:
        super().__init__()
        self._batches = batches
        self._skip = 0

    def _source(self) -> Any:
        return self._batches

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
