"""A store in a folder: an object is a file, its key the path below the folder.

Everything is written into a file of its own in `.tradewind-new`, synced, and only then given its
name: by `link` to create, which fails where the name is taken, by `rename` to replace. Then the
folder is synced. Killed at any moment, a writer leaves the old object or the new one, and at most
an unnamed file. Whoever writes holds a lock on that file, so the next to open the store can tell a
dead writer's file from a living one's, without trusting clocks, and sweeps it.

Objects have the permissions of the folder. One that we make is its user's alone (0700). In one that
is shared by a group on purpose (setgid, or writable for the group) the group may do with objects
what it may with the folder, whatever the umask.

A folder of a network file system will do if `link`, `rename` and `flock` are atomic there, as on
NFS 4; `tradewind init` tries the first two.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.store.base import (
    MOST_READ,
    RESERVED,
    check_key,
    check_prefix,
    check_size,
    no_such,
)

_CHUNK = 1 << 20
_LOOKED_AT = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
_numbers = count()


class LocalStore:
    def __init__(self, folder: Path) -> None:
        self._root = folder.absolute()
        try:
            nearest = next(each for each in (self._root, *self._root.parents) if each.exists())
            is_folder = nearest.is_dir()
        except OSError as error:
            raise NoAccess(f"{folder} cannot be opened: {error.strerror or error}") from None
        if not is_folder:
            named = folder if nearest == self._root else nearest
            raise InvalidValue(f"{named} is a file, and a store is a folder")
        self._new = self._root / RESERVED
        self.url = self._root.as_uri()
        self._sweep()

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        return self._read(check_key(key), most)

    def get_many(self, keys: Sequence[str], *, most: int = MOST_READ) -> list[bytes]:
        return [self._read(check_key(key), most) for key in keys]

    def list_after(self, prefix: str, after: str = "") -> list[str]:
        check_prefix(prefix)
        found: list[str] = []
        with self._troubles(prefix or self.url, "listed"):
            self._walk(prefix, after, found)
        return found

    def folders(self, prefix: str) -> list[str]:
        check_prefix(prefix)
        with self._troubles(prefix or self.url, "listed"):
            try:
                with os.scandir(self._at(prefix)) as entries:
                    names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
            except (FileNotFoundError, NotADirectoryError):
                return []
        return sorted(name for name in names if name != RESERVED)

    def create(self, key: str, data: bytes) -> bool:
        check_key(key)
        target = self._at(key)

        def name(new: Path) -> bool:
            try:
                os.link(new, target)
                return True
            except FileExistsError:
                if target.is_dir():
                    raise
                return False

        with self._troubles(key, "created"):
            created = self._write(target, lambda stream: stream.write(data), name)
            # Also where another was first: what we tell to be there must outlive a power cut.
            _sync(target.parent)
            return created

    def replace(self, key: str, data: bytes) -> None:
        self._put(key, lambda stream: stream.write(data))

    def delete(self, key: str) -> None:
        target = self._at(check_key(key))
        with self._troubles(key, "deleted"), suppress(FileNotFoundError, NotADirectoryError):
            target.unlink()
            _sync(target.parent)

    def upload(self, key: str, path: Path) -> None:
        with _source(path) as source:
            self._put(key, lambda stream: shutil.copyfileobj(source, stream, _CHUNK))

    def download(self, key: str, path: Path, *, most: int | None = None) -> None:
        with self._opened(check_key(key)) as (handle, size):
            check_size(key, self.url, size, most)
            with written_whole(path) as stream:
                done = 0
                while data := os.read(handle, _CHUNK):
                    done += len(data)
                    check_size(key, self.url, done, most)
                    stream.write(data)

    def upload_parts(
        self, key: str, parts: Iterable[bytes | bytearray | memoryview], size: int
    ) -> None:
        def fill(stream: BinaryIO) -> None:
            given = sum(stream.write(part) for part in parts)
            assert given == size, f"{given} bytes were given, not {size}"

        self._put(key, fill)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        with (
            self._opened(check_key(key)) as (handle, _),
            os.fdopen(handle, "rb", closefd=False) as stream,
        ):
            stream.seek(start)
            return stream.read(length)

    def size(self, key: str) -> int:
        return self._stat(key).st_size

    def written_s(self, key: str) -> float:
        """By the clock of whoever keeps the files, which on a network is another's."""
        return self._stat(key).st_mtime

    def _stat(self, key: str) -> os.stat_result:
        try:
            return (self._at(check_key(key))).stat()
        except (FileNotFoundError, NotADirectoryError):
            raise no_such(key, self.url) from None
        except OSError as error:
            raise NoAccess(f"{key} in {self.url} cannot be read: {error.strerror}") from None

    def _put(self, key: str, fill: Callable[[BinaryIO], object]) -> None:
        target = self._at(check_key(key))

        def name(new: Path) -> bool:
            new.replace(target)
            return True

        with self._troubles(key, "written"):
            self._write(target, fill, name)
            _sync(target.parent)

    def _write(
        self, target: Path, fill: Callable[[BinaryIO], object], name: Callable[[Path], bool]
    ) -> bool:
        with self._unnamed() as (new, stream):
            fill(stream)
            stream.flush()
            os.fsync(stream.fileno())
            # Only now: what cannot be written, for want of space, leaves no empty folders.
            self._make(target.parent)
            return name(new)

    @contextmanager
    def _unnamed(self) -> Iterator[tuple[Path, BinaryIO]]:
        """A new file that is ours: locked, and not swept before it was."""
        self._at(f"{RESERVED}/")
        self._make(self._new)
        mode = self._mode()
        while True:
            # Two hosts may share the folder, hence the name of ours; the numbers never come again.
            place = f"{os.uname().nodename}-{os.getpid()}-{threading.get_ident()}-{next(_numbers)}"
            new = self._new / place
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                stream = os.fdopen(os.open(new, flags, mode & 0o666), "wb")
            except FileExistsError:  # of a dead writer with our number
                continue
            if _is_shared(mode):
                os.fchmod(stream.fileno(), mode & 0o666)
            fcntl.flock(stream, fcntl.LOCK_EX)
            if os.fstat(stream.fileno()).st_nlink:
                break
            stream.close()  # a sweeper was between our opening it and our locking it
        try:
            with stream:
                yield new, stream
        finally:
            with suppress(OSError):
                new.unlink()

    def _mode(self) -> int:
        return self._root.stat().st_mode

    def _make(self, folder: Path) -> None:
        """The folder and those above it, each entry synced, so that a power cut takes none away."""
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for each in reversed(missing):
            below = each != self._root and each.is_relative_to(self._root)
            mode = self._mode() if below else 0o700
            each.mkdir(mode & 0o777, exist_ok=True)
            if _is_shared(mode):
                each.chmod(mode & 0o2777)
            _sync(each.parent)

    def _at(self, key: str) -> Path:
        """Where a key or prefix lies. Whoever may write the folder may put links into it: followed,
        they would have us read, replace or delete what is elsewhere."""
        path = self._root
        parts = key.split("/")
        for part in parts[:-1]:
            path = path / part
            if path.is_symlink():
                raise NoAccess(
                    f"{path} is a link: links in a store are not followed",
                    hint="remove it; the folder of the store itself may be a link",
                )
        return path / parts[-1] if parts[-1] else path

    def _sweep(self) -> None:
        """Nobody needs this to work, so nothing is said where it does not."""
        if self._new.is_symlink():
            return
        with suppress(OSError):
            for entry in list(os.scandir(self._new)):
                # Neither a link nor a pipe is a writer's, and opening that would wait.
                with suppress(OSError), os.fdopen(os.open(entry.path, _LOOKED_AT), "rb") as stream:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    Path(entry.path).unlink()

    def _read(self, key: str, most: int) -> bytes:
        with self._opened(key) as (handle, size):
            check_size(key, self.url, size, most)
            data = os.read(handle, size + 1)
            while len(data) < size:  # one read gives at most 2 GiB
                more = os.read(handle, size - len(data))
                if not more:
                    break
                data += more
            check_size(key, self.url, len(data), most)
            return data

    @contextmanager
    def _opened(self, key: str) -> Iterator[tuple[int, int]]:
        """An object to read, and its size."""
        # Plain system calls: a journal is many small files, and open() takes three times as long.
        try:
            # Whoever opens a pipe to read waits for its writer; it has no objects in it.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            handle = os.open(self._at(key), flags)
            try:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode):
                    raise no_such(key, self.url)
                yield handle, found.st_size
            finally:
                os.close(handle)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise no_such(key, self.url) from None
        except OSError as error:
            raise NoAccess(f"{key} in {self.url} cannot be read: {error.strerror}") from None

    def _walk(self, prefix: str, after: str, found: list[str]) -> None:
        try:
            # A folder stands where its keys do: `a-b` comes before `a/b`, and that before `a0`.
            with os.scandir(self._at(prefix)) as entries:
                names = sorted(
                    each.name + "/" if each.is_dir(follow_symlinks=False) else each.name
                    for each in entries
                    if not each.is_symlink()
                )
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            key = prefix + name
            if not name.endswith("/"):
                if key > after:
                    found.append(key)
            elif name != RESERVED + "/" and (key > after or after.startswith(key)):
                self._walk(key, after, found)

    @contextmanager
    def _troubles(self, key: str, done: str) -> Iterator[None]:
        try:
            yield
        except (FileExistsError, IsADirectoryError, NotADirectoryError):
            raise InvalidValue(
                f"{key} cannot be {done} in {self.url}: a key is another key's folder"
            ) from None
        except OSError as error:
            raise NoAccess(
                f"{key} cannot be {done} in {self.url}: {error.strerror or error}",
                hint="check the permissions and the space, or choose another store",
            ) from None


@contextmanager
def _source(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    with stream:
        yield stream


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file once all of it is there and synced."""
    beside = path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}.new")

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except OSError as error:
        raise NoAccess(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            beside.unlink()


def _is_shared(mode: int) -> bool:
    """By a group, on purpose. What everybody may write (/tmp) is nobody's in particular."""
    return bool(mode & (stat.S_ISGID | stat.S_IWGRP)) and not mode & stat.S_IWOTH


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
