"""A run in a scripted market: the product's own controller and supervisors, nothing by chance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tradewind.base import clock
from tradewind.controller import Controller
from tradewind.model.run import Facts, Machine, Request, Spec, Way
from tradewind.model.usage import GB, Rates
from tradewind.providers.base import Refused
from tradewind.sim.cloud import Rental, SimCloud
from tradewind.sim.controllers import Make, SimController
from tradewind.sim.court import Court
from tradewind.sim.job import SimJob
from tradewind.sim.lender import SimLender
from tradewind.sim.machine import SimMachine
from tradewind.sim.market.script import Offered, Script
from tradewind.sim.referee import Referee
from tradewind.sim.scenario import Chances, Place, Scenario
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, Violation, World

RUN = "run-1"
PASS_S = 60
_MOST = 10
"""After so many times as long as it should take, and two days, it is left alone."""
_AND_S = 2 * 86_400
_FACTS = Facts(notice_s=120, tokens=True, listing_lag_s=0, billing_lead_s=0, boot_timeout_s=900)


class Played(Struct, frozen=True):
    """What came of it."""

    outcome: str
    """Empty: it is still at work."""
    cost: int
    """Micro-dollars, by the market's own account."""
    done_s: float
    """From the submission to the end of the work, or of the run."""
    legs: int
    asked: int
    """Launches that were tried."""
    violation: str
    story: tuple[str, ...]


def way_of(offered: Offered, script: Script, at_s: float = 0.0) -> Way:
    size = script.checkpoint
    return Way(
        provider="market",
        region=offered.region,
        zone=offered.name.replace(" ", "-"),
        instance_type=offered.kind,
        market=offered.market,
        nodes=offered.nodes,
        price=offered.price(at_s),
        rate=offered.speed,
        start_s=float(offered.start_s),
        bring=-(-size * offered.gb_out // GB),
        save=-(-size * offered.gb_in * 3600 // (GB * script.saves_s)),
        rates=Rates(gb_in=offered.gb_in, gb_out=offered.gb_out),
        facts=replace(_FACTS, notice_s=offered.notice_s),
    )


class Market(SimCloud):
    """Sells by the script, and takes away by it."""

    def __init__(self, script: Script, *others: Any) -> None:
        super().__init__(*others)
        self._by_zone = {each.name.replace(" ", "-"): each for each in script.offered}
        self.asked = 0
        for each in script.offered:
            for at_s in each.taken:
                self._world.later(max(at_s - each.notice_s, 0), partial(self._warn, each))
                self._world.later(at_s, partial(self._take, each))

    def launch(self, request: Request, after: int, key: str = "") -> Any:
        self.asked += request.launch_id not in self._by_token
        if self._by_zone[request.way.zone].is_gone(self._world.now - START_S):
            raise Refused("no_capacity", "it is sold out")
        return super().launch(request, after, key)

    def prices(self, ways: Sequence[Way]) -> dict[str, int]:
        at_s = self._world.now - START_S
        return {way.what: self._by_zone[way.zone].price(at_s) for way in ways}

    def list_machines(self) -> Any:
        """As where a provider tells its prices."""
        listing = super().list_machines()
        return replace(listing, machines=tuple(map(self._priced, listing.machines)))

    def _priced(self, machine: Machine) -> Machine:
        prices = self._since(self.rentals[machine.machine_id])
        return replace(machine, prices=prices) if len(prices) > 1 else machine

    def _since(self, rental: Rental) -> tuple[tuple[int, int], ...]:
        """Spot costs what it costs; on demand, what it did when it was bought."""
        offered, begun = self._by_zone[rental.way.zone], rental.machine.launched_s
        first = (begun, rental.way.price)
        end = self.clock if rental.machine.ended_s is None else rental.machine.ended_s
        if offered.market != "spot":
            return (first,)
        later = ((START_S + at, price) for at, price in offered.prices)
        return (first, *(each for each in later if begun < each[0] < end))

    def charged(self, rental: Rental) -> int:
        end = self.clock if rental.machine.ended_s is None else rental.machine.ended_s
        prices = self._since(rental)
        until = [*(since for since, _ in prices[1:]), max(end, prices[0][0] + 1)]
        owed = sum(price * (til - since) for (since, price), til in zip(prices, until, strict=True))
        return -(-owed // 3600)

    def _living(self, offered: Offered) -> list[Rental]:
        return [
            rental
            for rental in self.rentals.values()
            if rental.ended is None and self._by_zone[rental.way.zone] is offered
        ]

    def _warn(self, offered: Offered) -> None:
        for rental in self._living(offered):
            assert isinstance(rental.host, SimMachine)
            rental.host.told_to_go()

    def _take(self, offered: Offered) -> None:
        for rental in self._living(offered):
            assert isinstance(rental.host, SimMachine)
            rental.host.taken()


class Owner(SimController):
    """A controller that sleeps when the script says so."""

    asleep: tuple[tuple[float, float], ...] = ()

    def wake(self) -> None:
        now = self._world.now - START_S
        until = max((until for since, until in self.asleep if since <= now < until), default=now)
        if until == now:
            super().wake()
        elif until < inf:
            self._world.later(int(until - now), self.wake)


def play(script: Script, *, tell: bool = False, make: Make = Controller) -> Played:
    return _Play(script, tell, make).played()


class _Play:
    def __init__(self, script: Script, tell: bool, make: Make) -> None:
        self.script = script
        self.world = world = World(clock.generator(0), tell=tell)
        self.scenario = _scenario(script)
        slowest = min(each.really for each in script.offered)
        self._most_s = int(_MOST * script.work_s / slowest) + _AND_S
        self.referee = Referee(world, self.scenario)
        court = Court({RUN: self.referee})
        self.store = SimStore(world, court.created, court.replaced)
        self.lender = SimLender(world, self.scenario, self.store)
        place = self.scenario.places[0]
        self.market = Market(script, world, self.scenario, place, court, self._boot)
        clouds: dict[str, SimCloud] = {place.name: self.market}
        court.watch(clouds)
        selling = partial(make, asks_prices=True)
        given = (world, self.scenario, self.store, clouds, court, self.lender, selling, 0)
        self.owner, self.user = Owner(*given), SimController(*given)
        self.owner.asleep = script.asleep

    def played(self) -> Played:
        world, referee = self.world, self.referee
        violation = ""
        self.user.begin(lambda c: c.submit(RUN, self.scenario.spec), lambda done: None)
        world.later(1, self.owner.wake)
        try:
            world.run(START_S + self._most_s, self._done)
        except Violation as found:
            violation = str(found)
        finished = [job.finished_at for job in referee.jobs.values() if job.finished]
        end = min(finished, default=referee.ended_at or world.now)
        return Played(
            referee.ended,
            referee.rented.charged() + referee.moved,
            end - START_S,
            len(referee.jobs),
            self.market.asked,
            violation,
            tuple(world.story),
        )

    def _done(self) -> bool:
        living = any(rental.ended is None for rental in self.market.rentals.values())
        return self.referee.closed and not living

    def _boot(self, rental: Rental, request: Request, after: int, key: str) -> None:
        referee, script = self.referee, self.script
        job = referee.jobs.get(request.leg)
        if job is None:
            ratio = self.scenario.true_rates[request.way.instance_type]
            job = referee.jobs[request.leg] = SimJob(
                self.scenario.spec, request.way.nodes, request.way.rate * ratio, script.fails_s,
                script.hangs_s, tells=script.told,
            )  # fmt: skip
        rental.host = SimMachine(
            self.world, self.scenario, self.store, self.market, referee, self.lender, job, rental,
            request, after, key, boot_s=max(int(request.way.start_s) - 20, 1),
        )  # fmt: skip


def _scenario(script: Script) -> Scenario:
    ways = tuple(way_of(each, script) for each in script.offered)
    spec = Spec(
        name=script.name,
        work=script.work_s,
        steps=script.counted,
        ways=ways,
        deadline_s=None if script.deadline_s is None else START_S + script.deadline_s,
        hard=script.hard,
        late=script.late,
        budget=script.budget,
        max_duration_s=script.max_duration_s,
        checkpoint_every_s=script.saves_s,
        checkpoint_bytes=script.checkpoint,
    )
    return Scenario(
        RUN,
        spec,
        (Place("market", "m", _FACTS),),
        {each.kind: each.really / each.speed for each in script.offered},
        script.fails_s,
        script.hangs_s,
        1,
        PASS_S,
        (0, 0, 0),
        None,
        False,
        None,
        -1,  # nothing goes wrong by chance
        Chances(*[0.0] * len(Chances.__struct_fields__)),
        "careful",
        "",
        0,
    )
