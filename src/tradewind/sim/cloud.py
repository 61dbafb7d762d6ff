"""A cloud that sells machines, charges for every second, and does not always tell the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Protocol
from zlib import crc32

from msgspec.structs import replace

from tradewind.base.errors import SourceFailed
from tradewind.model.run import TAKEN, Facts, Listing, Machine, Queued, Request, Way
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.sim.scenario import Place, Scenario
from tradewind.sim.world import START_S, World

TAKEN_WORDS = "taken by the provider"
REFUSALS = ("no_capacity", "no_capacity", "throttled", "no_quota")


class Books(Protocol):
    """Who writes down what is asked for and what is sold: the referee."""

    def buys(self, request: Request) -> None: ...

    def sells(self, request: Request) -> None: ...


class Host(Protocol):
    """What runs on a machine."""

    def off(self) -> None: ...


class Rental:
    """The cloud's own record of a machine: what it charges for, and what it says."""

    __slots__ = (
        "claimed_dead", "ended", "ending", "host", "listed_from", "machine", "request",
        "said_ended", "way",
    )  # fmt: skip

    def __init__(self, machine: Machine, request: Request, listed_from: int) -> None:
        self.machine = machine  # as it is really
        self.request = request
        self.way = request.way
        self.ended: int | None = None  # the world's time
        self.ending = False  # it was terminated, which may take a while
        self.listed_from = listed_from
        self.said_ended = 0  # from when on listings show the end
        self.claimed_dead: tuple[int, int, Machine | None] | None = None
        """From when to when it is shown as ended, or not at all, though it lives."""
        self.host: Host | None = None

    def hidden_s(self, since: int, until: int) -> int:
        """For how long of that time listings did not show it at all, though it was paid for."""
        if self.claimed_dead is None or self.claimed_dead[2] is not None:
            return 0
        begun, over, _ = self.claimed_dead
        return max(min(over, until) - max(begun, since), 0)


class Ticket:
    """A purchase in the cloud's queue."""

    __slots__ = (
        "buyer", "listed_from", "never", "refused_at", "request", "since", "starts_at", "withdrawn",
    )  # fmt: skip

    def __init__(
        self,
        request: Request,
        since: int,
        starts_at: int,
        listed_from: int,
        buyer: tuple[int, str],
    ) -> None:
        self.since = since
        self.request, self.starts_at, self.listed_from = request, starts_at, listed_from
        self.buyer = buyer
        self.withdrawn = False
        self.refused_at: float = inf  # from when on listings say that it will never begin
        self.never = False  # and whether that is true


class SimCloud:
    def __init__(
        self,
        world: World,
        scenario: Scenario,
        place: Place,
        books: Books,
        boot: Callable[[Rental, Request, int, str], None],
    ) -> None:
        self._world, self._scenario, self._place = world, scenario, place
        self._books, self._boot = books, boot
        self.rentals: dict[str, Rental] = {}
        self.tickets: dict[str, Ticket] = {}
        self._by_token: dict[str, list[Machine]] = {}
        self.facts: Facts = place.facts
        self.skew_s = place.skew_s
        self._out = tuple(START_S + at for at in place.outage)
        self.out_s = place.outage[1] - place.outage[0]

    @property
    def clock(self) -> int:
        return self._world.now + self.skew_s

    def _answers(self) -> None:
        if self._out[0] <= self._world.now < self._out[1]:
            self._world.fault("cloud does not answer")
            raise SourceFailed("the cloud does not answer (sim)")

    def prices(self, ways: Sequence[Way]) -> dict[str, int]:
        """Its prices never change."""
        return {}

    def list_machines(self) -> Listing:
        self._answers()
        now = self._world.now
        shown = []
        for rental in self.rentals.values():
            if rental.listed_from > now:
                continue
            lie = rental.claimed_dead
            if rental.ended is not None and rental.said_ended <= now:
                shown.append(rental.machine)
            elif lie and lie[0] <= now < lie[1]:
                if lie[2] is not None:
                    shown.append(lie[2])
            elif rental.ended is not None:
                shown.append(replace(rental.machine, ended_s=None))
            else:
                shown.append(rental.machine)
        waiting = tuple(
            Queued(
                launch_id=name,
                run_id=ticket.request.run_id,
                leg=ticket.request.leg,
                reason="no room (sim)" if ticket.refused_at <= now else "",
                refused="no_capacity" if ticket.refused_at <= now else "",
                starts_s=ticket.starts_at + self.skew_s if self._place.guesses else None,
            )
            for name, ticket in self.tickets.items()
            if ticket.listed_from <= now
        )
        return Listing(at_s=self.clock, machines=tuple(shown), queued=waiting)

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        self._answers()
        world, chances = self._world, self._scenario.chances
        rng = world.rng
        self._books.buys(request)
        token = request.launch_id
        if self.facts.tokens and token in self._by_token:
            return self._by_token[token]
        if token in self.tickets:
            if self.facts.tokens:
                return ()
            self._books.sells(request)  # twice in the queue is bought twice
        if self.noisy and rng.random() < chances.refuse:
            kind = rng.choice(REFUSALS)
            world.fault(kind)
            raise Refused(kind, f"no machines ({kind})")
        unknown = self.noisy and rng.random() < chances.unknown
        if unknown and rng.random() < 0.5:
            world.fault("launch lost on the way there")
            raise OutcomeUnknown("the connection broke (sim: nothing was bought)")
        nodes = request.way.nodes
        if self.facts.queues and rng.random() < 0.7:
            self._queue(request, after, key)
            if unknown:
                world.fault("launch lost on the way back")
                raise OutcomeUnknown("the connection broke (sim: it is queued)")
            return ()
        if not self.facts.gang and nodes > 1 and self.noisy and rng.random() < 3 * chances.refuse:
            self._some(request, after, rng.randrange(1, nodes), key)
        if unknown and nodes > 1 and rng.random() < 0.4:
            self._buy(request, after, rng.randrange(1, nodes), key)
            world.fault("launch broken off half-way")
            raise OutcomeUnknown("the connection broke (sim: some were bought)")
        machines = self._buy(request, after, nodes, key)
        if unknown:
            world.fault("launch lost on the way back")
            raise OutcomeUnknown("the connection broke (sim: it was bought)")
        return machines

    def _some(self, request: Request, after: int, nodes: int, key: str) -> None:
        """Sold one by one, and not all of them: those are given back."""
        bought = self._buy(request, after, nodes, key)
        self._world.fault("gang broken off half-way")
        if self._world.rng.random() < 0.8:
            self.terminate([machine.machine_id for machine in bought])
        raise Refused("no_capacity", "no machines (sim: for the rest of them)")

    def _queue(self, request: Request, after: int, key: str) -> None:
        world = self._world
        wait_s = world.rng.randrange(60, 3000) if self.noisy else 60
        lag = self.facts.listing_lag_s
        listed_from = world.now + (world.rng.randrange(lag + 1) if self.noisy and lag else 0)
        ticket = Ticket(request, world.now, world.now + wait_s, listed_from, (after, key))
        self.tickets[request.launch_id] = ticket
        world.fault("launch queued")
        chance = crc32(f"{request.launch_id} {ticket.starts_at}".encode())  # of no other's dice
        if self.noisy and chance % 5 == 0:
            ticket.refused_at, ticket.never = world.now + wait_s / 3, chance % 10 == 0
            world.fault("queued launch refused")
        world.later(wait_s, partial(self._begins, ticket))

    def _begins(self, ticket: Ticket) -> None:
        if ticket.withdrawn or ticket.never:
            return
        del self.tickets[ticket.request.launch_id]
        after, key = ticket.buyer
        self._buy(ticket.request, after, ticket.request.way.nodes, key)

    def withdraw(self, launch_ids: Sequence[str]) -> None:
        self._answers()
        for name in launch_ids:
            if name in self.tickets:
                slow_s = self._world.rng.randrange(1, 60) if self.noisy else 0
                self._world.later(slow_s, partial(self._withdrawn, name))

    def _withdrawn(self, launch_id: str) -> None:
        ticket = self.tickets.pop(launch_id, None)
        if ticket is not None:
            ticket.withdrawn = True
            if self._world.telling:
                self._world.tell(self._place.name, f"{launch_id} is withdrawn")

    def terminate(self, machine_ids: Sequence[str]) -> None:
        self._answers()
        for name in machine_ids:
            rental = self.rentals.get(name)
            if rental and rental.ended is None and not rental.ending:
                rental.ending = True
                if self.noisy:
                    slow_s = self._world.rng.randrange(1, 240)
                    self._world.later(slow_s, partial(self._terminated, rental))
                else:
                    self.end(rental, "terminated")

    def _terminated(self, rental: Rental) -> None:
        if rental.ended is None:
            self.end(rental, "terminated")

    def end(self, rental: Rental, why: str) -> None:
        """It is no longer charged; listings may take a while to show it."""
        world = self._world
        rental.ended = world.now
        by = TAKEN if why == TAKEN_WORDS and world.now % 2 else ""
        rental.machine = replace(rental.machine, ended_s=self.clock, ended_by=by)
        lag = self.facts.listing_lag_s
        rental.said_ended = world.now + (world.rng.randrange(lag + 1) if self.noisy else 0)
        if world.telling:
            world.tell(rental.machine.machine_id, f"is off: {why}")
        if rental.host:
            rental.host.off()

    def charged(self, rental: Rental) -> int:
        """Micro-dollars, reckoned apart from the product's own way."""
        machine = rental.machine
        end = self.clock if machine.ended_s is None else machine.ended_s
        facts = rental.way.facts
        step = facts.billing_step_s
        begun = (max(end - machine.launched_s, facts.billing_least_s, 1) + step - 1) // step
        return (rental.way.price * begun * step + 3599) // 3600

    @property
    def noisy(self) -> bool:
        return self._world.now < self._scenario.quiet_s + START_S

    def _buy(self, request: Request, after: int, nodes: int, key: str) -> list[Machine]:
        world = self._world
        self._books.sells(request)
        lag = self.facts.listing_lag_s
        listed_from = world.now + (world.rng.randrange(lag + 1) if self.noisy and lag else 0)
        bought = []
        for rank in range(nodes):
            machine = Machine(
                machine_id=f"{self._place.letter}{len(self.rentals) + 1}",
                launch_id=request.launch_id,
                run_id=request.run_id,
                leg=request.leg,
                rank=rank,
                launched_s=self.clock,
            )
            rental = Rental(machine, request, listed_from)
            self.rentals[machine.machine_id] = rental
            bought.append(machine)
            self._boot(rental, request, after, key)
        self._by_token[request.launch_id] = bought
        return bought
