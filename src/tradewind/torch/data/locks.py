"""One process of a host does a thing while the others wait for it: a lock on a file beside it.

The kernel lets go of it when its holder dies, however it dies. Waiting is never silent: after some
seconds it is said for whom.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.base.ownfiles import make_folder

_LOOK_S, _SAY_S = 0.05, 10.0


@contextmanager
def held(path: Path, what: str, say: Callable[[str], None]) -> Iterator[bool]:
    """Holds the lock; gives whether it had to be waited for. Its file is gone afterwards."""
    handle, waited = _taken(path, what, say)
    try:
        yield waited
    finally:
        # First gone, then free: whoever waits finds that it holds a file without a name.
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def _taken(path: Path, what: str, say: Callable[[str], None]) -> tuple[int, bool]:
    began = said = clock.monotonic()
    waited = False
    while True:
        try:
            make_folder(path.parent, 0o777)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise NoAccess(
                f"{path.parent} cannot be written to: {error.strerror or error}",
                hint="check its permissions and the space, or choose another folder",
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            now_s = clock.monotonic()
            if now_s - said > _SAY_S:
                said = now_s
                who = os.pread(handle, 100, 0).decode(errors="replace") or "another process"
                say(f"waits for {what}, which {who} is at; {now_s - began:.0f} s so far")
            os.close(handle)
            clock.sleep(_LOOK_S)
            continue
        except OSError as error:
            os.close(handle)
            raise NoAccess(
                f"{path} cannot be locked: {error.strerror or error}",
                hint="choose a folder on a file system that knows locks",
            ) from None
        if os.fstat(handle).st_nlink:
            os.pwrite(handle, f"process {os.getpid()} of {os.uname().nodename}".encode(), 0)
            return handle, waited
        os.close(handle)


def is_free(path: Path) -> bool:
    """Whether nobody holds it just now."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
