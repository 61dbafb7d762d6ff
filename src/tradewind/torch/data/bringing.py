"""How shards come into the cache, from whichever process needs them.

The training process brings those that come next, by threads of its own, while samples of the
present ones are read. A loader worker that needs one which is not there waits for whoever is at it,
or brings it itself: from a bucket by a fresh process, `python -m tradewind.torch.data.bringing`,
since the library that speaks to buckets has threads, which no fork copies.
"""

from __future__ import annotations

import multiprocessing
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from tradewind.base import errors
from tradewind.torch.data.cache import Cache, Item

_THREADS = 2


class Ask(Struct, frozen=True):
    folder: str
    most_bytes: int
    item: Item


def bring(cache: Cache, item: Item) -> None:
    """Sees to it that it is there."""
    forked = multiprocessing.parent_process() is not None
    if not forked or not item.url.startswith(("s3://", "gs://", "az://")) or cache.has(item):
        cache.bring(item)
        return
    asked = msgspec.json.encode(Ask(str(cache.folder), cache.most_bytes, item))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tradewind.torch.data.bringing"],
        input=asked,
        stdout=subprocess.PIPE,  # what it has to say in between goes where ours goes
        check=False,
    )
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip().splitlines()
        kind, _, message = (said[-1] if said else "").partition("\t")
        known = getattr(errors, kind, None) or errors.SourceFailed
        raise known(message or f"{item.url} could not be brought: exit code {done.returncode}")


def main() -> int:
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Ask)
    try:
        Cache(Path(asked.folder), asked.most_bytes).bring(asked.item)
    except errors.TradewindError as error:
        kinds = [
            kind.__name__ for kind in type(error).__mro__ if kind.__module__ == errors.__name__
        ]
        sys.stdout.write(f"{kinds[0]}\t{error.message}\n")
        return 1
    return 0


class Ahead:
    """In the training process: the shards that come next are on their way, and those that are read
    now stay."""

    def __init__(self, cache: Cache, items: Sequence[Item]) -> None:
        self._cache, self._items = cache, items
        self._near: list[int] = []
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._asked: set[int] = set()
        self._threads: list[threading.Thread] = []

    def near(self, shards: list[int]) -> None:
        """These are read now or soon; workers may still be at those before them."""
        if shards == self._near:
            return
        before, self._near = self._near, shards
        keep = {*before, *shards}
        self._cache.pin(self._items[each] for each in keep)
        self._asked &= keep
        for each in shards:
            if each not in self._asked:
                self._asked.add(each)
                self._queue.put(self._items[each])
        while len(self._threads) < _THREADS:
            # Not to be waited for at the end, as those of a pool would be.
            thread = threading.Thread(target=self._work, name="shards", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _work(self) -> None:
        while True:
            item = self._queue.get()
            # Troubles that stay will be raised where the shard is read.
            with suppress(errors.TradewindError):
                self._cache.bring(item, needed=False)


if __name__ == "__main__":
    sys.exit(main())
