"""Keeps one command and all that it starts: `keeper.py MARK FOLDER STATUS LEFTOVERS`.

A process of its own between the supervisor and the job, so that neither can outlive the other
unseen. It runs `$TRADEWIND_COMMAND` by /bin/sh in FOLDER and in a new session, and

- reads orders from its standard input: `T` sends SIGTERM to the command's process group, `K` kills
  everything. So does the end of the input, which comes when the supervisor is gone, however it
  went.
- when the command has ended, kills what it left behind (LEFTOVERS is `kill`) or not (`keep`), and
  writes the exit code, negative for a signal, to the file descriptor STATUS.

"Everything" is every process that descends from this one, which orphans do as well (it is their
subreaper), and every process with `TRADEWIND_JOB=MARK` in its environment, wherever it descends
from. To get away, a daemon would have to do both: drop its environment and outlive its keeper.

The command comes by the environment, which only its own user can read: arguments of processes are
for everybody to see.

Standard library only, and none of Tradewind: it is run by its path, so that no folder of the user's
can stand in for a module of ours.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from contextlib import suppress

VARIABLE = "TRADEWIND_JOB"
COMMAND = "TRADEWIND_COMMAND"
_PR_SET_CHILD_SUBREAPER = 36
_SCRIPT = f"""trap 'exit 143' TERM
eval "unset {COMMAND}
${COMMAND}"
"""
"""The shell gets the group's SIGTERM too. It must wait until what it runs has saved, because with
its end everything is over; and it must not go on to the next command then."""
_PAUSE_S = 0.02
_GIVE_UP_S = 10.0
"""A process that does not die for so long waits for a broken device, and will not do any work."""


def main(mark: str, folder: str, status: str, leftovers: str) -> None:
    status_fd = int(status)
    os.set_inheritable(status_fd, False)  # or a daemon would hold it open
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # orders come by the pipe
    pid = _spawn(folder)
    code = None if pid else 126
    killed = False
    while code is None and not killed:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
        if 0 in ready:
            orders = os.read(0, 16)
            killed = not orders or b"K" in orders
            if b"T" in orders:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGTERM)
        code = _reaped(pid)
    if killed or leftovers == "kill":
        end_all(mark, os.getpid())
    if code is None:
        code = _reaped(pid)
    with suppress(OSError):  # nobody may be left to be told
        os.write(status_fd, b"%d\n" % (-signal.SIGKILL if code is None else code))


def _spawn(folder: str) -> int:
    """0 where it cannot be begun; the job's log says why."""
    ours = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD]
    try:
        os.chdir(folder)
        return os.posix_spawn(
            "/bin/sh",
            ["/bin/sh", "-c", _SCRIPT],
            dict(os.environ),
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)],
            setsid=True,
            setsigmask=[],
            setsigdef=ours,  # what is ignored here would be ignored there
        )
    except OSError as error:
        os.write(2, f"tradewind: the command cannot be started: {error}\n".encode())
        return 0


_codes: dict[int, int] = {}


def _reaped(pid: int) -> int | None:
    """Buries every child that has ended; the exit code of `pid` once it has."""
    with suppress(ChildProcessError):
        while True:
            ended, wait_status = os.waitpid(-1, os.WNOHANG)
            if not ended:
                break
            _codes[ended] = os.waitstatus_to_exitcode(wait_status)
    return _codes.get(pid)


def end_all(mark: str, ancestor: int | None = None) -> bool:
    """Kills everything with the mark, and everything below `ancestor`, until nothing is left."""
    for _ in range(int(_GIVE_UP_S / _PAUSE_S)):
        found = living(mark, ancestor)
        if not found:
            return True
        for pid, birth in found.items():
            kill(pid, birth)
        if ancestor is not None:
            _reaped(0)
        select.select([], [], [], _PAUSE_S)
    return False


def kill(pid: int, birth: int) -> None:
    """By a handle, and only the process that was found: by now its number may be another's."""
    handle = -1
    with suppress(OSError, AttributeError):  # not every Python is built with it
        handle = os.pidfd_open(pid)
    try:
        with suppress(OSError):  # it has ended, or is somebody else's
            if _stat(pid)[2] != birth:
                return
            if handle >= 0:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)
    finally:
        if handle >= 0:
            os.close(handle)


def find(mark: str, ancestor: int | None = None) -> list[int]:
    """Processes that live; zombies do not."""
    return sorted(living(mark, ancestor))


def living(mark: str, ancestor: int | None = None) -> dict[int, int]:
    """The same, each with the time at which it was started."""
    wanted = f"{VARIABLE}={mark}".encode()
    parents: dict[int, int] = {}
    births: dict[int, int] = {}
    marked = set()
    for name in os.listdir("/proc"):  # noqa: PTH208 -- hundreds of them
        if not name.isdigit():
            continue
        with suppress(OSError):  # it has ended, or is somebody else's
            dead, parent, birth = _stat(int(name))
            if dead:
                continue
            parents[int(name)], births[int(name)] = parent, birth
            with open(f"/proc/{name}/environ", "rb") as stream:  # noqa: PTH123
                if wanted in stream.read().split(b"\0"):
                    marked.add(int(name))
    below = {ancestor} if ancestor is not None else set()
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            break
        below |= more
    return {pid: births[pid] for pid in (marked | below) - {os.getpid(), ancestor}}


def _stat(pid: int) -> tuple[bool, int, int]:
    """Whether only its zombie is left, its parent, and when it was started. The name, in brackets,
    may hold anything."""
    with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123
        state, parent, *more = stream.read().rpartition(b")")[2].split()
    # Whose first thread has ended looks like a zombie; it is none while it has others.
    return state in (b"Z", b"X") and int(more[15]) <= 1, int(parent), int(more[17])


if __name__ == "__main__":
    main(*sys.argv[1:])
