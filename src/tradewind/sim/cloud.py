"""A cloud that sells machines, charges for every second, and does not always tell the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from tradewind.model.run import Facts, Listing, Machine, Request
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.sim.scenario import Scenario
from tradewind.sim.world import START_S, World

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
        "claimed_dead", "ended", "ending", "host", "listed_from", "machine", "said_ended", "way",
    )  # fmt: skip

    def __init__(self, machine: Machine, request: Request, listed_from: int) -> None:
        self.machine = machine  # as it is really
        self.way = request.way
        self.ended: int | None = None  # the world's time
        self.ending = False  # it was terminated, which may take a while
        self.listed_from = listed_from
        self.said_ended = 0  # from when on listings show the end
        self.claimed_dead: tuple[int, int, Machine | None] | None = None
        """From when to when it is shown as ended, or not at all, though it lives."""
        self.host: Host | None = None


class SimCloud:
    def __init__(
        self,
        world: World,
        scenario: Scenario,
        books: Books,
        boot: Callable[[Rental, Request, int, str], None],
    ) -> None:
        self._world, self._scenario = world, scenario
        self._books, self._boot = books, boot
        self.rentals: dict[str, Rental] = {}
        self._by_token: dict[str, list[Machine]] = {}
        self.facts: Facts = scenario.spec.ways[0].facts

    @property
    def clock(self) -> int:
        return self._world.now + self._scenario.cloud_skew_s

    def list_machines(self) -> Listing:
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
        return Listing(at_s=self.clock, machines=tuple(shown))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        world, chances = self._world, self._scenario.chances
        rng = world.rng
        self._books.buys(request)
        token = request.launch_id
        if self.facts.tokens and token in self._by_token:
            return self._by_token[token]
        if self.noisy and rng.random() < chances.refuse:
            kind = rng.choice(REFUSALS)
            world.fault(kind)
            raise Refused(kind, f"no machines ({kind})")
        unknown = self.noisy and rng.random() < chances.unknown
        if unknown and rng.random() < 0.5:
            world.fault("launch lost on the way there")
            raise OutcomeUnknown("the connection broke (sim: nothing was bought)")
        nodes = request.way.nodes
        if unknown and nodes > 1 and rng.random() < 0.4:
            self._buy(request, after, rng.randrange(1, nodes), key)
            world.fault("launch broken off half-way")
            raise OutcomeUnknown("the connection broke (sim: some were bought)")
        machines = self._buy(request, after, nodes, key)
        if unknown:
            world.fault("launch lost on the way back")
            raise OutcomeUnknown("the connection broke (sim: it was bought)")
        return machines

    def terminate(self, machine_ids: Sequence[str]) -> None:
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
        rental.machine = replace(rental.machine, ended_s=self.clock)
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
                machine_id=f"m{len(self.rentals) + 1}",
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
