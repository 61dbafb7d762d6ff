"""The job on this machine: its bundle, its setup, its command, and how they end.

`Work` is what the supervisor's loop holds. Each `start` goes through everything on a thread of its
own, because each part of it can take long or hang: read what was submitted, fetch and unpack the
bundle (once), run the setup (once), meet the other machines, run the command. To the loop all of
that is "running". It has "exited" when the command has, and its last words are in the store or
LAST_WORDS_S have passed: whoever hears of the end may take the machine away at once.

`save` lets a command save and exit, and ends everything before it at once. `stop` kills. Both may
be called at any time, and again.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, json
from msgspec.structs import replace as replace_fields

from tradewind.base import clock
from tradewind.base.decoding import decoder
from tradewind.base.errors import (
    BadFile,
    InvalidValue,
    NoAccess,
    NotFound,
    SourceFailed,
    TradewindError,
)
from tradewind.base.ownfiles import replace
from tradewind.journal import journal
from tradewind.model import bounds, places, torchrun
from tradewind.model.boot import Boot, sha256_of
from tradewind.model.event import LegRequested, Submitted
from tradewind.model.figures import Figures
from tradewind.model.run import Spec, Way
from tradewind.model.serving import Serving
from tradewind.model.timing import UNREACHABLE_S
from tradewind.store.base import Store
from tradewind.supervisor import disk, given, keeper, meeting, progress, variables
from tradewind.supervisor.cadence import Cadence
from tradewind.supervisor.command import Command
from tradewind.supervisor.decide import Job
from tradewind.supervisor.exits import Blame, blame
from tradewind.supervisor.folder import MachineFolder, State
from tradewind.supervisor.idle import Quiet, of_machine
from tradewind.supervisor.logs import Shippers, Spool
from tradewind.supervisor.outputs import END_S, Outputs
from tradewind.supervisor.progress import Progress
from tradewind.supervisor.unpack import unpack
from tradewind.supervisor.watch import Watch
from tradewind.telemetry import files

T = TypeVar("T")

LAST_WORDS_S = 20.0
_KILL_S = 15.0
_ASK_AGAIN_S = 2.0
_TEMPFAIL = 75
_HERE = "127.0.0.1"
_serving = decoder(Serving)


class _Cancelled(Exception):
    pass


class _End(Struct, frozen=True):
    code: int
    trouble: str
    tail: str
    again: bool = False
    setup: bool = False


class Work:
    def __init__(
        self,
        boot: Boot,
        store: Store,
        folder: MachineFolder,
        spool: Spool,
        shipper: Shippers,
        watch: Watch,
        wake: Callable[[], None],
    ) -> None:
        self._boot, self._store, self._folder = boot, store, folder
        self._spool, self._shipper, self._watch, self._wake = spool, shipper, watch, wake
        self.spec: Spec | None = None
        """As it was submitted, once it is known."""
        self.way: Way | None = None
        """What was bought, once it is known."""
        self._mark = f"{boot.launch_id}/{boot.machine_id}"
        self._lock = threading.Lock()  # around what a start and whoever ends it both touch
        self._command: Command | None = None
        self._part = ""
        """preparing (all that comes before), command, ending (it has ended, and is being told)"""
        self._ordered = ""
        """Why it ends, where that was our doing: an exit code tells of a signal, not of whose."""
        self._cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._end: _End | None = None
        self._progress = Progress()
        self._cadence = Cadence(folder.cadence)
        self._setting_up = False
        self._outputs: Outputs | None = None
        self._save_until_s: float | None = None
        """Until when a job that is asked to save, and its outputs, have time."""
        self._quiet = Quiet(of_machine(lambda: keeper.find(f"{self._mark}/command")))
        self._turn = boot.leg
        self.left: dict[str, bytes] = {}
        """What it has put into the store for the other machines of the leg, by key."""
        self._found = 0.0
        """How far the newest checkpoint is that the store was seen to have."""
        # Of a supervisor that was killed. Its keepers have seen to it, unless they were killed too.
        self._end_all("command", *([] if folder.setup_done.exists() else ["setup"]))

    def restore(self, state: State) -> None:
        """As it was under the supervisor before this one, which had reported its end."""
        code = 0 if state.doing == "finished" else state.exit_code
        self._progress = Progress(state.step, state.saved)
        self._end = _End(-9 if code is None else code, state.trouble, state.tail)

    @property
    def notice_s(self) -> int:
        """How long before it takes a machine the provider tells so."""
        return self.way.facts.notice_s if self.way else 0

    def seen(self) -> Job:
        self._progress = told = progress.read(self._folder.progress, self._progress)
        end, saved = self._end, max(told.saved, self._found)
        if end is not None:
            return Job(
                "exited", told.step, None, saved, end.code, end.trouble, end.tail, end.again,
                setup=end.setup, serving=self._served(),
            )  # fmt: skip
        if self._thread is None:
            return Job("none", told.step, told.rate, saved)
        stalled_s, idle_s = 0.0, 0.0
        figures: tuple[Figures, ...] = ()
        serving: Serving | None = None
        if self._part == "command":
            serving = self._serves()
            figures = files.read(self._folder.telemetry, clock.epoch())
            stalled_s, idle_s = self._quiet.seen(told.step, self._watch.uptime_s())
            if self.spec is not None:
                self._cadence.tell(self.spec, self.way, self._watch.uptime_s())
            if self._outputs is not None:
                self._outputs.seen(told.step, saved, self._watch.uptime_s())
        return Job(
            "running", told.step, told.rate, saved, stalled_s=stalled_s, idle_s=idle_s,
            figures=figures, serving=serving,
        )  # fmt: skip

    def _serves(self) -> Serving | None:
        """What the engine says, where there is one; where it can be reached is ours to say."""
        try:
            told = _serving(self._folder.serving.read_bytes())
        except OSError:
            return None
        if told is None:
            return None
        return replace_fields(told, host=self._boot.host, public=self._boot.public)

    def _served(self) -> Serving | None:
        """What an engine that has ended said last: what it has counted is for its bill."""
        told = self._serves()
        return replace_fields(told, state="draining") if told is not None else None

    def start(self, resume: str, turn: int = 0) -> None:
        """Nothing is left of an earlier try: its keeper has seen to that. `turn`: the number that
        its checkpoints have; 0: that of the leg."""
        self._turn = turn or self._boot.leg
        for path in (self._folder.save, self._folder.progress, self._folder.serving):
            with suppress(OSError):  # a disk that is read-only by now: the job will tell
                path.unlink(missing_ok=True)
        shutil.rmtree(self._folder.telemetry, ignore_errors=True)
        if resume:
            begun = progress.of_checkpoint(resume)
            self._progress = Progress(begun.step, max(begun.saved, self._progress.saved))
        self._end, self._cancelled, self._part = None, threading.Event(), "preparing"
        self._ordered, self._save_until_s = "", None
        self._thread = threading.Thread(
            target=self._go, args=(resume, self._cancelled), name="job", daemon=True
        )
        self._thread.start()

    def save_soon(self) -> None:
        """And go on: the machine may be taken, or not."""
        self._cadence.save_once()

    def save(self, within_s: float) -> None:
        self._save_until_s = self._watch.uptime_s() + within_s
        with self._lock:
            command = self._command
            if self._part == "preparing":  # there is nothing to save
                self._cancel()
        if command is not None:
            if self._part == "command":
                self._ordered = "the job has ended, after it was asked to save"
                with suppress(NoAccess):  # the disk is full: the signal has to do
                    replace(self._folder.save, json.encode({"within_s": round(within_s)}))
                command.terminate()
                if self._outputs is not None:
                    self._outputs.look()  # what is there by now, should the rest come too late
            else:
                command.kill()
                command.ended.wait(_KILL_S)

    def stop(self) -> None:
        """Returns when nothing of the job is left, or after a while: there are processes that even
        SIGKILL does not end soon."""
        if self._outputs is not None:
            self._outputs.give_up()
        with self._lock:
            command = self._command
            if self._part == "preparing":
                self._cancel()
        if command is not None:
            self._ordered = self._ordered or "the job was stopped by its supervisor"
            command.kill()
            command.ended.wait(_KILL_S)
        self._end_all("command", "setup")

    def _cancel(self) -> None:
        """At once, though its thread may hang in the store: it can begin nothing any more."""
        self._cancelled.set()
        if self._thread is not None and self._end is None:
            self._end = _End(143, "user", "")

    # -- on the thread of a start ------------------------------------------------------------------

    def _go(self, resume: str, cancelled: threading.Event) -> None:
        began = self._spool.size
        try:
            code = self._all(resume, cancelled)
            tail = self._spool.tail(began) if code else ""
            why = blame(code, tail)
            if code and disk.is_full_of_others(self._folder.path):
                why = Blame("infrastructure", "the machine's disk is full, and not with the job's")
        except _Cancelled:
            code, tail, why = 143, "", Blame("user", "it was stopped before it began")
        except (SourceFailed, NoAccess) as error:
            code, tail, why = self._failed(error, "infrastructure")
        except OSError as error:  # no process, no memory, no room
            code, tail, why = self._failed(NoAccess(str(error)), "infrastructure")
        except TradewindError as error:
            code, tail, why = self._failed(error, "user")
        except Exception as error:
            bug = f"this is a bug in Tradewind: {type(error).__name__}: {error}"
            code, tail, why = self._failed(TradewindError(bug), "user")
        if code and not cancelled.is_set():
            words = self._ordered or why.reason
            self._spool.remark(words if str(code) in words else f"{words} (exit code {code})")
        with self._lock:
            if cancelled.is_set():
                return  # and somebody else has said how it ended
            self._part = "ending"
        if self._outputs is not None:
            self._outputs.finish(self._watch.real_s(self._outputs_s()))
        if code and self._boot.nodes == 1:
            with suppress(TradewindError):  # whether it got further decides about another try
                self._newest("")
        self._shipper.flush(self._watch.real_s(LAST_WORDS_S))
        unprepared = self._setting_up and bool(code)
        self._end = _End(code, why.trouble, tail, why.again, unprepared)
        self._wake()

    def _outputs_s(self) -> float:
        if self._save_until_s is None:
            return END_S
        return max(self._save_until_s - self._watch.uptime_s(), 0.0)

    def _failed(self, error: TradewindError, trouble: str) -> tuple[int, str, Blame]:
        code = _TEMPFAIL if trouble == "infrastructure" else 1
        return code, str(error), Blame(trouble, str(error))

    def _all(self, resume: str, cancelled: threading.Event) -> int:
        if self.spec is None:
            self.spec = self._patiently(self._submitted, cancelled)
        job = self.spec.job
        command = given.text(job, "command")
        if not command:
            raise InvalidValue("the job has no command")
        if not self._folder.work.is_dir():
            packed, sha256 = given.text(job, "bundle"), given.text(job, "bundle_sha256")
            self._patiently(lambda: self._fetch(packed, sha256), cancelled)
        folder = _workdir(self._folder.work, given.text(job, "workdir"))
        env = variables.of_job(self._boot, self.spec, self.way, self._folder, self._turn)
        env |= self._patiently(self._secrets, cancelled)
        self._cadence.tell(self.spec, self.way, self._watch.uptime_s())
        setup = given.text(job, "setup")
        if setup and not self._folder.setup_done.exists():
            self._setting_up = True
            code = self._run(setup, "setup", folder, env, cancelled)
            if code:
                self._spool.remark("the setup has failed")
                return code
            self._setting_up = False
            self._folder.setup_done.touch()
        patterns = given.texts(job, "outputs")
        if patterns and self._outputs is None:
            self._outputs = self._patiently(lambda: self._outputs_in(folder, patterns), cancelled)
        if self._boot.nodes == 1:
            resume = self._patiently(lambda: self._newest(resume), cancelled)
        env["TRADEWIND_RESUME"] = resume
        env = variables.caches(self._folder) | env
        if self._boot.nodes > 1 or torchrun.is_torchrun(command):
            address = self._meet(cancelled)
            env |= {"MASTER_ADDR": address.host, "MASTER_PORT": str(address.port)}
            command = meeting.with_address(command, self._boot.nodes, self._boot.rank, address)
        return self._run(command, "command", folder, env, cancelled)

    def _run(
        self, command: str, part: str, folder: Path, env: dict[str, str], cancelled: threading.Event
    ) -> int:
        with self._lock:
            if cancelled.is_set():
                raise _Cancelled
            running = self._command = Command(
                command,
                mark=f"{self._mark}/{part}",
                folder=folder,
                env=env,
                output=self._spool.handle,
                # A setup may start services for the command to use.
                leftovers="keep" if part == "setup" else "kill",
            )
            if part == "command":
                self._quiet.begin(self._progress.step, self._watch.uptime_s())
                self._part = part
        try:
            return running.wait()
        finally:
            with self._lock:
                self._command = None
                if part == "command":
                    self._part = "ending"

    def _submitted(self) -> Spec:
        first = journal.one(self._store, self._boot.run_id, 1)
        bought = journal.one(self._store, self._boot.run_id, max(self._boot.after, 1))
        for event in bought.events if bought else ():
            if isinstance(event, LegRequested) and event.request.leg == self._boot.leg:
                self.way = event.request.way
        for event in first.events if first else ():
            if isinstance(event, Submitted):
                self._check_job(event.spec.job)
                return event.spec
        raise NotFound(f"{self._boot.run_id} was never submitted")

    def _check_job(self, job: dict[str, Any]) -> None:
        """On a computer of the user's own only what was submitted there is run."""
        if self._boot.job_sha256 not in ("", sha256_of(job)):
            raise BadFile(
                f"the job of {self._boot.run_id} in the store is not the one that was submitted"
                " from this computer: it is not run",
                hint="someone with write access to the store changed it; submit the job again",
            )

    def _fetch(self, key: str, sha256: str) -> None:
        work = self._folder.work
        if not key:
            work.mkdir(parents=True, exist_ok=True)
            return
        self._store.download(key, self._folder.bundle, most=bounds.BUNDLE)
        _check(self._folder.bundle, sha256)
        unpack(self._folder.bundle, work)

    def _outputs_in(self, folder: Path, patterns: Sequence[str]) -> Outputs:
        """With what earlier legs have brought, once on each machine. A try in place finds the
        folder as the last one left it."""
        boot = self._boot
        made = Outputs(
            self._store,
            boot.run_id,
            boot.leg,
            boot.rank,
            patterns=patterns,
            folder=folder,
            remark=self._spool.remark,
            key=boot.key,
        )
        if self._folder.outputs_back.exists():
            made.take_over()  # a supervisor before this one has brought some
        else:
            made.put_back()
            self._folder.outputs_back.touch()
        return made

    def _secrets(self) -> dict[str, str]:
        named = given.table(self.spec.job, "secrets") if self.spec else {}
        if not named:
            return {}
        from tradewind.supervisor import secrets

        return secrets.values(named, self._boot)

    def _newest(self, resume: str) -> str:
        """What this leg has saved itself, if it has: after a failure in place, or a restart."""
        boot = self._boot
        mine = f"{places.checkpoints(boot.run_id)}{self._turn:06d}/"
        found = max(self._store.list_after(mine), default=resume)
        self._found = max(self._found, progress.of_checkpoint(found).saved)
        return found

    def _meet(self, cancelled: threading.Event) -> meeting.Address:
        boot = self._boot
        if boot.nodes == 1:
            return meeting.Address(_HERE, meeting.free_port())
        if boot.rank == 0:
            mine = self._patiently(
                lambda: meeting.publish(self._store, boot.run_id, boot.leg, boot.host, boot.key),
                cancelled,
            )
            self.left = {places.address(boot.run_id, boot.leg): meeting.signed(mine, boot.key)}
            return mine
        while True:  # for as long as the leg lives: controllers know when a machine never comes up
            found = self._patiently(
                lambda: meeting.find(self._store, boot.run_id, boot.leg, boot.key), cancelled
            )
            # Machines of one computer meet on it, whatever anybody with the key has written.
            here = boot.host == _HERE
            if found is not None and (not here or found.host.startswith("127.")):
                return found
            self._pause(cancelled)

    def _patiently(self, call: Callable[[], T], cancelled: threading.Event) -> T:
        """Again while the store does not answer, or not to us, or there is no room for what it
        answers; whether that is for too long is for the loop to tell, which hears of it as well,
        and after UNREACHABLE_S for us."""
        until_s = self._watch.uptime_s() + UNREACHABLE_S
        while True:
            if cancelled.is_set():
                raise _Cancelled
            try:
                return call()
            except (SourceFailed, NoAccess):
                if self._watch.uptime_s() >= until_s:
                    raise
            self._pause(cancelled)

    def _pause(self, cancelled: threading.Event) -> None:
        if cancelled.wait(self._watch.real_s(_ASK_AGAIN_S)):
            raise _Cancelled

    def _end_all(self, *parts: str) -> None:
        for part in parts:
            with suppress(OSError):
                keeper.end_all(f"{self._mark}/{part}")


def _check(bundle: Path, sha256: str) -> None:
    """That it is what was submitted. A store may lose bytes, and others may write into it; runs of
    an older Tradewind do not say."""
    if not sha256:
        return
    import hashlib

    try:
        with bundle.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise NoAccess(f"the bundle {bundle} cannot be read: {error.strerror or error}") from None
    if found != sha256:
        raise BadFile(
            f"the bundle in the store is not the one that was submitted: its hash is {found} and"
            f" not {sha256}",
            hint="submit the job again",
        )


def _workdir(work: Path, named: str) -> Path:
    """An absolute one is the user's word for a folder of the machine; the rest is the bundle's."""
    folder = (work / named).resolve()
    if not Path(named).is_absolute() and not folder.is_relative_to(work.resolve()):
        raise InvalidValue(f"the job's workdir {named} leads out of its bundle")
    if not folder.is_dir():
        raise NotFound(f"there is no folder {named or folder} to run the job in")
    return folder
