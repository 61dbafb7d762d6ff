"""Files of a store on this host: so many bytes and no more, shared by all ranks and workers.

A file gets its name when all of it is there. Who brings it holds its lock; who will need it holds
its pin, a shared lock on `name.use`. To make room the files that were not used for longest go, but
none with a pin. The kernel drops locks and pins of the dead, so kill -9 leaves at most a part of a
file, which is gone on with or goes like the rest. Whoever has a file open may read on when it goes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tradewind.base.errors import BadFile, NoAccess
from tradewind.base.ownfiles import make_folder
from tradewind.torch.data import download, locks, parts, words
from tradewind.torch.data.sources import shown, source

_AT_ONCE = 4


class Item(Struct, frozen=True):
    url: str
    name: str
    """Of its file: differs for each version of the content."""
    size: int
    sha256: str = ""


class Cache:
    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.folder, self.most_bytes = folder, most_bytes
        self._pins: dict[str, int] = {}
        self._warned = False

    def path(self, item: Item) -> Path:
        return self.folder / item.name

    def has(self, item: Item) -> bool:
        """Whether it is there; then it counts as used now."""
        try:
            path = self.path(item)
            if path.stat().st_size != item.size:
                return False
            os.utime(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise NoAccess(f"{item.name} in the cache cannot be used: {error.strerror}") from None
        return True

    def bring(self, item: Item, *, needed: bool = True) -> bool:
        """Sees to it that it is there. Not `needed` yet: only where there is room for it."""
        if self.has(item):
            return True
        lock = self.folder / f".{item.name}.lock"
        with locks.held(lock, shown(item.url), words.say):
            if self.has(item):
                return True
            if not self._room(item, needed):
                return False
            target = self.path(item)
            hint = "it was replaced after the index was made: tw.index_shards makes it again"
            try:
                download.fetched(
                    source(item.url, checked=bool(item.sha256)),
                    target,
                    item.sha256,
                    say=lambda _: None,
                    at_once=_AT_ONCE,
                    most_bytes=item.size,
                )
            except parts.TooLarge as error:
                raise BadFile(f"{error.message}, as its index says", hint=hint) from None
            if not self.has(item):
                size = target.stat().st_size
                self.drop(item)
                raise BadFile(
                    f"{shown(item.url)} has {size:,} bytes, and its index says {item.size:,}",
                    hint=hint,
                )
            return True

    def drop(self, item: Item) -> None:
        """One that turned out to be damaged."""
        with suppress(FileNotFoundError):
            self.path(item).unlink()

    # -- pins --------------------------------------------------------------------------------------

    def pin(self, items: Iterable[Item]) -> None:
        """This process will need these, and none else any more."""
        wanted = {item.name for item in items}
        for name in set(self._pins) - wanted:
            handle = self._pins.pop(name)
            fcntl.flock(handle, fcntl.LOCK_UN)  # workers have copies of the handle
            os.close(handle)
        for name in wanted - set(self._pins):
            with suppress(OSError):  # then it may be brought twice, and no more
                self._pins[name] = self._pinned(name)

    def _pinned(self, name: str) -> int:
        make_folder(self.folder, 0o777)
        while True:
            handle = os.open(
                self.folder / f".{name}.use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
            )
            fcntl.flock(handle, fcntl.LOCK_SH)
            if os.fstat(handle).st_nlink:
                return handle
            os.close(handle)  # it went between our opening and our locking it

    # -- room --------------------------------------------------------------------------------------

    def _room(self, item: Item, needed: bool) -> bool:
        with locks.held(self.folder / ".room.lock", "room in the cache", words.say):
            part = self.folder / f".{item.name}.part"
            there = self._there()
            used = sum(size for _, size, path in there if path != part)
            for _, size, path in there:
                if used + item.size <= self.most_bytes:
                    break
                if path != part and self._evicted(path):
                    used -= size
            over = used + item.size - self.most_bytes
            if over > 0 and not needed:
                return False
            if over > 0 and not self._warned:
                self._warned = True
                words.say(
                    f"warning: the cache {self.folder} has to be"
                    f" {words.sized(used + item.size)} for a while, for what is in use:"
                    f" {words.sized(self.most_bytes)} are too few"
                )
            try:
                with part.open("ab"):  # so that others see what will be taken
                    os.truncate(part, item.size)
            except OSError as error:
                raise NoAccess(f"{part} cannot be written: {error.strerror or error}") from None
            return True

    def _there(self) -> list[tuple[float, int, Path]]:
        """When last used, size and path of each, also of those that are on their way."""
        found = []
        for path in self.folder.iterdir():
            if path.name.startswith(".") and path.suffix != ".part":
                continue
            with suppress(OSError):
                about = path.stat()
                found.append((about.st_mtime, about.st_size, path))
        return sorted(found)

    def _evicted(self, path: Path) -> bool:
        """Gone, unless somebody will need it or brings it just now."""
        part = path.suffix == ".part"
        name = path.name[1:].removesuffix(".part") if part else path.name
        if part and not locks.is_free(self.folder / f".{name}.lock"):
            return False
        use = self.folder / f".{name}.use"
        try:
            handle = os.open(use, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            use.unlink()
            path.with_name(path.name + ".json").unlink(missing_ok=True)
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
