"""How the ranks agree on a checkpoint, out of step with training's own collectives.

Words are left for each other in the key-value store that PyTorch's ranks have met at, under a
prefix of our own, and looked for until a time is over. A rank that is late, skips or dies costs the
others no more than that time: there is no collective that could hang or break. Each attempt of
torchrun has another prefix, since what the last one left is still there.

Each reader says of which type the words must be; others raise BadMessage (messages.py).
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

from tradewind.base import clock
from tradewind.torch.messages import BadMessage, decoded, encoded

_PAUSE_S = 0.02
_NOTHING = b"\xc1"
"""Never the beginning of a message: MessagePack has no use for this byte."""

T = TypeVar("T")


class Group:
    """`store` is any of torch.distributed's; `rank` is ours, of `world`."""

    def __init__(self, store: Any, rank: int, world: int) -> None:
        self._store, self.rank, self.world = store, rank, world
        self._over = False
        self.forgotten = 0
        """The last save whose words have been taken away, all before it too."""

    def close(self) -> None:
        """From now on nobody waits: a thread that is in the store's code when Python ends makes
        the process abort."""
        self._over = True

    def leave(self, key: str, words: Any) -> None:
        self._store.set(key, encoded(words))

    def look(self, key: str, kind: type[T]) -> T | None:
        """What was left there; None: nothing yet. Never waits: to check for it and then to get it
        would, with the store's lock held, where another rank takes it away in between."""
        found = self._store.compare_set(key, _NOTHING, _NOTHING)  # never changes anything
        return None if found == _NOTHING else decoded(found, kind, None)

    def forget(self, key: str) -> None:
        self._store.delete_key(key)

    def wait(self, key: str, kind: type[T], timeout_s: float) -> T | None:
        """None: nothing was left there in time."""
        until = clock.monotonic() + timeout_s
        while True:
            found = self.look(key, kind)
            if found is not None:
                return found
            if clock.monotonic() > until or self._over:
                return None
            clock.sleep(_PAUSE_S)

    def gather(self, key: str, words: T, kind: type[T], timeout_s: float) -> list[T | None]:
        """What each rank has to say, on all of them; None for those that did not in time. By way
        of rank 0: everybody asking for everything would be much."""
        self.leave(f"{key}/{self.rank}", words)
        if self.rank:
            found = self.wait(f"{key}/all", list[kind | None], timeout_s)  # type: ignore[valid-type]
            return found if found is not None and len(found) == self.world else [None] * self.world
        until = clock.monotonic() + timeout_s
        said = [
            self._said(f"{key}/{rank}", kind, max(0.0, until - clock.monotonic()))
            for rank in range(self.world)
        ]
        self.leave(f"{key}/all", said)
        return said

    def _said(self, key: str, kind: type[T], timeout_s: float) -> T | None:
        """Of a rank that says what is not a message: nothing. The others still get an answer."""
        try:
            return self.wait(key, kind, timeout_s)
        except BadMessage:
            return None

    def from_first(self, key: str, words: T, kind: type[T], timeout_s: float) -> T | None:
        """What rank 0 says, on all of them."""
        if self.rank == 0:
            self.leave(key, words)
            return words
        return self.wait(key, kind, timeout_s)


def own_group() -> Group | None:
    """Of all ranks of the default process group; None where there is only this one. Every rank
    must make as many of them, in the same order."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    return _met(dist.distributed_c10d._get_default_store(), dist.get_rank(), dist.get_world_size())


def group_of(group: Any) -> Group:
    """Of ours as it is; of a process group of torch.distributed, over the store that it met at."""
    if isinstance(group, Group):
        return group
    import torch.distributed as dist

    store = dist.distributed_c10d._get_process_group_store(group)
    return _met(store, dist.get_rank(group), dist.get_world_size(group))


def _met(store: Any, rank: int, world: int) -> Group:
    import torch.distributed as dist

    prefix = f"tradewind/checkpoint/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    number = store.add(f"{prefix}/groups/{rank}", 1)  # there may be several, one after the other
    return Group(dist.PrefixStore(f"{prefix}/{number}", store), rank, world)
