"""Machines on this computer, for whoever owns the home folder.

A purchase is a file: written whole, it buys all its machines or none, and the launch id is its
name, so it is made once, whoever asks and however often. What must follow (folders, hosts) follows
from the file alone. `launch` does it, and if that was cut off, `list_machines`, by anyone, goes on
with it; as it does with what follows from a host's death. files.py says who may write what.

Safe from several threads and processes. Times are this computer's, which hosts read as well: a
`clock` that is far from it serves tests only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from tradewind.base import clock as clocks
from tradewind.base import ownfiles
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.boot import Boot
from tradewind.model.finding import Finding
from tradewind.model.run import TAKEN, Facts, Listing, Machine, Request
from tradewind.providers.base import Leftover, OutcomeUnknown, Refused
from tradewind.providers.local import leftovers, processes
from tradewind.providers.local.files import (
    INTERRUPTED,
    SPENT,
    STOP_S,
    TERMINATED,
    End,
    Host,
    MachineFolder,
    Notice,
    Purchase,
    Rental,
    check_name,
    is_name,
    locked,
    read,
    secrets_of,
    write,
)
from tradewind.providers.local.interruptions import Interruptions

FACTS = Facts(
    boot_timeout_s=60,
    notice_s=30,
    billing_step_s=1,
    billing_lead_s=1,
    tokens=True,
    listing_lag_s=0,
)
MOST_NODES = 16
"""Machines of one leg: this computer has one set of processors for all of them."""
LISTED_S = 3600
"""An ended machine is listed for so long, and then forgotten with its folder."""
_MARGIN_S = 1.0
_PAUSE_S = 0.02
_PREFIX = "local-"


def wall() -> float:
    return clocks.now().timestamp()


class LocalProvider:
    def __init__(
        self,
        home: Path,
        store_url: str,
        *,
        clock: Callable[[], float] = wall,
        command: Sequence[str] = (sys.executable, "-P", "-m", "tradewind.supervisor"),
        interruptions: Interruptions | None = None,
        own_only: bool = False,
        job_of: Callable[[str], str | None] | None = None,
    ) -> None:
        """`command` starts a supervisor; the path of its boot.json is appended. `own_only`: only
        machines of runs in this store are listed. Those of other stores live in the same home, and
        a controller of this one would find no journal that claims them. `job_of` gives the hash of
        the job that a run may start here, and None for one that may start nothing here."""
        processes.need_linux()
        self._home = home.resolve()
        root = self._home / "local"
        self._tokens, self._launches = root / "tokens", root / "launches"
        self._machines = root / "machines"
        self._store_url, self._clock = store_url, clock
        self._command, self._interruptions = tuple(command), interruptions
        self._own = _whose(store_url) if own_only else None
        self._job_of = job_of
        self._asked: dict[str, bool] = {}

    def list_machines(self) -> Listing:
        machines: list[Machine] = []
        for path in sorted(self._launches.glob("*.json")):
            launch_id = path.name.removesuffix(".json")
            if self._own is None or self._is_own(launch_id):
                machines += self._listed(launch_id)
        return Listing(at_s=int(self._clock()), machines=tuple(machines))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        launch_id = check_name(request.launch_id)
        job_sha256 = self._allowed(request)
        with self._token(launch_id) as token:
            assert token is not None
            if _spent(token):
                # Of the kinds, the one that says nothing about what can be had: ask anew.
                raise Refused("throttled", f"{launch_id} was launched, and ended long ago")
            purchase = self._purchase(launch_id)
            if purchase is None:
                purchase = self._bought(request, after, key, job_sha256)
                write(self._launches / f"{launch_id}.json", purchase)
            self._start(r for r in purchase.rentals if not self._folder(r).host.exists())
            return [self._seen(rental) for rental in purchase.rentals]

    def terminate(self, machine_ids: Sequence[str]) -> None:
        by_launch: dict[str, set[str]] = {}
        for name in machine_ids:
            by_launch.setdefault(_launch_id(name), set()).add(name)
        for launch_id, names in by_launch.items():
            # Without a token for what was never bought.
            if self._purchase(launch_id) is None:
                continue
            if self._own is not None and not self._is_own(launch_id):
                continue  # of another store, whose journals alone may end it
            with self._token(launch_id):
                ending = [r for r in self._rentals(launch_id) if r.machine.machine_id in names]
                self._let_go(ending)
                for rental in ending:
                    self._end(rental, TERMINATED)

    def interrupt(self, machine_ids: Sequence[str], notice_s: float) -> None:
        """Takes these machines after so long, as a cloud takes spot machines: all of them have
        notice at once. Earlier announcements hold where they are for earlier. NotFound: there is no
        such machine, and none was touched; one that has ended does not mind."""
        if not 0 <= notice_s < float("inf"):
            raise InvalidValue(f"{notice_s} s is not a valid notice")
        for name in machine_ids:
            if not any(r.machine.machine_id == name for r in self._rentals(_launch_id(name))):
                raise NotFound(f"there is no machine {name}")
        taken_at_s = self._clock() + notice_s
        for name in machine_ids:
            with self._token(_launch_id(name)):
                for rental in self._rentals(_launch_id(name)):
                    folder = self._folder(rental)
                    if rental.machine.machine_id != name or folder.end():
                        continue
                    given = read(folder.notice, Notice)
                    if given is None or given.taken_at_s > taken_at_s:
                        write(folder.notice, Notice(taken_at_s=taken_at_s))

    def _allowed(self, request: Request) -> str:
        """The hash of the job that this run may start here; empty: of any."""
        if request.way.nodes > MOST_NODES:
            raise Refused(
                "not_allowed",
                f"{request.way.nodes} machines are too many for this computer, which takes up to"
                f" {MOST_NODES}",
            )
        found = "" if self._job_of is None else self._job_of(request.run_id)
        if found is None:
            raise Refused(
                "not_allowed",
                f"{request.run_id} was not submitted from this computer",
                hint="it runs where it was submitted: `tradewind watch` there",
            )
        return found

    def _bought(self, request: Request, after: int, key: str, job_sha256: str) -> Purchase:
        """Refused: it cannot be had now."""
        way = request.way
        names = [f"{_PREFIX}{request.launch_id}-{rank}" for rank in range(way.nodes)]
        now = self._clock()
        taken: Sequence[float | None] = (None,) * way.nodes
        notice_s, from_work_s = float(FACTS.notice_s), 0.0
        if self._interruptions and (
            way.market == "spot" or self._interruptions.takes_all(request.run_id)
        ):
            taken = self._interruptions.lives(way.zone, names, now)
            notice_s = self._interruptions.notice_s
            from_work_s = self._interruptions.from_work_s
        return Purchase(
            rentals=tuple(
                Rental(
                    machine=Machine(
                        machine_id=name,
                        launch_id=request.launch_id,
                        run_id=request.run_id,
                        leg=request.leg,
                        rank=rank,
                        launched_s=int(now),
                    ),
                    boot=Boot(
                        store_url=self._store_url,
                        run_id=request.run_id,
                        leg=request.leg,
                        rank=rank,
                        nodes=way.nodes,
                        machine_id=name,
                        launch_id=request.launch_id,
                        hard_stop_s=request.hard_stop_s,
                        after=after,
                        relieves=request.relieves,
                        waits=request.waits,
                        notice=str(MachineFolder(self._machines / name).notice),
                        secrets=str(secrets_of(self._home, request.run_id)),
                        python=sys.executable,
                        key=key,
                        job_sha256=job_sha256,
                        up_since_s=clocks.monotonic(),
                    ),
                    market=way.market,
                    price=way.price,
                    command=self._command,
                    taken_at_s=taken_at_s,
                    notice_s=notice_s,
                    from_work_s=from_work_s,
                )
                for rank, (name, taken_at_s) in enumerate(zip(names, taken, strict=True))
            )
        )

    # Upkeep: leftovers.py says what is what.

    def checks(self) -> Sequence[Finding]:
        return leftovers.checks(self._launches.parent)

    def leftovers(self) -> Sequence[Leftover]:
        for path in sorted(self._launches.glob("*.json")):
            # Machines of a store that nobody looks at any more are forgotten by this alone.
            self._listed(path.name.removesuffix(".json"))
        return leftovers.found(self._launches.parent, self._clock())

    def remove(self, leftover: Leftover) -> bool:
        name = leftover.name
        launch_id = name if leftover.kind == "token" else _launch_id(name)
        if not is_name(launch_id):
            return False
        with self._token(launch_id, wait=False) as token:
            return token is not None and leftovers.remove(self._launches.parent, leftover, token)

    # What follows from a purchase. All of it by the holder of its token.

    def _start(self, rentals: Iterable[Rental]) -> None:
        """A host for each. One that is on its way already, for someone who died, is let alone: the
        two settle it by their lock."""
        starting, trouble = [], ""
        for rental in rentals:
            folder = self._folder(rental)
            if not folder.ended.exists():
                write(folder.boot, rental.boot)
                write(folder.machine, rental)
                try:
                    starting.append((rental, _spawn(folder)))
                except OSError as error:
                    trouble = f"{rental.machine.machine_id} could not be started: {error}"
        for rental, host in starting:
            # A machine that is over at once may kill even who waits for it to start.
            if host.wait() != 0 and not self._folder(rental).host.exists():
                self._end(rental, f"its host did not start; see {self._folder(rental).log}")
        if trouble:
            raise OutcomeUnknown(trouble, hint="it will be tried again")

    def _let_go(self, rentals: Sequence[Rental]) -> None:
        """Asks the hosts that live to end their machines, and waits a while for it: a supervisor
        that is killed at once cannot send the end of the job's log."""
        until = clocks.stopwatch() + STOP_S + _MARGIN_S
        waiting = []
        for rental in rentals:
            folder = self._folder(rental)
            if folder.host.exists() and not folder.ended.exists() and folder.has_living_host():
                folder.ending.touch()
                waiting.append(folder)
        while clocks.stopwatch() < until and any(
            not folder.ended.exists() and folder.has_living_host() for folder in waiting
        ):
            clocks.sleep(_PAUSE_S)

    def _end(self, rental: Rental, why: str) -> None:
        """Kills all of it, then says so. In this order: cut off in between, there is a dead host,
        which the next to list will find; a living machine that is said to have ended none would."""
        folder = self._folder(rental)
        if folder.ended.exists():
            processes.kill_all(folder.path)  # its host has said so, and is about to leave
            return
        while True:
            host = read(folder.host, Host)
            processes.kill_with_host(folder.path, host.pid if host else 0)
            # With this lock held no host can start; the one that is starting right now is killed.
            with locked(folder.lock, wait=False) as lock:
                if lock is not None:
                    processes.kill_all(folder.path)
                    folder.sweep()
                    # A host that saw us kill its supervisor may have had the time to say so.
                    said = folder.end()
                    ended_s = said.ended_s if said else int(self._clock())
                    ended_s = max(ended_s, rental.machine.launched_s)
                    write(folder.ended, End(ended_s=ended_s, why=why))
                    return

    def _tend(self, launch_id: str, token: BinaryIO) -> list[Machine]:
        rentals = self._rentals(launch_id)
        if _spent(token) or self._long_over(rentals):
            self._forget(launch_id, rentals, token)
            return []
        for rental in rentals:
            folder = self._folder(rental)
            if folder.host.exists() and not folder.has_living_host():
                with suppress(OutcomeUnknown):  # it lives on, and is listed so
                    self._end(rental, "its host died")
        with suppress(OutcomeUnknown):
            self._start(r for r in rentals if not self._folder(r).host.exists())
        return [self._seen(rental) for rental in rentals]

    def _forget(self, launch_id: str, rentals: Sequence[Rental], token: BinaryIO) -> None:
        # The token first: from a purchase without folders its machines would be started again.
        token.truncate(0)
        token.write(SPENT)
        token.flush()
        os.fsync(token.fileno())
        for rental in rentals:
            shutil.rmtree(self._folder(rental).path, ignore_errors=True)
        (self._launches / f"{launch_id}.json").unlink(missing_ok=True)

    # What is seen of it, by anyone.

    def _listed(self, launch_id: str) -> list[Machine]:
        rentals = self._rentals(launch_id)
        if self._long_over(rentals) or not all(self._settled(r) for r in rentals):
            with self._token(launch_id, wait=False) as token:
                if token is not None:
                    return self._tend(launch_id, token)
                # Whoever holds it does what is to be done.
        return [self._seen(rental) for rental in rentals]

    def _is_own(self, launch_id: str) -> bool:
        """A purchase never changes, and there is a look every second. One that has just been
        forgotten is nobody's."""
        if launch_id not in self._asked:
            rentals = self._rentals(launch_id)
            self._asked[launch_id] = any(_whose(r.boot.store_url) == self._own for r in rentals)
        return self._asked[launch_id]

    def _seen(self, rental: Rental) -> Machine:
        folder = self._folder(rental)
        end = folder.end()
        # A host that has written it is still there for a moment.
        if end is None or folder.has_living_host():
            return rental.machine
        if rental.market != "spot" and end.why == INTERRUPTED:  # which nobody expects of it
            return replace(rental.machine, ended_s=end.ended_s, ended_by=TAKEN, ended_why=end.why)
        return replace(rental.machine, ended_s=end.ended_s)

    def _settled(self, rental: Rental) -> bool:
        folder = self._folder(rental)
        if folder.ended.exists():
            return True
        return folder.host.exists() and folder.has_living_host()

    def _long_over(self, rentals: Sequence[Rental]) -> bool:
        ends = [self._folder(rental).end() for rental in rentals]
        return all(end and self._clock() - end.ended_s >= LISTED_S for end in ends)

    def _rentals(self, launch_id: str) -> tuple[Rental, ...]:
        purchase = self._purchase(launch_id)
        return purchase.rentals if purchase else ()

    def _purchase(self, launch_id: str) -> Purchase | None:
        if not is_name(launch_id):
            return None
        return read(self._launches / f"{launch_id}.json", Purchase)

    def _folder(self, rental: Rental) -> MachineFolder:
        return MachineFolder(self._machines / rental.machine.machine_id)

    def _token(
        self, launch_id: str, *, wait: bool = True
    ) -> AbstractContextManager[BinaryIO | None]:
        return locked(self._tokens / launch_id, wait=wait)


def _spawn(folder: MachineFolder) -> subprocess.Popen[bytes]:
    with ownfiles.append(folder.log) as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tradewind.providers.local.host", folder.path],
            env=processes.marked(os.environ, folder.path),
            cwd=folder.path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


@lru_cache
def _whose(store_url: str) -> str:
    """A store's URL, the same for each name that leads to one folder."""
    if not store_url.startswith("file://"):
        return store_url
    return str(Path(unquote(urlsplit(store_url).path)).resolve())


def _spent(token: BinaryIO) -> bool:
    token.seek(0)
    return token.read() == SPENT


def _launch_id(machine_id: str) -> str:
    """What is no id of ours names no purchase either."""
    return machine_id.removeprefix(_PREFIX).rpartition("-")[0]
