"""The files of one checkpoint, wherever they are: read in pieces, each checked, and in the end
removed.

From the folder on this machine, if the file is there in its full size; else from the store. A piece
that is damaged here is taken from the store, where there is another copy.
"""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, NoAccess, NotFound
from tradewind.model import bounds
from tradewind.torch.checkpoint.manifest import INDEX, Manifest
from tradewind.torch.checkpoint.pieces import PIECE, checksum, open_direct
from tradewind.torch.checkpoint.place import Place


class Files:
    """`direct`: past the page cache. Not where several ranks of a machine read the same."""

    def __init__(self, place: Place, manifest: Manifest, *, direct: bool = True) -> None:
        self.place, self.manifest, self._past = place, manifest, direct
        self._handles: dict[str, tuple[int | None, int] | None] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        for opened in self._handles.values():
            for handle in opened or ():
                if handle is not None:
                    os.close(handle)
        self._handles.clear()

    def wrong_size(self) -> str:
        """What is missing or of another size than it was written with; "" for nothing."""
        with ThreadPoolExecutor(16) as pool:  # a bucket takes its time to answer
            sizes = list(pool.map(self._size, self.manifest.files))
        for (name, (size, _)), found in zip(self.manifest.files.items(), sizes, strict=True):
            if found is None:
                return f"{self._path(name)} is missing"
            if found != size:
                return f"{self._path(name)} has {found:,} of its {size:,} bytes"
        return ""

    def read(self, name: str, number: int, space: memoryview) -> int:
        """One piece, checked, into the beginning of `space`; how many bytes it is. Space that is
        as long as a piece and begins on a page is filled without passing the page cache."""
        size, sums = self.manifest.files[name]
        at = number * PIECE
        room = space[: min(PIECE, size - at)]
        opened = self._opened(name)
        where, got = "", 0
        if opened is not None:
            where = str(self.place.files / self.manifest.name / name) if self.place.files else name
            with suppress(OSError):
                got = self._fill(name, opened, space if len(space) == PIECE else room, at)
            if got >= len(room) and checksum(room) == sums[number]:
                return len(room)
        if self.place.remote:
            where = self._key(name)
            data = memoryview(self.place.store.get_range(where, at, len(room)))
            got = len(data)
            if got == len(room) and checksum(data) == sums[number]:
                room[:] = data
                return got
        what = "it ends too soon" if got < len(room) else "its check sum does not fit"
        raise BadFile(f"{where} is damaged at byte {at:,}: {what}")

    def _fill(self, name: str, handles: tuple[int | None, int], room: memoryview, at: int) -> int:
        direct, plain = handles
        if len(room) == PIECE and direct is not None:
            try:
                got = os.preadv(direct, [room], at)
                if got == PIECE or at + got == self.manifest.files[name][0]:
                    return got
            except OSError:  # the memory or the file system will not have it
                pass
        got = 0
        while got < len(room):
            more = os.preadv(plain, [room[got:]], at + got)
            if not more:
                break
            got += more
        return got

    def whole(self, name: str) -> bytes:
        size, sums = self.manifest.files[name]
        data = bytearray(size)
        for number in range(len(sums)):
            self.read(name, number, memoryview(data)[number * PIECE :])
        return bytes(data)

    def index(self) -> dict[str, Any]:
        import json

        try:
            found = json.loads(self.whole(INDEX))
            shapes = [entry[3] for each in found["files"] for entry in each["entries"]]
            if any(len(shape) > bounds.DIMENSIONS for shape in shapes):
                found = None
        except (*UNREADABLE, LookupError, TypeError, AttributeError):
            found = None
        if not isinstance(found, dict):
            raise BadFile(f"{self._key(INDEX)} is damaged: it is not an index of a checkpoint")
        return found

    def _size(self, name: str) -> int | None:
        if self.place.remote:
            with suppress(NotFound):
                return int(self.place.store.size(self._key(name)))
            return None
        try:
            return os.stat(self._path(name)).st_size  # noqa: PTH116
        except FileNotFoundError:
            return None
        except OSError as error:
            raise NoAccess(f"{self._path(name)} cannot be read: {error.strerror}") from None

    def _opened(self, name: str) -> tuple[int | None, int] | None:
        """Past the page cache, if that can be, and through it; None: it is not here."""
        with self._lock:
            if name not in self._handles:
                self._handles[name] = None
                if self.place.files is not None:
                    path = self.place.files / self.manifest.name / name
                    with suppress(OSError):
                        plain = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                        direct = open_direct(path, os.O_RDONLY) if self._past else None
                        self._handles[name] = direct, plain
            return self._handles[name]

    def _key(self, name: str) -> str:
        return f"{self.place.shards}{self.manifest.name}/{name}"

    def _path(self, name: str) -> str:
        if self.place.remote or self.place.files is None:
            return self._key(name)
        return str(self.place.files / self.manifest.name / name)


def remove(place: Place, name: str) -> None:
    """The folder of one checkpoint's files, here and in the store."""
    remove_here(place, name)
    if place.remote:
        for key in place.store.list_after(f"{place.shards}{name}/"):
            place.store.delete(key)


def remove_here(place: Place, name: str) -> None:
    if place.files is not None:
        shutil.rmtree(place.files / name, ignore_errors=True)


def names(place: Place) -> set[str]:
    """Of all folders of files, here and in the store, of this leg and those before it."""
    found = names_here(place)
    if place.remote:
        for leg in place.store.folders(place.shards):
            below = place.store.folders(f"{place.shards}{leg}/")
            found |= {f"{leg}/{each}" for each in below}
    return {name for name in found if name < f"{place.leg + 1:06d}"}


def names_here(place: Place) -> set[str]:
    found: set[str] = set()
    if place.files is not None:
        with suppress(OSError):
            for leg in os.scandir(place.files):
                with suppress(OSError):
                    found |= {f"{leg.name}/{each.name}" for each in os.scandir(leg.path)}
    return found
