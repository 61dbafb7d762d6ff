"""What of this machine a rank may use: cores, memory, and room to hand batches over.

A container has fewer cores than the machine says, and the ranks of a host share them. Workers hand
batches over in /dev/shm, which containers keep small: when it is full, they die of a bus error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tradewind.base.errors import InvalidValue


class Machine(Struct, frozen=True):
    """Of one rank."""

    cores: float
    ranks: int
    """On this host."""
    gpu: bool
    memory: int
    """Bytes that are free for it."""
    shared: int
    """Of those, in /dev/shm."""


def machine(*, gpu: bool, env: Mapping[str, str] | None = None, root: Path = Path("/")) -> Machine:
    known = os.environ if env is None else env
    said = known.get("LOCAL_WORLD_SIZE") or "1"
    if not said.isdecimal() or int(said) < 1:
        raise InvalidValue(f"LOCAL_WORLD_SIZE is {said!r}", hint="torchrun sets it")
    ranks = int(said)
    cores = float(len(os.sched_getaffinity(0)))
    memory = _available(root)
    for group in _groups(root):
        cores = min(cores, group.cores)
        memory = min(memory, group.memory)
    shared = memory
    with suppress(OSError):
        about = os.statvfs(root / "dev/shm")
        shared = about.f_bavail * about.f_frsize
    return Machine(cores / ranks, ranks, gpu, memory // ranks, min(memory, shared) // ranks)


class _Group(Struct):
    cores: float = 1e9
    memory: int = 1 << 62


def _groups(root: Path) -> list[_Group]:
    """The control groups that this process is in, of both versions, and those above them."""
    found = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        for kind in kinds.split(",") if kinds else [""]:
            below = root / "sys/fs/cgroup" / kind
            inside = Path(path.lstrip("/"))
            for each in (inside, *inside.parents):
                found.append(_group(below / each, kind))
    return found


def _group(folder: Path, kind: str) -> _Group:
    made = _Group()
    if kind in ("", "cpu"):
        quota, period = (*_text(folder / "cpu.max").split(), "", "")[:2]
        if kind == "cpu":
            quota = _text(folder / "cpu.cfs_quota_us").strip()
            period = _text(folder / "cpu.cfs_period_us").strip()
        if quota.isdecimal() and period.isdecimal() and int(period):
            made.cores = int(quota) / int(period)
    limits = {"": ("memory.max", "memory.current")}
    limits["memory"] = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    if kind in limits:
        most, used = (_text(folder / name).strip() for name in limits[kind])
        if most.isdecimal() and used.isdecimal():
            made.memory = max(0, int(most) - int(used))
    return made


def _available(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 1 << 40


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
