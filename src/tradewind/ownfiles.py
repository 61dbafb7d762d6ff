"""The folder of this user's own files, and how a file is replaced whole.

`$TRADEWIND_HOME`, by default `~/.tradewind`. Who writes what there says so in its own module.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO

from tradewind.errors import NoAccess

_numbers = count()
"""Two threads may replace the same file at once."""


def home(env: Mapping[str, str] | None = None) -> Path:
    """The folder of this user's own files; it need not exist."""
    chosen = (os.environ if env is None else env).get("TRADEWIND_HOME") or "~/.tradewind"
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise NoAccess(f"there is no folder {chosen}: {error}", hint="set TRADEWIND_HOME") from None


def replace(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Atomically: a reader sees the old file or the new one, whole, also after a crash. What a
    killed writer has left beside it is swept by the next. `mode` is for a new file, less what the
    umask takes: from its first byte on, nobody else can read a file of 0o600."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        with _unnamed(path, mode) as (beside, stream):
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            beside.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise NoAccess(
            f"{path} cannot be written: {error.strerror or error}",
            hint="the old file is untouched; check the permissions, the space, or $TRADEWIND_HOME",
        ) from None


@contextmanager
def _unnamed(path: Path, mode: int) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside it that is ours: locked, so that no sweeper takes it for a dead one's."""
    while True:
        beside = path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with open(os.open(beside, flags, mode), "wb") as stream:  # noqa: PTH123 -- a descriptor
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not os.fstat(stream.fileno()).st_nlink:
                continue  # a sweeper was between our opening it and our locking it
            try:
                yield beside, stream
            finally:
                with suppress(OSError):
                    beside.unlink()
            return


def _sweep(path: Path) -> None:
    """Nobody needs this to work, so nothing is said where it does not."""
    begin = f".{path.name}."
    with suppress(OSError):
        for name in os.listdir(path.parent):  # noqa: PTH208 -- names are all that is needed
            if name.startswith(begin) and name.endswith(".new"):
                beside = path.with_name(name)
                with suppress(OSError), beside.open("rb") as stream:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    beside.unlink()
