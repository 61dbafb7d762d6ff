"""A machine's hardware, and the provider's hand on it.

    python -m tradewind.providers.local.host FOLDER

returns once the host runs, as a daemon in a session of its own. A machine has one host in its life:
it takes host.lock, which it never lets go, and whoever finds it taken, or host.json there, is not
the host and leaves. It starts the supervisor and waits. One that was killed is started again, as
on any machine (bootstrap.py): its successor sends what the job has printed, and begins the job
again. The machine is over when the supervisor has ended by itself (so a machine shuts itself down),
when the moment has come at which it is taken, or when it has been up for longer than its hard stop,
should the supervisor hang. When the machine is terminated the supervisor gets SIGTERM and STOP_S,
as by a cloud's shutdown: it sends the end of the job's log. Then everything of it is killed, and
only then ended.json is written. If the host itself is killed, `list_machines` does the rest.

This file imports little: it is a process for each machine, and has to be there at once.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tradewind.base import clock
from tradewind.base.errors import BadFile, NoAccess
from tradewind.base.processes import adopt_orphans
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.local import processes
from tradewind.providers.local.files import (
    INTERRUPTED,
    STOP_S,
    TERMINATED,
    End,
    Host,
    MachineFolder,
    Notice,
    Rental,
    locked,
    read,
    write,
    write_first,
)

_TURN_S = 0.1
"""How soon a notice that someone has written is honoured, and orphans are reaped."""
_TRIES = 100
_READY_S = 2.0
"""What a supervisor needs until it heeds SIGTERM, at most as a rule."""
_AGAIN_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""How long to wait before a killed supervisor is started again: the first time, the second …
After the last of them the machine is given up: what kills it each time would do so for ever."""
_LIVED_S = 600.0
"""One that has lived for so long was killed by chance: the pauses begin anew."""


def main(path: Path) -> int:
    folder = MachineFolder(path)
    with locked(folder.lock, wait=False) as lock:
        if lock is None or folder.host.exists() or folder.ended.exists():
            return 0
        return _detach(lambda ready: _host(folder, ready))


def _detach(body: Callable[[Callable[[], None]], None]) -> int:
    """Runs it in a child that nobody waits for, and returns when that is ready. The lock goes with
    the child: it belongs to the open file, which both have."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return 0 if os.read(reading, 1) else 1

    def ready() -> None:
        os.write(writing, b"1")
        os.close(writing)

    try:
        os.close(reading)
        os.setsid()
        body(ready)
    except BaseException:  # to host.log; the parent, if it waits, learns that we are gone
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _host(folder: MachineFolder, ready: Callable[[], None]) -> None:
    adopt_orphans()
    rental = read(folder.machine, Rental)
    assert rental is not None
    write(folder.host, Host(pid=os.getpid()))
    ready()
    why = _live(folder, rental)
    ended_s = now()
    while True:
        try:
            processes.kill_all(folder.path, spare=os.getpid())
            break
        except OutcomeUnknown as error:
            sys.stderr.write(f"{error}\n")
            ended_s = now()
    folder.sweep()
    end = End(ended_s=max(int(ended_s), rental.machine.launched_s), why=why)
    for _ in range(_TRIES):
        try:
            write(folder.ended, end)
            return
        except NoAccess as error:  # a full disk; whoever lists the machines goes on trying
            sys.stderr.write(f"{error}\n")
            clock.sleep(_TURN_S)


def now() -> float:
    return clock.now().timestamp()


def _live(folder: MachineFolder, rental: Rental) -> str:
    """Returns why the machine is over."""
    begun = clock.stopwatch()
    supervisor, life = _Supervisor(folder, rental), _Life(folder, rental)
    while True:
        why = supervisor.tended(asked=folder.ending.exists())
        if why:
            return why
        taken_at_s = life.taken_at_s()
        if now() >= taken_at_s:
            return INTERRUPTED
        if clock.stopwatch() - begun >= rental.boot.hard_stop_s:
            return f"it was up for {rental.boot.hard_stop_s} s, all that it was given"
        supervisor.wait(min(_TURN_S, max(taken_at_s - now(), 0.0)))


class _Supervisor:
    """The machine's supervisor, and those after it if it is killed."""

    def __init__(self, folder: MachineFolder, rental: Rental) -> None:
        self._folder, self._command = folder, [*rental.command, str(folder.boot)]
        self._pid, self._due, self._killed = 0, 0.0, 0
        self._asked: float | None = None
        self._told = False
        self._poll = select.poll()
        self._handle = -1

    def tended(self, *, asked: bool) -> str:
        """Starts one where there is none, tells it that it is to go. Why there will be no other;
        empty while there will."""
        code = _reap(self._pid)
        if code is not None:
            self._poll.unregister(self._handle)
            os.close(self._handle)
            if self._told or (asked and code >= 0):
                return TERMINATED
            if code >= 0:
                return f"its supervisor ended with exit code {code}"
            if not self._again(-code):
                return f"its supervisor was killed {self._killed} times, at last by signal {-code}"
        if asked and self._must_go():
            return TERMINATED
        if not self._pid and (asked or clock.stopwatch() >= self._due):
            try:
                self._start()
            except OSError as error:
                return f"its supervisor could not be started: {error}"
        return ""

    def wait(self, seconds: float) -> None:
        """For so long, or until it has ended."""
        self._poll.poll(1000 * seconds)

    def _must_go(self) -> bool:
        """Whether its time is up. One that has only just taken another's place is not told at once:
        it must be there first, to send what the other could not."""
        at = clock.stopwatch()
        if self._asked is None:
            self._asked = at
        ready = not self._killed or at >= self._due + _READY_S
        if self._pid and not self._told and ready:
            signal.pidfd_send_signal(self._handle, signal.SIGTERM)
            self._told = True
        return at - self._asked >= STOP_S

    def _again(self, number: int) -> bool:
        """Whether another is to be started, and when."""
        at = clock.stopwatch()
        if at - self._due >= _LIVED_S:
            self._killed = 0
        self._killed += 1
        if self._killed > len(_AGAIN_S):
            return False
        sys.stderr.write(f"its supervisor was killed by signal {number}; another is started\n")
        sys.stderr.flush()
        self._pid, self._due = 0, at + _AGAIN_S[self._killed - 1]
        return True

    def _start(self) -> None:
        process = subprocess.Popen(
            self._command, cwd=self._folder.path, stdin=subprocess.DEVNULL, start_new_session=True
        )
        process.returncode = 0  # it is _reap that buries it
        self._pid, self._due = process.pid, clock.stopwatch()
        self._handle = os.pidfd_open(process.pid)
        self._poll.register(self._handle, select.POLLIN)


class _Life:
    """Until when the machine is its user's."""

    def __init__(self, folder: MachineFolder, rental: Rental) -> None:
        self._folder, self._rental = folder, rental
        self._waited_s: float | None = None if rental.from_work_s else 0.0
        """How long it was until the job worked; None while it does not."""
        self._since_s = now()

    def taken_at_s(self) -> float:
        """When the machine will be taken as far as anybody knows; gives notice when it is due."""
        due_s = self._due_s()
        try:
            notice = read(self._folder.notice, Notice)
        except BadFile:
            notice = None  # someone writes it by hand, and has not finished
        if notice is not None:
            return min(due_s, notice.taken_at_s)
        if self._rental.notice_s > 0 and now() >= due_s - self._rental.notice_s:
            with suppress(NoAccess):  # a full disk: the next turn tries again
                write_first(self._folder.notice, Notice(taken_at_s=due_s))
        return due_s

    def _due_s(self) -> float:
        if self._rental.taken_at_s is None:
            return float("inf")
        if self._waited_s is None:
            waited_s = now() - self._since_s
            if waited_s < self._rental.from_work_s and not self._folder.progress.exists():
                return float("inf")
            self._waited_s = min(waited_s, self._rental.from_work_s)
        return self._rental.taken_at_s + self._waited_s


def _reap(supervisor: int) -> int | None:
    """Buries all dead children, adopted ones too; the supervisor's exit code if it was one."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == supervisor:
            code = os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
