"""Processes of Linux that belong together, and how they are killed. The standard library only: it
is sent to hosts that have nothing of ours, too.

Processes belong together by a variable in their environment, which children inherit, or by descent.
Either sign is enough: a daemon that has left its session and its parents still has the first, one
that was started with an empty environment still has the second.

They are named by pid and start time, and signalled through a pidfd, so that no stranger who was
given the pid of a dead one is ever hit.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on what our descendants leave behind becomes our child, not init's."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def family(mark: bytes, root: tuple[int, int] | None = None) -> dict[int, int]:
    """pid → start time of all that have this entry in their environment, of `root`, and of all
    their descendants."""
    births: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    found: list[int] = []
    for path in Path("/proc").iterdir():
        pid = int(path.name) if path.name.isdigit() else 0
        known = descent(pid) if pid else None
        if known is None:
            continue
        parent, births[pid] = known
        children.setdefault(parent, []).append(pid)
        if mark in environ(pid) or root == (pid, births[pid]):
            found.append(pid)
    ours: dict[int, int] = {}
    while found:
        pid = found.pop()
        if pid not in ours:
            ours[pid] = births[pid]
            found += children.get(pid, ())
    return ours


def kill(pid: int, birth: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # The handle is a process that exists now: if it is the one that we saw, it stays that one.
        known = descent(pid)
        if known and known[1] == birth:
            with suppress(OSError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


def descent(pid: int) -> tuple[int, int] | None:
    """Its parent and when it started; None if there is no such process, or only its zombie. The
    name, in brackets, may hold anything, brackets too."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    state, parent, *more = text[text.rindex(b")") + 2 :].split()
    # Whose first thread has ended looks like a zombie; it is none while it has others.
    dead = state in (b"Z", b"X") and int(more[15]) <= 1
    return None if dead else (int(parent), int(more[17]))


def environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # gone, or another user's
