"""The process that holds a machine's leases, starts the machine, and ends it.

It is a daemon in a session of its own, so that nothing of a machine hangs on the connection that
launched it; it listens nowhere. What it starts (start.sh, and the bootstrap in it) holds the same
locks: should the keeper be killed, the machine goes on, and its GPUs stay leased until all of it
has ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tradewind.base import processes as base
from tradewind.providers.ssh.there import drivers, gpus, moments, processes
from tradewind.providers.ssh.there import folder as folders

STOP_S = 5.0
"""What a supervisor whose machine is ended has to leave in."""
SPARE_S = 600
"""How much later than the supervisor's own hard stop the keeper's is."""
TERMINATED = "it was terminated"
_TURN_S, _SIGN_S = 0.2, 10.0
_SESSION = ("SSH_", "XDG_SESSION", "DBUS_")
"""Variables of the connection: what they name is gone when the machine runs."""


def start(folder: Path, record: dict[str, Any], leases: gpus.Leases, lock: int) -> bool:
    """Returns once it lives, in a process that is nobody's child."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            _apart(folder, [writing, lock, *leases.handles])
            _kept(folder, record, leases, lock, writing)
        except BaseException:  # to keeper.log
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.close(writing)
    os.wait()
    alive = bool(os.read(reading, 1))
    os.close(reading)
    return alive


def _apart(folder: Path, kept: Sequence[int]) -> None:
    """From the connection, whose end waits for its files, and from all locks but ours."""
    os.chdir(folder)
    log = os.open("keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, number)
    for number in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)


def _kept(folder: Path, record: dict[str, Any], leases: gpus.Leases, lock: int, ready: int) -> None:
    base.adopt_orphans()
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: told.append(number))
    own = base.descent(os.getpid())
    folders.write(folder / processes.KEEPER, {"pid": os.getpid(), "birth": own[1] if own else 0})
    child = subprocess.Popen(
        ["sh", "told/start.sh"],
        cwd=folder,
        env=environment(dict(os.environ), folder, record, drivers.visible(leases.gpus)),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[lock, *leases.handles],
    )
    os.write(ready, b"1")
    os.close(ready)
    why = _watched(folder, record, child, told)
    failed = why != TERMINATED and bool(child.returncode)
    elapsed_s = int(moments.since_boot() - record["since_boot_s"])
    while not processes.kill_all(folder, spare=os.getpid()):
        print("some of its processes do not die", flush=True)  # noqa: T201
    folders.emptied(folder)
    leases.let_go()
    ended = {"after_s": max(elapsed_s, 0), "why": why, "failed": failed}
    folders.write(folder / "ended.json", ended)


def _watched(
    folder: Path, record: dict[str, Any], child: subprocess.Popen[bytes], told: list[int]
) -> str:
    """Returns why it is over."""
    stop_at = record["since_boot_s"] + record["hard_stop_s"] + SPARE_S
    asked_at: float | None = None
    signed_at = 0.0
    while True:
        code = _reaped(child)
        now = moments.since_boot()
        if code is not None:
            if asked_at is not None:
                return TERMINATED
            return f"it ended with exit code {code}"
        if told:  # the host shuts down, say: its supervisor saves what it can
            child.send_signal(told.pop())
        if asked_at is None and (folder / "ending").exists():
            asked_at = now
            child.send_signal(signal.SIGINT)
        if asked_at is not None and now - asked_at >= STOP_S:
            return TERMINATED
        if now >= stop_at:
            return "it was up for all the time that it was given"
        if now - signed_at >= _SIGN_S:
            signed_at = now
            with contextlib.suppress(OSError):
                os.utime(folder / "keeper.lock")
        moments.sleep(_TURN_S)


def _reaped(child: subprocess.Popen[bytes]) -> int | None:
    """Its exit code, once it has ended. Orphans that were adopted are buried too."""
    while child.poll() is None:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return child.poll()
        if found is None or found.si_pid == child.pid:
            return child.poll()
        os.waitpid(found.si_pid, 0)
    return child.returncode


def environment(
    env: dict[str, str], folder: Path, record: dict[str, Any], visible: dict[str, str]
) -> dict[str, str]:
    kept = {name: value for name, value in env.items() if not name.startswith(_SESSION)}
    return {
        **kept,
        **record["env"],
        **visible,
        "TRADEWIND_HOME": str(folder),
        processes.MARK: str(folder),
    }
