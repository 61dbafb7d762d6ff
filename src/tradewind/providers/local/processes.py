"""What runs of a machine, and how all of it is killed.

Every process of a machine has the machine's folder in its environment, which children inherit, and
descends from its host, which adopts what its descendants orphan (it is a child subreaper). Either
sign is enough: a daemon that has left its session and its parents still has the first, one that was
started with an empty environment still has the second.

Processes are named by pid and start time, and signalled through a pidfd, so that no stranger who
was given the pid of a dead one is ever hit.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tradewind.base.clock import sleep, stopwatch
from tradewind.base.errors import TradewindError
from tradewind.providers.base import OutcomeUnknown

MARK = "TRADEWIND_MACHINE"
"""The machine's id, for people and jobs."""
MARK_FOLDER = "TRADEWIND_MACHINE_FOLDER"
"""What tells it from a machine of that id in another home."""
_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 30.0
_PAUSE_S = 0.005


def need_linux() -> None:
    if os.uname().sysname != "Linux" or not hasattr(os, "pidfd_open"):
        raise TradewindError(
            "local machines need Linux: nothing else tells which processes are a machine's",
            hint="submit to a cloud's machines from here",
        )


def marked(env: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {**env, MARK: folder.name, MARK_FOLDER: str(folder)}


def adopt_orphans() -> None:
    """From now on what our descendants leave behind becomes our child, not init's."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def living(folder: Path) -> dict[int, int]:
    """pid → start time of all that runs of the machine, its host too."""
    mark = f"{MARK_FOLDER}={folder}".encode()
    births: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    found: list[int] = []
    for path in Path("/proc").iterdir():
        pid = int(path.name) if path.name.isdigit() else 0
        stat = descent(pid)
        if stat is None:
            continue
        parent, births[pid] = stat
        children.setdefault(parent, []).append(pid)
        if mark in environ(pid):
            found.append(pid)
    ours: dict[int, int] = {}
    while found:
        pid = found.pop()
        if pid not in ours:
            ours[pid] = births[pid]
            found += children.get(pid, ())
    return ours


def marked_below(machines: Path) -> dict[str, list[int]]:
    """pids by machine, of all that has the mark of a machine below this folder."""
    mark = f"{MARK_FOLDER}={machines}/".encode()
    found: dict[str, list[int]] = {}
    for path in Path("/proc").iterdir():
        pid = int(path.name) if path.name.isdigit() else 0
        if not pid or descent(pid) is None:
            continue
        for entry in environ(pid):
            if entry.startswith(mark):
                found.setdefault(entry[len(mark) :].decode("utf-8", "replace"), []).append(pid)
    return found


def kill_all(folder: Path, *, spare: int = 0) -> None:
    """Returns when nothing runs of the machine but for the process `spare`. OutcomeUnknown: some of
    it would not die (it hangs in the kernel, or is another user's)."""
    begun = stopwatch()
    # What is forked while we look is found by the next look: until one finds nothing.
    while left := [both for both in living(folder).items() if both[0] != spare]:
        for pid, birth in left:
            kill(pid, birth)
        if stopwatch() - begun > _PATIENCE_S:
            pids = ", ".join(str(pid) for pid, _ in left)
            raise OutcomeUnknown(f"of {folder.name} there are still processes: {pids}")
        sleep(_PAUSE_S)


def kill_with_host(folder: Path, host: int) -> None:
    """The same, for anyone but the host. It is killed last, so that orphans stay its children and
    can be found. Its pid says only that: should it be another's by now, nothing else is hit."""
    kill_all(folder, spare=host)
    kill_all(folder)


def kill(pid: int, birth: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # The handle is a process that exists now: if it is the one that we saw, it stays that one.
        stat = descent(pid)
        if stat and stat[1] == birth:
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
