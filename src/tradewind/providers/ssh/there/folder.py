"""What lies where on a host, and whose it is.

~/.tradewind-host/<owner>/machines/<machine id>/    0700; `owner` is a hash of the store's URL
    machine.json   what was launched, and the host's clocks at that moment
    keeper.lock    locked by the keeper and by what it starts, while any of them lives; its time of
                   change is the keeper's last sign of life
    keeper.json    which process that is
    ending         there once the machine is to end
    ended.json     the machine is over, and nothing of it runs
    told/          start.sh and what it needs, as for a container; first.log is what it has printed
~/.tradewind-host/<owner>/kits/, relay/    see kits.py and relay.py

Leases of GPUs are for all users of a host, so they lie where all can write (`leases`): one file a
GPU, locked by who has it. Locks are flock's: the kernel frees them when the last process that has
the file open dies, however it dies. What is told of a holder lies beside the lock, and holds only
while it is locked; the holder removes both when it lets go.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tradewind.providers.ssh.there import moments

FOLDER = ".tradewind-host"
LEASES = ("/run/lock", "/tmp")
"""The first that everybody may write to: all users of a host must come to the same."""
KEPT = (
    "machine.json",
    "ended.json",
    "keeper.lock",
    "ending",
    "keeper.json",
    "first.log",
    "keeper.log",
)
"""What stays of a machine that has ended, for as long as it is listed."""
_TRIES, _LOOK_S = 10, 0.02
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,240}")


def home(named: str = "") -> Path:
    """The one folder that is ours. `named`: another, relative to the user's home."""
    return Path.home() / (named or FOLDER)


def owned(root: Path, owner: str) -> Path:
    return root / check(owner)


def check(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} cannot name a folder")
    return name


def is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def read(path: Path) -> dict[str, Any] | None:
    """None: it is not there, or a full disk has cut it off."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write(path: Path, value: object) -> None:
    write_bytes(path, json.dumps(value).encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def lock(path: Path) -> int | None:
    """The open file, locked; None: another has it. It is to be kept open by who needs it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits until no other has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def leases() -> Path:
    """Made, if it is not there."""
    for each in LEASES:
        place = Path(each)
        try:
            everybodys = place.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX)
        except OSError:
            continue
        if everybodys != stat.S_IWOTH | stat.S_ISVTX:
            continue
        found = place / "tradewind"
        with contextlib.suppress(FileExistsError):
            found.mkdir(mode=0o700)
            found.chmod(0o1777)  # whatever the umask is
        if found.is_symlink() or not found.is_dir():
            continue
        return found
    raise OSError(f"none of {', '.join(LEASES)} may be written to by everybody")


def lock_lease(name: str) -> int | None:
    """As `lock`, of a file in `leases` that any user may have made, and that its holder removes
    when it lets go: so what was locked must still be what has the name. Not with O_CREAT where it
    is there, which kernels refuse for files of others in such folders."""
    for _ in range(_TRIES):
        path = leases() / name
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            os.fchmod(made, 0o644)  # whatever the umask is
            os.close(made)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # its holder has just let go
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        except FileNotFoundError:
            pass
        except OSError:  # a holder, or somebody who only looks: that is over at once
            moments.sleep(_LOOK_S)
        os.close(handle)
    return None


def emptied(folder: Path) -> None:
    """Of a machine that has ended: its job's files may be large."""
    for each in folder.iterdir():
        if each.name in KEPT:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                each.unlink()
