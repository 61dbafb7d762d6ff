"""The files of one checkpoint, wherever they are: read in pieces, each checked, and in the end
removed.

From the folder on this machine, if the file is there in its full size; else from the store. A piece
that is damaged here is taken from the store, where there is another copy.
"""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from typing import Any

from tradewind.errors import BadFile, NoAccess, NotFound, TradewindError
from tradewind.torch.checkpoint.manifest import INDEX, Manifest
from tradewind.torch.checkpoint.pieces import PIECE, checksum
from tradewind.torch.checkpoint.place import Place


class Files:
    def __init__(self, place: Place, manifest: Manifest) -> None:
        self.place, self.manifest = place, manifest
        self._handles: dict[str, int | None] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles.values():
            if handle is not None:
                os.close(handle)
        self._handles.clear()

    def wrong_size(self) -> str:
        """What is missing or of another size than it was written with; "" for nothing."""
        for name, (size, _) in self.manifest.files.items():
            found = self._size(name)
            if found is None:
                return f"{self._path(name)} is missing"
            if found != size:
                return f"{self._path(name)} has {found:,} of its {size:,} bytes"
        return ""

    def read(self, name: str, number: int, room: memoryview) -> int:
        """One piece, checked; how many bytes it is."""
        size, sums = self.manifest.files[name]
        at = number * PIECE
        room = room[: min(PIECE, size - at)]
        handle = self._handle(name)
        where, got = "", 0
        if handle is not None:
            where = str(self.place.files / self.manifest.name / name) if self.place.files else name
            with suppress(OSError):
                while got < len(room):
                    more = os.preadv(handle, [room[got:]], at + got)
                    if not more:
                        break
                    got += more
            if got == len(room) and checksum(room) == sums[number]:
                return got
        if self.place.remote:
            where = self._key(name)
            data = memoryview(self.place.store.get_range(where, at, len(room)))
            got = len(data)
            if got == len(room) and checksum(data) == sums[number]:
                room[:] = data
                return got
        what = "it ends too soon" if got < len(room) else "its check sum does not fit"
        raise BadFile(f"{where} is damaged at byte {at:,}: {what}")

    def whole(self, name: str) -> bytes:
        size, sums = self.manifest.files[name]
        data = bytearray(size)
        for number in range(len(sums)):
            self.read(name, number, memoryview(data)[number * PIECE :])
        return bytes(data)

    def index(self) -> dict[str, Any]:
        import json

        found: dict[str, Any] = json.loads(self.whole(INDEX))
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

    def _handle(self, name: str) -> int | None:
        with self._lock:
            if name not in self._handles:
                self._handles[name] = None
                if self.place.files is not None:
                    path = self.place.files / self.manifest.name / name
                    with suppress(OSError):
                        self._handles[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            return self._handles[name]

    def _key(self, name: str) -> str:
        return f"{self.place.shards}{self.manifest.name}/{name}"

    def _path(self, name: str) -> str:
        if self.place.remote or self.place.files is None:
            return self._key(name)
        return str(self.place.files / self.manifest.name / name)


def remove(place: Place, name: str) -> None:
    """The folder of one checkpoint's files, here and in the store."""
    if place.files is not None:
        shutil.rmtree(place.files / name, ignore_errors=True)
    if place.remote:
        for key in place.store.list_after(f"{place.shards}{name}/"):
            place.store.delete(key)


def names(place: Place) -> set[str]:
    """Of all folders of files, here and in the store, of this leg and those before it."""
    found = set()
    if place.files is not None:
        with suppress(OSError):
            for leg in os.scandir(place.files):
                with suppress(OSError):
                    found |= {f"{leg.name}/{each.name}" for each in os.scandir(leg.path)}
    if place.remote:
        with suppress(TradewindError):
            for name in place.store.folders(place.shards):
                below = place.store.folders(f"{place.shards}{name}/")
                found |= {f"{name}/{each}" for each in below}
    return {name for name in found if name < f"{place.leg + 1:06d}"}
