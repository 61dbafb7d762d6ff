"""A number that no other equipment on this computer has, and what is left of those that died.

Addresses and the names of bridges and namespaces are made of it. The lock goes with its process,
so a slot whose lock is free and whose things still exist is of a dead owner: they are removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

SLOTS = 60
NETNS = Path("/etc/netns")


def possible() -> bool:
    """Namespaces: for root, where the programs for them are."""
    programs = ("ip", "unshare", "setpriv", "mount")
    return os.geteuid() == 0 and all(shutil.which(each) for each in programs)


def ip(*arguments: str, batch: str = "", check: bool = True) -> str:
    command = ["ip", *arguments, *(["-batch", "-"] if batch else [])]
    done = subprocess.run(command, input=batch, text=True, capture_output=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} {batch!r}: {done.stderr}")
    return done.stdout


class Slot:
    def __init__(self) -> None:
        root = os.geteuid() == 0
        self._folder = Path("/run/lock" if root else tempfile.gettempdir())
        self.number, self._lock = self._taken()
        if possible():
            self._sweep()

    def _path(self, number: int) -> Path:
        return self._folder / f"tradewind-cloud-{os.geteuid()}-{number}"

    def _taken(self) -> tuple[int, IO[bytes]]:
        for number in range(SLOTS):
            lock = self._locked(number)
            if lock is not None:
                return number, lock
        raise RuntimeError(f"all {SLOTS} slots of {self._folder} are taken")

    def _locked(self, number: int) -> IO[bytes] | None:
        lock = self._path(number).open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return None
        return lock

    def _sweep(self) -> None:
        remove(self.number)
        for number in range(SLOTS):
            if number != self.number and self._path(number).exists():
                lock = self._locked(number)
                if lock is not None:
                    with lock:
                        remove(number)

    @contextlib.contextmanager
    def alone(self) -> Iterator[bool]:
        """Whether nobody else is there; while that is so, nobody takes a slot that ever was."""
        with contextlib.ExitStack() as held:
            others = [n for n in range(SLOTS) if n != self.number and self._path(n).exists()]
            locks = [self._locked(number) for number in others]
            for lock in locks:
                if lock is not None:
                    held.enter_context(lock)
            yield None not in locks

    def close(self) -> None:
        self._lock.close()


def bridge(number: int) -> str:
    return f"twcloud-{number}"


def remove(number: int) -> None:
    """Everything that carries this slot's names."""
    prefix = f"{bridge(number)}-"
    for line in ip("netns", "list").splitlines():
        name = line.split()[0]
        if name.startswith(prefix):
            remove_namespace(name)
    if NETNS.exists():
        for each in NETNS.glob(f"{prefix}*"):
            shutil.rmtree(each, ignore_errors=True)
    if Path(f"/sys/class/net/{bridge(number)}").exists():
        ip("link", "del", bridge(number), check=False)


def remove_namespace(name: str) -> None:
    for pid in inside(name):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    ip("link", "del", name, check=False)  # would go with the namespace, but some time later
    ip("netns", "del", name, check=False)
    shutil.rmtree(NETNS / name, ignore_errors=True)


def inside(name: str) -> list[int]:
    """The processes of a namespace."""
    with contextlib.suppress(OSError):
        wanted = Path("/run/netns", name).stat().st_ino
        found = []
        for each in Path("/proc").iterdir():
            if each.name.isdigit():
                with contextlib.suppress(OSError):
                    if (each / "ns/net").stat().st_ino == wanted:
                        found.append(int(each.name))
        return found
    return []


def commands(name: str) -> list[tuple[int, str]]:
    """Those of them that still have a command, and which."""
    found = []
    for pid in inside(name):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            if words:
                found.append((pid, words))
    return found
