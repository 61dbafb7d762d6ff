"""Homes of demos: folders of their own, each locked by the demo that lives in it, so that whoever
finds one unlocked knows that its demo was killed and what runs there belongs to nobody."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from tradewind.base import processes
from tradewind.base.clock import sleep, stopwatch

_PREFIX = "tradewind-demo-"
_LOCK = "lock"
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_PATIENCE_S = 10.0


class Left(Struct, frozen=True):
    """What a demo that was killed has left."""

    home: Path
    pids: tuple[int, ...]


@contextmanager
def lived_in(*, keep: bool) -> Iterator[Path]:
    """A new home. Whatever ends the demo but SIGKILL, nothing runs there afterwards, and unless it
    is kept nothing is left."""
    home = Path(tempfile.mkdtemp(prefix=_PREFIX))
    before = {each: signal.signal(each, _end) for each in _ENDING}
    with (home / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield home
        finally:
            _kill(home)
            if keep:
                (home / _LOCK).unlink(missing_ok=True)  # it has no demo, and may stay
            else:
                shutil.rmtree(home, ignore_errors=True)
            for each, handler in before.items():
                signal.signal(each, handler)


def left() -> list[Left]:
    """Those of this user alone: others' cannot be looked into."""
    found = []
    for home in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")):
        with suppress(OSError):
            if home.stat().st_uid == os.getuid() and _is_unlocked(home / _LOCK):
                found.append(Left(home, tuple(_living(home))))
    return found


def remove(each: Left) -> None:
    _kill(each.home)
    shutil.rmtree(each.home, ignore_errors=True)


def _end(*_: object) -> None:
    """As Ctrl-C does, so that `finally` and `with` are gone through."""
    raise KeyboardInterrupt


def _is_unlocked(lock: Path) -> bool:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _living(home: Path) -> dict[int, int]:
    """pid → start time. The demo itself was not started with its home, so it is not among them."""
    return processes.family(f"TRADEWIND_HOME={home}".encode())


def _kill(home: Path) -> None:
    begun = stopwatch()
    while (living := _living(home)) and stopwatch() - begun < _PATIENCE_S:
        for pid, birth in living.items():
            processes.kill(pid, birth)
        sleep(0.01)
