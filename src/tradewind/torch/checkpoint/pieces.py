"""Files in pieces: written and read by several threads at once, each piece with its check sum.

Pieces are written past the page cache where the file system lets them: no second copy in memory,
and no pause while the kernel writes back. The memory and the offsets are aligned for that; what is
left at the end is not, and goes the usual way.
"""

from __future__ import annotations

import ctypes
import errno
import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import NoAccess, SourceFailed

PIECE = 16 << 20
_BLOCK = 4096
_LOOK_S = 0.2
checksum = zlib.crc32  # lets other threads run; a gigabyte takes a third of a second or less


def threads() -> int:
    """More than processors, where those are few: while one waits for the disk, one checks. The
    ranks of a machine share it."""
    ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(
        4,
        min(16, (os.cpu_count() or 4) // (int(ranks) if ranks.isdecimal() and ranks != "0" else 1)),
    )


class PieceFile:
    """A new file whose pieces may be written in any order and from any thread."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self._plain: int | None = None
        self._direct: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._plain = os.open(path, flags, 0o644)
            self._direct = open_direct(path, os.O_WRONLY)
            allocate(self._plain, size)
        except OSError as error:
            self.close()
            raise self._cannot(error) from None

    def write(self, at: int, data: memoryview) -> None:
        assert self._plain is not None
        try:
            if self._direct is not None and len(data) % _BLOCK == 0 and at % _BLOCK == 0:
                try:
                    _write(self._direct, data, at)
                    return
                except OSError as error:
                    if error.errno != errno.EINVAL:
                        raise
                    self._direct = None  # it could be opened so, but not be written
            _write(self._plain, data, at)
        except OSError as error:
            raise self._cannot(error) from None

    def finish(self, size: int) -> None:
        """What was written outlives a power cut."""
        assert self._plain is not None
        try:
            os.ftruncate(self._plain, size)
            os.fsync(self._plain)
            sync_folders(self.path)
        except OSError as error:
            raise self._cannot(error) from None

    def close(self) -> None:
        plain, direct, self._plain, self._direct = self._plain, self._direct, None, None
        for each in (plain, direct):
            if each is not None:
                os.close(each)

    def _cannot(self, error: OSError) -> NoAccess:
        return NoAccess(
            f"{self.path} cannot be written: {error.strerror or error}",
            hint="check the space and the permissions there",
        )


def allocate(handle: int, size: int) -> None:
    """The space at once: writes at several places of a growing file would wait for each other, and
    a full disk is known before the first. Not by posix_fallocate, which writes zeros where the file
    system cannot do it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(handle, 0, ctypes.c_long(0), ctypes.c_long(max(size, 1))):
        code = ctypes.get_errno()
        if code in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(code, os.strerror(code))
        os.ftruncate(handle, size)


def sync_folders(path: Path) -> None:
    """The file's name, and those of the two folders that may be new."""
    for folder in list(path.parents)[:3]:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def open_direct(path: Path, how: int) -> int | None:
    try:
        return os.open(path, how | os.O_DIRECT | os.O_CLOEXEC)
    except (OSError, AttributeError):
        return None


def _write(handle: int, data: memoryview, at: int) -> None:
    while data:
        done = os.pwrite(handle, data, at)
        data, at = data[done:], at + done


class Team:
    """Threads that work on tasks. Those in a system call that never returns cannot be stopped: who
    waits for them gives up in time, and they end with the process."""

    def __init__(self, work: Callable[[Any], object], number: int | None = None) -> None:
        self._work = work
        self._number = number or threads()
        self._tasks: SimpleQueue[tuple[Any] | None] = SimpleQueue()
        self._ended = threading.Semaphore(0)
        self.threads: list[threading.Thread] = []
        self.error: BaseException | None = None

    def put(self, task: Any) -> None:
        if len(self.threads) < self._number:
            thread = threading.Thread(target=self._run, name="tradewind-pieces", daemon=True)
            self.threads.append(thread)
            thread.start()
        self._tasks.put((task,))

    def stop(self, error: BaseException) -> None:
        """What is not begun is not done."""
        self.error = self.error or error

    def wait(self, timeout_s: float, what: str, look: Callable[[], object] = lambda: None) -> None:
        """Until all is done; raises what went wrong in a thread, and what `look` raises, which is
        called again and again meanwhile."""
        until = clock.monotonic() + timeout_s
        for _ in self.threads:
            self._tasks.put(None)
        for _ in self.threads:
            while not self._ended.acquire(timeout=_LOOK_S):
                look()
                if clock.monotonic() > until:
                    self.stop(SourceFailed("given up"))
                    raise SourceFailed(f"{what} took longer than {timeout_s:.0f} s")
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            if self.error is not None:
                continue
            try:
                self._work(task[0])
            except BaseException as error:
                self.stop(error)
        self._ended.release()
