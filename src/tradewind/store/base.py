"""What a Store promises, whatever it is made of.

A store maps keys to bytes. Every call is synchronous, and safe from several threads and processes:

- `create` never overwrites. Of all who create one key, at any time and from anywhere, exactly one
  is told True; False means that the key exists. An answer that was lost on the way is looked up:
  what is there and equals our bytes is ours, so creators whose bytes differ (a journal's carry a
  writer's id) cannot be mistaken. If it cannot be looked up, SourceFailed leaves the outcome open.
- `replace` and `upload` change an object whole: a reader sees the old or the new one.
- `get` and `list_after` see everything that was written before they were called.
- `list_after` gives the keys under a folder in the order of their code points.
- No read takes more than `most` bytes, into memory or onto the disk: the size is known before the
  content is read. What is larger is TooLarge; `model/bounds.py` has the bound of each kind.

Keys are parts joined by `/`, the same set on every store (`check_key`). A key is no other key's
folder: `a` and `a/b` do not go together, because a file system could not hold both.

InvalidValue   the key is not one        NoAccess      credentials, permissions, or a full disk
NotFound       no such key, or bucket    SourceFailed  network, time-out, throttled: try again later
TooLarge       larger than `most`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tradewind.base.errors import InvalidValue, NotFound, TooLarge
from tradewind.base.units import format_bytes

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

RESERVED = ".tradewind-new"  # the local store's half-written files lie there
MOST_BYTES = 800  # S3 and GCS stop at 1,024 for the whole key, a prefix in the bucket included
MOST_PART_BYTES = 200  # file systems stop at 255
MOST_READ = 64 << 20
"""Bytes that `get` reads into memory, where the caller has no smaller bound."""
# What nearly all keys are like, told at once: a journal has many.
_PLAIN = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")


class Store(Protocol):
    @property
    def url(self) -> str:
        """What `store.open` takes to open it again."""

    def get(self, key: str, *, most: int = MOST_READ) -> bytes: ...

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        """As `get` of each, in order, but as fast as this store can."""

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        """The keys below `prefix`, a folder ("" or ending in `/`), strictly after the key `after`,
        sorted."""

    def folders(self, prefix: str) -> list[str]:
        """The names right below `prefix` that have keys below them, sorted, without looking at
        those keys. One whose last key was deleted may still be named."""

    def create(self, key: str, data: bytes) -> bool: ...

    def replace(self, key: str, data: bytes) -> None: ...

    def delete(self, key: str) -> None:
        """It does not matter whether there was one."""

    def upload(self, key: str, path: Path) -> None:
        """Replaces the object by a file's content, which is never whole in memory."""

    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        """Replaces the file by the object, which is never whole in memory. Without `most` the disk
        is the limit."""


@runtime_checkable
class Dated(Protocol):
    """A store that has a clock of its own."""

    def written_s(self, key: str) -> float:
        """When an object was last written, by the store's clock: seconds since 1970."""


@runtime_checkable
class Pieced(Protocol):
    """A store that takes and gives large objects in pieces, without a file."""

    def upload_parts(self, key: str, parts: Iterable[Buffer], size: int) -> None:
        """Replaces the object by the parts, one after the other, `size` bytes in all. Only a few
        are held at a time. What `parts` raises is raised, and nothing is replaced."""

    def get_range(self, key: str, start: int, length: int) -> Buffer:
        """That many bytes from there on, or fewer at the object's end."""

    def size(self, key: str) -> int:
        """Of an object, in bytes."""


@runtime_checkable
class Weighed(Protocol):
    """A store that tells what lies in it, without looking at each object."""

    def weigh(self, prefix: str) -> list[tuple[int, float]]:
        """Of all that is below `prefix`: its size, and when it was written by the store's clock."""


def check_key(key: str) -> str:
    wrong = _wrong(key)
    if wrong:
        raise InvalidValue(f"{key!r} cannot be a key: {wrong}")
    return key


def check_prefix(prefix: str) -> str:
    if not prefix:
        return prefix
    wrong = _wrong(prefix[:-1]) if prefix.endswith("/") else "it does not end in /"
    if wrong:
        raise InvalidValue(f"{prefix!r} cannot be a prefix: {wrong}")
    return prefix


def no_such(key: str, url: str) -> NotFound:
    return NotFound(f"there is no {key} in {url}")


def check_size(key: str, url: str, size: int, most: int | None) -> None:
    if most is not None and size > most:
        raise TooLarge(
            f"{key} in {url} is too large: {format_bytes(size, digits=3)}, and at most"
            f" {format_bytes(most, digits=3)} are read",
            hint="Tradewind writes nothing of that size there: find out who did, and delete it",
        )


def _wrong(key: str) -> str:
    if len(key) <= MOST_PART_BYTES and _PLAIN.fullmatch(key):
        return ""
    if not key:
        return "it is empty"
    try:
        if len(key.encode()) > MOST_BYTES:
            return f"it is longer than {MOST_BYTES} bytes"
    except UnicodeEncodeError:
        return "it is not Unicode text"
    if not key.isprintable() or "\\" in key:
        return "it holds a character that not every store can"
    for part in key.split("/"):
        if not part:
            return "a part is empty"
        if part.endswith("."):  # also . and ..; Azure drops dots at the end
            return "a part ends in a dot"
        if part == RESERVED:
            return f"{RESERVED} is kept for the store itself"
        if len(part.encode()) > MOST_PART_BYTES:
            return f"a part is longer than {MOST_PART_BYTES} bytes"
    return ""
