"""What a machine keeps on its own disk: the folder in which its boot.json lies.

boot.json      what it was given                    spool.log      the job's output
state.json     what a new supervisor must know      bundle.tar.gz  as it was fetched
up.json        since when the machine is up         work/          the bundle, unpacked
lock           held by the supervisor that lives    setup.done     the setup has been done here
progress.json  written by the job                   save           there when the job is to save
metrics.jsonl  appended to by the job               outputs.back   outputs of earlier legs are here
telemetry/     written by each rank of the job      cadence.json   how often the job is to save
serving.json   what a replica's engine says of itself
compiled/      a folder for each try: what PyTorch and Triton compile
used/          what each process asked of the store (store/meter.py)

After a supervisor was killed, the next one goes on from here: it does not begin a job again that
has ended, and does not count its time from the start.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, json
from msgspec.structs import replace as replace_fields

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, NoAccess
from tradewind.base.ownfiles import replace
from tradewind.model.boot import Boot

FINAL = ("stopped", "failed", "finished")
MOST_DEATHS = 5
"""A job that kills its supervisor each time, by taking all memory, would be begun for ever."""


class State(Struct, frozen=True):
    """Of `Me` and of the job: what neither the journal nor the store tells again."""

    beat: int = 0
    doing: str = "setup"
    reason: str = ""
    failures: int = 0
    failed_at: float = -1.0
    exit_code: int | None = None
    trouble: str = ""
    tail: str = ""
    step: float = 0.0
    saved: float = 0.0
    killed_at: float = -1.0
    deaths: int = 0
    """Supervisors in a row that died while the job ran, with nothing saved in between."""
    died_at: float = -1.0
    """What was saved at the last of them."""

    @property
    def final(self) -> bool:
        return self.doing in FINAL

    def succeeded(self) -> State:
        """As the next supervisor finds it: whoever does not end by a decision was killed."""
        if self.doing not in ("working", "saving"):
            return self
        deaths = 1 if self.saved > self.died_at else self.deaths + 1
        counted = replace_fields(self, deaths=deaths, died_at=self.saved)
        if deaths < MOST_DEATHS:
            return counted
        return replace_fields(
            counted,
            doing="failed",
            reason=f"{deaths} supervisors in a row were killed while the job ran, and nothing was"
            " saved in between: the machine may have too little memory for it",
            exit_code=-9,
            trouble="infrastructure",
        )


class _Up(Struct, frozen=True):
    boot_id: str
    since_s: float
    """By the monotonic clock, of the boot that `boot_id` names."""
    at_s: float
    """By the wall clock: should the machine have been booted again since."""


class MachineFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.work = self.path / "work"
        self.bundle = self.path / "bundle.tar.gz"
        self.spool = self.path / "spool.log"
        self.progress = self.path / "progress.json"
        self.metrics = self.path / "metrics.jsonl"
        self.serving = self.path / "serving.json"
        self.save = self.path / "save"
        self.cadence = self.path / "cadence.json"
        self.telemetry = self.path / "telemetry"
        self.used = self.path / "used"
        self.compiled = self.path / "compiled"
        self.setup_done = self.path / "setup.done"
        self.outputs_back = self.path / "outputs.back"
        self._lock: int | None = None

    def lock(self) -> None:
        """Until this process ends, however it does."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise NoAccess(f"another supervisor is at work in {self.path}") from None
        self._lock = handle

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def new_compiled(self) -> Path:
        """For a try of the job, and nobody before it: a process that was killed while it compiled
        leaves half a library behind, and whoever finds that in a cache loads it. Those of earlier
        tries go: their processes are dead."""
        number = 1
        with suppress(OSError):
            names = [each.name for each in self.compiled.iterdir()]
            number = 1 + max((int(each) for each in names if each.isdecimal()), default=0)
            shutil.rmtree(self.compiled, ignore_errors=True)
        return self.compiled / str(number)

    def state(self) -> State:
        try:
            return json.decode((self.path / "state.json").read_bytes(), type=State)
        except FileNotFoundError:
            return State()
        except UNREADABLE:
            return State()  # it is replaced whole: a disk has lost it, and we begin again

    def keep(self, state: State) -> None:
        replace(self.path / "state.json", json.encode(state))

    def up_since_s(self, boot: Boot) -> float:
        if boot.up_since_s is not None:
            return boot.up_since_s
        path = self.path / "up.json"
        now_s, wall_s = clock.monotonic(), clock.now().timestamp()
        boot_id = ""
        with suppress(OSError):
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        with suppress(OSError, *UNREADABLE):
            up = json.decode(path.read_bytes(), type=_Up)
            return up.since_s if up.boot_id == boot_id else now_s - max(wall_s - up.at_s, 0.0)
        replace(path, json.encode(_Up(boot_id, now_s, wall_s)))
        return now_s


def read_boot(path: Path) -> Boot:
    try:
        return json.decode(path.read_bytes(), type=Boot)
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror}") from None
    except UNREADABLE as error:
        raise BadFile(f"{path} is not what a machine is given at its launch: {error}") from None
