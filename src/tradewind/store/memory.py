"""A store in this process: for tests and simulations."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from tradewind.errors import NoAccess
from tradewind.ownfiles import replace as replace_file
from tradewind.store.base import check_key, check_prefix, no_such


class MemoryStore:
    def __init__(self, name: str = "") -> None:
        self.url = f"memory://{name}"
        self._objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes:
        try:
            return self._objects[check_key(key)]
        except KeyError:
            raise no_such(key, self.url) from None

    def get_many(self, keys: Sequence[str]) -> list[bytes]:
        return [self.get(key) for key in keys]

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        check_prefix(prefix)
        with self._lock:
            return sorted(k for k in self._objects if k.startswith(prefix) and k > after)

    def create(self, key: str, data: bytes) -> bool:
        check_key(key)
        with self._lock:
            if key in self._objects:
                return False
            self._objects[key] = bytes(data)
            return True

    def replace(self, key: str, data: bytes) -> None:
        with self._lock:
            self._objects[check_key(key)] = bytes(data)

    def delete(self, key: str) -> None:
        with self._lock:
            self._objects.pop(check_key(key), None)

    def upload(self, key: str, path: Path) -> None:
        check_key(key)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
        self.replace(key, data)

    def download(self, key: str, path: Path) -> None:
        replace_file(path, self.get(key))
