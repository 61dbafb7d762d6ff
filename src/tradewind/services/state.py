"""What is known of a service from its journal alone. Commits are named by number: how long ago one
was is for each observer to say."""

from __future__ import annotations

from copy import copy

from msgspec import Struct

from tradewind.model.service import ServiceSpec


class Replica(Struct, frozen=True):
    """One that is ordered and not gone."""

    number: int
    run_id: str
    market: str
    tries: int
    at: int
    """The commit that ordered it."""
    ready_at: int = 0
    leaving_at: int = 0
    lost: bool = False
    place: str = ""

    @property
    def name(self) -> str:
        """For people, and for the front."""
        return f"r{self.number}"


class FrontMachine(Struct, frozen=True):
    """A rented front that is ordered and not gone."""

    number: int
    run_id: str
    at: int
    ready_at: int = 0
    leaving_at: int = 0
    host: str = ""
    public: str = ""

    @property
    def name(self) -> str:
        return f"f{self.number}"


class ServiceState(Struct):
    number: int = 0
    """Of the last commit."""
    service_id: str = ""
    spec: ServiceSpec | None = None
    phase: str = ""
    """up, stopping, ended (the front is taken down), closed"""
    replicas: dict[str, Replica] = {}
    """By run id."""
    every: dict[str, int] = {}
    """Number of each replica that ever was, by run id."""
    fronts: dict[str, FrontMachine] = {}
    """By run id; those that are rented."""
    every_front: dict[str, int] = {}
    front_failures: int = 0
    """In a row, since one was ready."""
    front_failed_at: int = 0
    front_ever: bool = False
    """One was ready once."""
    wanted: int = 0
    wanted_at: int = 0
    fewest: int = 0
    most: int = 1
    rule: tuple[int, float, int, float] | None = None
    """Window, growth, hold, fill; None: the first one still."""
    rule_at: int = 0
    spot_gone: dict[str, int] = {}
    """The commit that said last that there is none, by place."""
    spot_lost: dict[str, int] = {}
    """And the one that said last that one was taken there."""
    taken: tuple[int, ...] = ()
    """Commits that tell of spot replicas that were lost: one for all of a place."""
    cold: tuple[float, ...] = ()
    """Seconds from order to ready, of the last replicas."""
    ever_ready: bool = False
    failures: int = 0
    """Of engines in a row, since one was ready."""
    failed_at: int = 0
    stop_at: int = 0
    outcome: str = ""
    reason: str = ""
    tail: str = ""

    def copy(self) -> ServiceState:
        new = copy(self)
        new.replicas, new.every = self.replicas.copy(), self.every.copy()
        new.spot_gone, new.spot_lost = self.spot_gone.copy(), self.spot_lost.copy()
        new.fronts, new.every_front = self.fronts.copy(), self.every_front.copy()
        return new

    @property
    def staying_fronts(self) -> list[FrontMachine]:
        return [each for each in self.fronts.values() if not each.leaving_at]

    @property
    def staying(self) -> list[Replica]:
        return [each for each in self.replicas.values() if not each.leaving_at]
