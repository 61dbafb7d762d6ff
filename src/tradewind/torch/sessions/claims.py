"""One training for each folder: two would take each other's checkpoints for their own, and clear
away what the other is just saving.

A lock of the file system says so to other processes. It ends with the process, however that ends,
and processes that are forked from it, as for loading data, do not have it.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from tradewind.base.errors import InvalidValue

_NAME = ".lock"
_here: set[Path] = set()
_trained: set[Path | None] = set()
"""Where this process has trained before; None: in its run's store."""


def trained(folder: Path | None) -> bool:
    """Whether a session of this process has made steps there, and is finished."""
    return (folder and folder.absolute()) in _trained


def ended(folder: Path | None) -> None:
    """Such a one is."""
    _trained.add(folder and folder.absolute())


def continued(folder: Path) -> str:
    """Of a second one, in words."""
    return (
        f"this process has trained in {folder} before: the session continues that training, with"
        " its weights; give each training its own folder=, such as each fold or each trial"
    )


class Claim:
    """On a folder. Where there can be no lock, as in a folder that cannot be written, there is
    none."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._handle = folder.absolute(), -1
        if self._folder in _here:
            raise InvalidValue(
                f"this process has a session in {folder} already",
                hint="give each its own folder=, or call finish() of the other one first",
            )
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self._folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._handle, 0)
            os.write(self._handle, b"%d" % os.getpid())
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN) and self._handle >= 0:
                whose = os.read(self._handle, 20).decode(errors="replace") or "?"
                self._close()
                raise InvalidValue(
                    f"another training (process {whose}) uses {folder}",
                    hint="end that one, or give this one its own folder=",
                ) from None
        _here.add(self._folder)

    def release(self) -> None:
        _here.discard(self._folder)
        self._close()

    def _close(self) -> None:
        with suppress(OSError):
            if self._handle >= 0:
                os.close(self._handle)
        self._handle = -1
