"""What the disk can do: plain parallel writes and reads of the same size, in the same run.

Both ways, past the page cache and through it, and the better one counts. Reads are of what is not
in memory any more.
"""

from __future__ import annotations

import mmap
import os
import threading
from contextlib import suppress
from pathlib import Path

from tradewind.base import clock
from tradewind.torch.checkpoint.pieces import allocate

PIECE = 16 << 20
_BUFFER = 256 << 20


def ceiling(folder: Path, size: int, threads: int = 8) -> dict[str, float]:
    """Bytes a second."""
    size = max(PIECE, size // PIECE * PIECE)
    path = folder / "ceiling"
    found = {}
    try:
        found["write_direct"] = found["read_direct"] = 0.0
        with suppress(OSError):  # not every file system lets itself be written so
            found["write_direct"] = _write(path, size, threads, os.O_DIRECT)
            found["read_direct"] = _read(path, size, threads, os.O_DIRECT)
        some = max(PIECE, size // 4 // PIECE * PIECE)  # the slower way, as a rule
        path.unlink(missing_ok=True)
        found["write_cached"] = _write(path, some, threads, 0)
        found["read_cached"] = _read(path, some, threads, 0)
    finally:
        path.unlink(missing_ok=True)
        os.sync()  # what is free again is told to the disk now, and not while others write
    found["write"] = max(found["write_direct"], found["write_cached"])
    found["read"] = max(found["read_direct"], found["read_cached"])
    return found


def forget(folder: Path) -> None:
    """Takes its files out of the page cache, so that they are read from the disk."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def _write(path: Path, size: int, threads: int, flag: int) -> float:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | flag, 0o644)
    allocate(handle, size)
    memory = mmap.mmap(-1, min(size, _BUFFER))
    with Path("/dev/urandom").open("rb") as stream:
        block = stream.read(PIECE)
    for at in range(0, len(memory), PIECE):
        memory[at : at + PIECE] = block
    view = memoryview(memory)

    def write(at: int) -> None:
        begin = at % len(view)
        os.pwrite(handle, view[begin : begin + PIECE], at)

    began = clock.stopwatch()
    _parallel(size, threads, write)
    os.fsync(handle)
    taken = clock.stopwatch() - began
    os.close(handle)
    return size / taken


def _read(path: Path, size: int, threads: int, flag: int) -> float:
    forget(path)
    handle = os.open(path, os.O_RDONLY | flag)
    rooms = threading.local()

    def read(at: int) -> None:
        if not hasattr(rooms, "mine"):
            rooms.mine = memoryview(mmap.mmap(-1, PIECE))
        os.preadv(handle, [rooms.mine], at)

    began = clock.stopwatch()
    _parallel(size, 2 * threads, read)
    taken = clock.stopwatch() - began
    os.close(handle)
    return size / taken


def _parallel(size: int, threads: int, work: object) -> None:
    todo = iter(range(0, size, PIECE))
    lock = threading.Lock()
    errors: list[BaseException] = []

    def worker() -> None:
        while not errors:
            with lock:
                at = next(todo, None)
            if at is None:
                return
            try:
                work(at)  # type: ignore[operator]
            except BaseException as error:
                errors.append(error)

    begun = [threading.Thread(target=worker) for _ in range(threads)]
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()
    if errors:
        raise errors[0]
