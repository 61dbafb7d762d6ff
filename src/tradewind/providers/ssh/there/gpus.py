"""The GPUs of a host, who uses them, and leases of them.

A GPU is free if nobody has leased it, no process computes on it and next to nothing is in its
memory: a process of another container may not be listed, but its memory is.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tradewind.providers.ssh.there import drivers, folder, moments, processes
from tradewind.providers.ssh.there.drivers import FREE, Gpu

LEASED, BUSY, UNUSABLE = "leased", "busy", "unusable"
_IDLE_MB, _IDLE_SHARE = 1024, 0.1
"""So much of its memory may be in use of a GPU that nobody computes on: drivers and screens do."""


def look() -> list[Gpu]:
    """All there are, and what is of them now."""
    gpus = drivers.found()
    place = folder.leases()
    return [_judged(each, place) for each in gpus]


def _judged(gpu: Gpu, place: Path) -> Gpu:
    if gpu.mig:
        return replace(gpu, state=UNUSABLE, who="it is split into MIG slices")
    if folder.is_held(place / f"{gpu.uuid}.lock"):
        return replace(gpu, state=LEASED, who=_holder(place, gpu.uuid))
    if gpu.pids:
        users = sorted({_name(processes.user_of(pid)) for pid in gpu.pids})
        return replace(gpu, state=BUSY, who=f"{', '.join(users)} (process {gpu.pids[0]})")
    if gpu.used_mb > max(_IDLE_MB, _IDLE_SHARE * gpu.memory_mb):
        return replace(gpu, state=BUSY, who=f"{gpu.used_mb} MB of its memory are in use")
    return gpu


def _name(uid: int | None) -> str:
    if uid is None:
        return "somebody"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _holder(place: Path, uuid: str) -> str:
    """As the holder itself has told: any user may write there, so it is for people only."""
    told = [
        found
        for path in sorted(place.glob(f"{uuid}.*.json"), key=_changed)
        if (found := folder.read(path)) is not None
    ]
    if not told:
        return "somebody"
    words = f"{told[-1].get('user', 'somebody')}: {told[-1].get('machine_id', 'a machine')}"
    return "".join(letter for letter in words[:120] if letter.isprintable())


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


class Leases:
    """Of some GPUs, for one machine: open files, locked."""

    def __init__(self) -> None:
        self.gpus: list[Gpu] = []
        self.handles: list[int] = []

    def take(self, model: str, count: int, machine_id: str) -> bool:
        """So many free ones of a model, or none of them."""
        for gpu in look():
            if len(self.gpus) == count:
                break
            if gpu.name != model or gpu.state != FREE:
                continue
            handle = folder.lock_lease(f"{gpu.uuid}.lock")
            if handle is not None:
                self.gpus.append(gpu)
                self.handles.append(handle)
        if len(self.gpus) < count:
            self.let_go()
            return False
        told = {"user": _name(os.getuid()), "machine_id": machine_id, "since": moments.wall()}
        for gpu in self.gpus:
            with contextlib.suppress(OSError):  # nobody needs it to work
                path = folder.leases() / _told(gpu.uuid)
                folder.write(path, told)
                path.chmod(0o644)
        return True

    @property
    def uuids(self) -> list[str]:
        return [each.uuid for each in self.gpus]

    def let_go(self) -> None:
        release(self.uuids)
        for handle in self.handles:
            os.close(handle)
        self.gpus, self.handles = [], []


def release(uuids: Iterable[str]) -> None:
    """By who holds them, just before: nothing is left of a lease. What another user has made stays,
    unlocked and empty."""
    place = folder.leases()
    for uuid in uuids:
        for name in (_told(uuid), f"{uuid}.lock"):
            with contextlib.suppress(OSError):
                (place / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        place.rmdir()


def clear(uuids: Iterable[str]) -> None:
    """What holders have left that were killed."""
    for uuid in uuids:
        handle = folder.lock_lease(f"{uuid}.lock")
        if handle is not None:
            release([uuid])
            os.close(handle)


def _told(uuid: str) -> str:
    return f"{uuid}.{os.getuid()}.json"
