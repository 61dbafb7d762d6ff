"""Everything that exists in the equipment, and what may happen to a machine: launch, notice, end.

One lock guards all of it, a face's own records too. Those carry what the API tells; a Machine here
carries what is true, which with a lag is not the same. `state` is in between: what the API shows of
the machine, in words of ours (STATES).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cloud.clock import Agenda, Clock
from tests.cloud.dials import PLENTY, Dials
from tests.cloud.market import Market
from tests.cloud.quotas import Quotas
from tests.cloud.s3 import Books

if TYPE_CHECKING:
    from tests.cloud.bodies import Bodies
    from tests.cloud.face import Face

STATES = ("pending", "running", "stopping", "stopped", "ending", "ended")
STOP_S = 20.0
"""What processes have to end after a SIGTERM, when the API is told to end their machine."""
_LOOK_S = 0.1


@dataclass
class Machine:
    id: str
    region: str
    zones: tuple[str, ...]
    """All names of its zone; prices are by the first."""
    kind: str
    market: str
    launched: float
    listed_from: float
    user_data: bytes = b""
    """What it runs first."""
    record: Any = None
    """The face's own."""
    name: str = ""
    """What its owner calls it, where that is not its id."""
    reserved: bool = False
    """It is of a reservation, and has the price of its commitment (`KIND@reserved`, market.py)."""
    share: float = 1.0
    """Its part of a price that is for several machines together."""
    address: str = ""
    hostname: str = ""
    public: bool = False
    """It has an address in the world, too."""
    state: str = ""
    running_at: float | None = None
    ended: float | None = None
    ended_by: str = ""
    """user, inside, spot, or stopped."""
    dead: bool = False
    """And nothing in it lives any more."""
    taken_at: float | None = None
    warned_at: float | None = None
    """It was told that it may be taken, which is less than a notice."""


@dataclass
class Thing:
    """What exists besides machines, and may cost something: a volume, a network interface."""

    id: str
    sort: str
    region: str
    made: float
    gone: float | None = None
    gb: int = 0
    machine: str = ""
    kind: str = ""
    """Of a volume, where there are several (market.py)."""
    more_usd_month: float = 0.0
    """For what it is besides large."""


@dataclass
class World:
    bodies: Bodies
    face: Face
    folder: Path | None = None
    """For what a face keeps on disk."""
    clock: Clock = field(default_factory=Clock)
    agenda: Agenda = field(default_factory=Agenda)
    machines: dict[str, Machine] = field(default_factory=dict)
    things: dict[str, Thing] = field(default_factory=dict)
    s3: Books | None = None
    """Of the door before the S3 server, where there is one."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.dials: Dials = self.face.dials()
        self.market = Market(self.face.size)
        self.quotas = Quotas(self.face.quotas)
        self.bodies.world = self
        self.face.opened(self)

    def now(self) -> float:
        """In whole milliseconds, as it is told to others too."""
        return round(self.clock.now(), 3)

    def settle(self) -> None:
        with self.lock:
            self.agenda.settle(self.now())

    # -- how much there is -------------------------------------------------------------------------

    def alive(self, **like: Any) -> list[Machine]:
        return [
            each
            for each in self.machines.values()
            if each.ended is None and all(getattr(each, k) == v for k, v in like.items())
        ]

    def listed(self) -> list[Machine]:
        """Those that listings know by now."""
        return [each for each in self.machines.values() if each.listed_from <= self.now()]

    def room(self, zones: tuple[str, ...], kind: str, market: str) -> int:
        most = self.dials.limit(zones, kind, market)
        if market == "spot":
            most = min(most, self.market.room(zones))
        return most - len(self.alive(zones=zones, kind=kind, market=market))

    def allowed(self, region: str, kind: str, market: str) -> int:
        """How many more the account's quotas allow."""
        code, each = self.face.counts(kind, market)
        if not code:
            return PLENTY
        here = self.alive(region=region) if self.face.quotas_by_region else self.alive()
        taken = [self.face.counts(machine.kind, machine.market) for machine in here]
        used = sum(much for of, much in taken if of == code)
        return int((self.quotas.value(region, code) - used) // each)

    # -- a machine's life --------------------------------------------------------------------------

    def begin(self, machine: Machine) -> None:
        self.machines[machine.id] = machine
        self._show(machine, "pending")
        self.agenda.at(self.now() + self.dials.pending_s, partial(self._run, machine))

    def _run(self, machine: Machine) -> None:
        if machine.ended is None:
            machine.running_at = self.now()
            self._show(machine, "running")
            self.bodies.start(machine)

    def notice(self, machine: Machine, notice_s: float) -> None:
        """It will be taken, and is told so."""
        if machine.ended is not None or machine.taken_at is not None:
            return
        now = self.now()
        machine.taken_at, machine.warned_at = now + notice_s, machine.warned_at or now
        self.face.noticed(machine)
        self.agenda.at(machine.taken_at, partial(self.end, machine, "spot"))

    def shut_down(self, machine: Machine) -> None:
        """From inside."""
        if self.face.after_shutdown(machine) == "billed":
            self.bodies.kill(machine)
        else:
            self.end(machine, "inside")

    def end(self, machine: Machine, by: str) -> None:
        """At once; whoever asks learns of it after the lag. Nobody pays for what its processes do
        when they are asked to end, as they are where the user has ended it."""
        if machine.ended is not None:
            return
        now = self.now()
        machine.ended, machine.ended_by = now, by
        if by == "user":
            self.bodies.ask_to_end(machine)
            self._wait_for_death(machine, now + STOP_S / self.dials.speed)
        else:
            self._kill(machine)
        self.face.ended(machine)
        stays = by == "inside" and self.face.after_shutdown(machine) == "stopped"
        states = ("stopping", "stopped") if stays else ("ending", "ended")
        show = partial(self._show_end, machine, *states)
        if self.dials.lag_s > 0:
            self.agenda.at(now + self.dials.lag_s, show)
        else:
            show()

    def stop(self, machine: Machine) -> None:
        """By the API. Nothing starts it again: it has ended, and keeps its volumes."""
        if machine.ended is None:
            machine.ended, machine.ended_by = self.now(), "stopped"
            self._kill(machine)
            self._show(machine, "stopped")

    def discard(self, machine: Machine) -> None:
        """One that was stopped."""
        self._show(machine, "ended")

    def _wait_for_death(self, machine: Machine, until: float) -> None:
        if self.now() < until and self.bodies.alive(machine.id):
            again = partial(self._wait_for_death, machine, until)
            self.agenda.at(self.now() + _LOOK_S, again)
        else:
            self._kill(machine)

    def _kill(self, machine: Machine) -> None:
        self.bodies.kill(machine)
        machine.dead = True

    def _show(self, machine: Machine, state: str) -> None:
        assert state in STATES
        machine.state = state
        self.face.shown(machine)

    def _show_end(self, machine: Machine, passing: str, final: str) -> None:
        self._show(machine, passing)
        done = partial(self._show_death, machine, final)
        self.agenda.at(self.now() + self.dials.shutting_down_s, done)

    def _show_death(self, machine: Machine, state: str) -> None:
        if machine.dead:
            self._show(machine, state)
        else:
            again = partial(self._show_death, machine, state)
            self.agenda.at(self.now() + _LOOK_S, again)

    def at_address(self, address: str) -> str:
        """The machine that has it; "" for whoever is none, the user's computer among them."""
        there = [each.id for each in self.machines.values() if each.address == address]
        return there[-1] if there else ""

    # -- zones over time ---------------------------------------------------------------------------

    def follow(self, zone: str, trace: list[tuple[float, int]], speed: float) -> None:
        start = self.now()
        for after_s, available in trace:
            act = partial(self._available, zone, int(available), speed)
            self.agenda.at(start + after_s / speed, act)
        self.settle()

    def _available(self, zone: str, available: int, speed: float) -> None:
        self.market.available[zone] = available
        there = [each for each in self.alive(market="spot") if zone in each.zones]
        for kind in sorted({each.kind for each in there}):
            same = [each for each in there if each.kind == kind and each.taken_at is None]
            for machine in same[available:]:
                self.notice(machine, self.face.notice_s / speed)
