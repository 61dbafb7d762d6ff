"""Everything that exists in the equipment, and what may happen to a machine: launch, notice, end.

One lock guards all of it, moto's state too. Moto's own objects carry what the API tells; a Machine
here carries what is true, which with a lag is not the same.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.ec2.clock import Agenda, Clock, gmt
from tests.ec2.dials import Dials
from tests.ec2.market import Market
from tests.ec2.quotas import Quotas
from tests.ec2.s3 import Books

if TYPE_CHECKING:
    from tests.ec2.bodies import Bodies

NOTICE_S = 120.0
STOP_S = 20.0
"""What processes have to end after a SIGTERM, when EC2 is told to end their machine."""
_LOOK_S = 0.1

_SAID = {
    "user": ("Client.UserInitiatedShutdown", "User initiated shutdown"),
    "inside": ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"),
    "spot": ("Server.SpotInstanceTermination", "Spot instance termination"),
}


@dataclass
class Machine:
    id: str
    region: str
    zones: tuple[str, str]
    """Its zone's name and id."""
    kind: str
    market: str
    vcpus: int
    launched: float
    listed_from: float
    told: Any
    """Moto's instance."""
    request: Any = None
    """Moto's spot request."""
    number: int = 0
    address: str = ""
    public: bool = False
    """It has an address in the world, too."""
    ended: float | None = None
    ended_by: str = ""
    dead: bool = False
    """And nothing in it lives any more."""
    taken_at: float | None = None
    rebalance_at: float | None = None


@dataclass
class Thing:
    """A volume, network interface or placement group."""

    id: str
    sort: str
    region: str
    made: float
    gone: float | None = None
    gb: int = 0
    machine: str = ""


@dataclass
class World:
    bodies: Bodies
    clock: Clock = field(default_factory=Clock)
    agenda: Agenda = field(default_factory=Agenda)
    dials: Dials = field(default_factory=Dials)
    market: Market = field(default_factory=Market)
    quotas: Quotas = field(default_factory=Quotas)
    machines: dict[str, Machine] = field(default_factory=dict)
    things: dict[str, Thing] = field(default_factory=dict)
    groups: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    reservations: list[dict[str, Any]] = field(default_factory=list)
    profiles: dict[str, float] = field(default_factory=dict)
    """When each instance profile got its role."""
    s3: Books | None = None
    """Of the door before the S3 server, where there is one."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    asked: dict[str, str] = field(default_factory=dict)
    """The form of the request that is being answered."""
    ending_at: float | None = None

    def now(self) -> float:
        return self.clock.now()

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

    def room(self, zones: tuple[str, str], kind: str, market: str) -> int:
        most = self.dials.limit(zones, kind, market)
        if market == "spot":
            most = min(most, self.market.room(zones))
        return most - len(self.alive(zones=zones, kind=kind, market=market))

    # -- a machine's life --------------------------------------------------------------------------

    def begin(self, machine: Machine) -> None:
        self.machines[machine.id] = machine
        _state(machine, "pending", 0)
        self.agenda.at(self.now() + self.dials.pending_s, partial(self._run, machine))

    def _run(self, machine: Machine) -> None:
        if machine.ended is None:
            _state(machine, "running", 16)
            self.bodies.start(machine)

    def notice(self, machine: Machine, notice_s: float) -> None:
        """It will be taken, and is told so."""
        if machine.ended is not None or machine.taken_at is not None:
            return
        now = self.now()
        machine.taken_at, machine.rebalance_at = now + notice_s, machine.rebalance_at or now
        if machine.request is not None:
            machine.request.say("active", "marked-for-termination", now)
        self.agenda.at(machine.taken_at, partial(self.end, machine, "spot"))

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
        if machine.request is not None:
            code = "instance-terminated-no-capacity" if by == "spot" else ""
            machine.request.say("closed", code or "instance-terminated-by-user", now)
        stays = by == "inside" and machine.told.instance_initiated_shutdown_behavior == "stop"
        show = partial(self._show_end, machine, "stopped" if stays else "terminated")
        if self.dials.lag_s > 0:
            self.agenda.at(now + self.dials.lag_s, show)
        else:
            show()

    def stop(self, machine: Machine) -> None:
        """By the API. Nothing starts it again: it has ended, and keeps its volumes."""
        if machine.ended is None:
            machine.ended, machine.ended_by = self.now(), "stopped"
            self._kill(machine)

    def _wait_for_death(self, machine: Machine, until: float) -> None:
        if self.now() < until and self.bodies.alive(machine.id):
            again = partial(self._wait_for_death, machine, until)
            self.agenda.at(self.now() + _LOOK_S, again)
        else:
            self._kill(machine)

    def _kill(self, machine: Machine) -> None:
        self.bodies.kill(machine)
        machine.dead = True

    def _show_end(self, machine: Machine, state: str) -> None:
        from moto.ec2.models.instances import StateReason

        assert machine.ended is not None
        told = machine.told
        self.ending_at = machine.ended
        try:
            (told.stop if state == "stopped" else told.moto_terminate)()
        finally:
            self.ending_at = None
        by = machine.ended_by
        code, words = _SAID.get(by, _SAID["user"])
        told._reason = {
            "user": f"User initiated ({gmt(machine.ended)})",
            "inside": "",  # no time: whoever wants one must have another way
            "spot": code,
        }[by if by in _SAID else "user"]
        told.state_reason = StateReason(f"{code}: {words}", code)
        passing, final = {
            "stopped": (("stopping", 64), ("stopped", 80)),
            "terminated": (("shutting-down", 32), ("terminated", 48)),
        }[state]
        _state(machine, *passing)
        done = partial(self._show_death, machine, *final)
        self.agenda.at(self.now() + self.dials.shutting_down_s, done)

    def _show_death(self, machine: Machine, name: str, code: int) -> None:
        if machine.dead:
            _state(machine, name, code)
        else:
            again = partial(self._show_death, machine, name, code)
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
                self.notice(machine, NOTICE_S / speed)


def _state(machine: Machine, name: str, code: int) -> None:
    machine.told._state.name, machine.told._state.code = name, code
