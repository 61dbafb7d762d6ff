"""A loader beside the training's own, read for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.torch.feeds.mixing import mixed
from tradewind.torch.feeds.sources import feed_of
from tradewind.torch.sessions import unheld
from tradewind.torch.surroundings import Surroundings

_SECOND = 9


class Second(Iterator[Any]):
    """`kept` is where the checkpoint has it: its part for all ranks and for this one."""

    def __init__(
        self,
        loader: Any,
        seed: int,
        number: int,
        around: Surroundings,
        kept: list[tuple[dict[str, Any], dict[str, Any] | None]],
    ) -> None:
        feed = feed_of(loader, mixed(seed, number, _SECOND) >> 1, around)
        assert feed is not None
        self._feed, self._opened = feed, False
        self.said = feed.restore(*kept[0]) if kept else []

    def __next__(self) -> Any:
        with unheld.reading:
            if not self._opened:
                self._feed.open(None)
                self._opened = True
            return self._feed.next(None)

    def shared(self) -> dict[str, Any]:
        return self._feed.shared()

    def mine(self) -> dict[str, Any]:
        return self._feed.mine()

    def close(self) -> None:
        self._feed.close()
