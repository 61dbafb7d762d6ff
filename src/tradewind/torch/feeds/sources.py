"""Which feed a script's data gets."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds.feed import Feed, OrderedFeed
from tradewind.torch.feeds.loaders import PlainFeed, StatefulFeed
from tradewind.torch.feeds.streams import StreamFeed
from tradewind.torch.surroundings import Surroundings


def feed_of(data: Any, seed: int, around: Surroundings) -> Feed | None:
    from torch.utils.data import DataLoader, IterableDataset

    if data is None:
        return None
    if hasattr(data, "state_dict") and hasattr(data, "load_state_dict"):
        return StatefulFeed(data)
    if isinstance(data, DataLoader):
        if isinstance(data.dataset, IterableDataset):
            return StreamFeed(data, seed=seed, rank=around.rank)
        return OrderedFeed(data, seed=seed, rank=around.rank, world=around.world)
    if not hasattr(data, "__iter__") or hasattr(data, "__next__"):
        raise InvalidValue(
            f"data is a {type(data).__name__}, which cannot be iterated again from its beginning",
            hint="give a torch.utils.data.DataLoader",
        )
    return PlainFeed(data, seed=seed)
