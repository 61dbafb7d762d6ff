"""A store in this process: for tests and simulations."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from pathlib import Path

from tradewind.base.errors import NoAccess
from tradewind.base.ownfiles import replace as replace_file
from tradewind.store.base import MOST_READ, check_key, check_prefix, check_size, no_such


class MemoryStore:
    def __init__(self, name: str = "") -> None:
        self.url = f"memory://{name}"
        self._objects: dict[str, bytes] = {}
        self._keys: list[str] = []  # sorted
        self._lock = threading.Lock()

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        found = self._found(key)
        check_size(key, self.url, len(found), most)
        return found

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        return [self.get(key, most=most) for key in keys]

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        check_prefix(prefix)
        keys = self._keys
        with self._lock:
            first = bisect_right(keys, after) if after >= prefix else bisect_left(keys, prefix)
            last = first
            while last < len(keys) and keys[last].startswith(prefix):
                last += 1
            return keys[first:last]

    def folders(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        found: list[str] = []
        with self._lock:
            at = bisect_left(self._keys, prefix)
            while at < len(self._keys) and self._keys[at].startswith(prefix):
                name, below, _ = self._keys[at][len(prefix) :].partition("/")
                if not below:
                    at += 1
                    continue
                found.append(name)
                at = bisect_left(self._keys, f"{prefix}{name}0")  # 0 comes right after /
        return sorted(found)

    def create(self, key: str, data: bytes) -> bool:
        check_key(key)
        with self._lock:
            if key in self._objects:
                return False
            self._put(key, data)
            return True

    def replace(self, key: str, data: bytes) -> None:
        check_key(key)
        with self._lock:
            self._put(key, data)

    def delete(self, key: str) -> None:
        check_key(key)
        with self._lock:
            if self._objects.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]

    def upload(self, key: str, path: Path) -> None:
        check_key(key)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
        self.replace(key, data)

    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        found = self._found(key)
        check_size(key, self.url, len(found), most)
        replace_file(path, found)

    def upload_parts(
        self, key: str, parts: Iterable[bytes | bytearray | memoryview], size: int
    ) -> None:
        check_key(key)
        data = b"".join(parts)
        assert len(data) == size, f"{len(data)} bytes were given, not {size}"
        self.replace(key, data)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._found(key)[start : start + length]

    def size(self, key: str) -> int:
        return len(self._found(key))

    def _found(self, key: str) -> bytes:
        try:
            return self._objects[check_key(key)]
        except KeyError:
            raise no_such(key, self.url) from None

    def _put(self, key: str, data: bytes) -> None:
        if key not in self._objects:
            if not self._keys or key > self._keys[-1]:
                self._keys.append(key)  # as a journal grows
            else:
                insort(self._keys, key)
        self._objects[key] = bytes(data)
