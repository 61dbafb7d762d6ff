"""Where everything of local machines lies below `$TRADEWIND_HOME/local`, and who may write it.

tokens/<launch-id>              locked by whoever acts on the purchase; "spent" once it is forgotten
launches/<launch-id>.json       Purchase: written once, and with that all its machines are bought
machines/<machine-id>/
    machine.json  boot.json     Rental, and its Boot for the supervisor: copies from the purchase
    host.lock                   locked by the host for as long as it lives
    host.json                   Host: there was a host; there will be no second one
    notice.json                 Notice: when the machine will be taken; the supervisor reads it too
    ending                      there once the machine is being terminated
    ended.json                  End: the machine is off, and nothing of it runs but a leaving host
    host.log                    output of the host and of the supervisor
secrets/<run-id>.json           values of secrets that its user handed over, for whom alone it is
                                (0600); written by whoever submits, read by supervisors

Only the holder of the token's lock writes, with these exceptions: host.json and ended.json are for
whoever holds host.lock, and the host may be the first to write notice.json. Every file is replaced
whole, so readers need no lock. Locks are flock's: the kernel frees them when their holder dies,
however it dies, so a lock says who lives better than a pid, which may be another's by now.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from tradewind.base import ownfiles
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.model.boot import Boot
from tradewind.model.run import Machine

SPENT = b"spent"
"""In a token: its purchase was made, is over, and is forgotten."""

T = TypeVar("T")
TERMINATED = "it was terminated"
INTERRUPTED = "the provider took it"
STOP_S = 5.0
"""What a supervisor whose machine is terminated has to leave in, as by a cloud's shutdown."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,149}")


class Rental(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine as it was bought."""

    machine: Machine
    boot: Boot
    market: str
    price: int
    """Micro-dollars an hour."""
    command: tuple[str, ...]
    """Starts the supervisor; the path of boot.json is appended."""
    taken_at_s: float | None
    """When its life as a spot machine ends, by this computer's clock; None: it is never taken."""
    notice_s: float
    from_work_s: float = 0.0
    """Its life begins when its job has told of progress, or so long after the purchase at the
    latest, and `taken_at_s` is by as much later; 0: with the purchase."""


class Purchase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rentals: tuple[Rental, ...]


class Host(Struct, frozen=True, kw_only=True):
    pid: int


class Notice(Struct, frozen=True, kw_only=True):
    taken_at_s: float


class End(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    ended_s: int
    why: str


class MachineFolder:
    """The files of one machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.machine = path / "machine.json"
        self.boot = path / "boot.json"
        self.lock = path / "host.lock"
        self.host = path / "host.json"
        self.notice = path / "notice.json"
        self.ending = path / "ending"
        self.ended = path / "ended.json"
        self.log = path / "host.log"
        self.progress = path / "progress.json"
        """Written by the job, as the supervisor tells it to (supervisor/folder.py)."""

    def end(self) -> End | None:
        return read(self.ended, End)

    def sweep(self) -> None:
        """Removes what those that were killed had written half. Nothing of it may live."""
        for left in self.path.glob(".*.new"):
            left.unlink(missing_ok=True)

    def has_living_host(self) -> bool:
        """Only once host.json is there: before, a look would be in the way of a starting host."""
        try:
            with self.lock.open("rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass  # another has just forgotten the machine
        return False


def secrets_of(home: Path, run_id: str) -> Path:
    return home / "local" / "secrets" / f"{check_name(run_id)}.json"


def is_name(launch_id: str) -> bool:
    return _NAME.fullmatch(launch_id) is not None


def check_name(launch_id: str) -> str:
    if not is_name(launch_id):
        raise InvalidValue(
            f"{launch_id!r} cannot be the id of a launch: it names files",
            hint="use letters, digits, '-', '_' and '.', 150 at most",
        )
    return launch_id


def read(path: Path, kind: type[T]) -> T | None:
    """None where there is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    except UNREADABLE as error:
        raise BadFile(
            f"{path} is damaged: {error}",
            hint="its machine's processes have TRADEWIND_MACHINE in their environment",
        ) from None


def write(path: Path, value: Struct) -> None:
    ownfiles.replace(path, msgspec.json.format(msgspec.json.encode(value), indent=1))


def write_first(path: Path, value: Struct) -> None:
    """Unless another has written it already."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    write(beside, value)
    with suppress(FileExistsError):
        os.link(beside, path)
    beside.unlink()


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[BinaryIO | None]:
    """The open, locked file; None if it is another's and we do not wait."""
    try:
        stream = ownfiles.append(path, "a+b")
    except OSError as error:
        raise NoAccess(f"{path} cannot be opened: {error.strerror or error}") from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
        else:
            yield stream
