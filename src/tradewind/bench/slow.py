"""A store as far away as one wishes: around any other, each request takes its time and is counted.

Counted and slowed as object stores do it: a listing is one request for each 1,000 keys that it
gives, one after another; getting many objects is one request each, but at once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tradewind.base import clock
from tradewind.store.base import MOST_READ, Store

PAGE = 1000
_CHANGES = frozenset({"create", "replace", "delete", "upload"})


class Slow:
    def __init__(self, store: Store, latency_s: float) -> None:
        self.url = store.url
        self.latency_s = latency_s
        self._store = store
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()

    def requests(self, folder: str = "") -> int:
        """How many so far; with a name, those below the store's folder of that name."""
        with self._lock:
            return sum(n for (_, top), n in self._requests.items() if folder in ("", top))

    def changes(self) -> int:
        """Those among the requests that wrote something."""
        with self._lock:
            return sum(n for (what, _), n in self._requests.items() if what in _CHANGES)

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        self._take("get", key)
        return self._store.get(key, most=most)

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        if keys:
            self._take("get", keys[0], len(keys))
        return self._store.get_many(keys, most=most)

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        found = self._store.list_after(prefix, after)
        pages = pages_of(len(found))
        self._take("list", prefix, pages, in_turn=pages)
        return found

    def folders(self, prefix: str) -> list[str]:
        found = self._store.folders(prefix)
        pages = pages_of(len(found))
        self._take("list", prefix, pages, in_turn=pages)
        return found

    def create(self, key: str, data: bytes) -> bool:
        self._take("create", key)
        return self._store.create(key, data)

    def replace(self, key: str, data: bytes) -> None:
        self._take("replace", key)
        self._store.replace(key, data)

    def delete(self, key: str) -> None:
        self._take("delete", key)
        self._store.delete(key)

    def upload(self, key: str, path: Path) -> None:
        self._take("upload", key)
        self._store.upload(key, path)

    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        self._take("get", key)
        self._store.download(key, path, most=most)

    def _take(self, what: str, key: str, requests: int = 1, *, in_turn: int = 1) -> None:
        with self._lock:
            self._requests[what, key.partition("/")[0]] += requests
        clock.sleep(self.latency_s * in_turn)


def pages_of(items: int) -> int:
    return max(1, -(-items // PAGE))
