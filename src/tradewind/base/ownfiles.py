"""The folder of this user's own files, and how a file is replaced whole.

`$TRADEWIND_HOME`, by default `~/.tradewind`. Who writes what there says so in its own module. Other
users of the computer can read none of it, whatever the umask: folders are 0700, files 0600.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import BinaryIO, cast

from tradewind.base.errors import NoAccess

_numbers = count()
"""Two threads may replace the same file at once."""


def home(env: Mapping[str, str] | None = None) -> Path:
    """The folder of this user's own files; it need not exist."""
    chosen = (os.environ if env is None else env).get("TRADEWIND_HOME") or "~/.tradewind"
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise NoAccess(f"there is no folder {chosen}: {error}", hint="set TRADEWIND_HOME") from None


def make_folder(path: Path, mode: int = 0o700) -> None:
    """And those above it that are missing; OSError where it cannot be. Home itself is private,
    whoever is the first to need it."""
    path, missing = path.absolute(), []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(0o700 if each == home().absolute() else mode, exist_ok=True)


def append(path: Path, mode: str = "ab") -> BinaryIO:
    """Opens a private file to append, and makes the folder for it; OSError where that fails."""
    make_folder(path.parent)
    flags = os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    flags |= os.O_RDWR if "+" in mode else os.O_WRONLY
    return cast(BinaryIO, os.fdopen(os.open(path, flags, 0o600), mode))


def replace(path: Path, data: bytes, *, public: bool = False) -> None:
    """Atomically: a reader sees the old file or the new one, whole, also after a crash. What a
    killed writer has left beside it is swept by the next. `public`: for others to read too, as the
    umask allows."""
    try:
        make_folder(path.parent, 0o777 if public else 0o700)
        _sweep(path)
        with _unnamed(path, 0o666 if public else 0o600) as (beside, stream):
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
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            handle = os.open(beside, flags, mode)
        except FileExistsError:  # of a dead writer with our number
            continue
        with os.fdopen(handle, "wb") as stream:
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
