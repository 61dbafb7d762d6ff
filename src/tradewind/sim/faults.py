"""`tradewind sim faults`: one seed, one run through everything that can go wrong."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tradewind.base import clock
from tradewind.controller import Controller
from tradewind.model import places
from tradewind.model.run import Request
from tradewind.sim import scenario as scenarios
from tradewind.sim.cloud import Rental, SimCloud
from tradewind.sim.controllers import Make, SimController
from tradewind.sim.job import SimJob
from tradewind.sim.liar import OTHER, Stranger
from tradewind.sim.machine import SimMachine
from tradewind.sim.referee import ORPHAN_S, Referee
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, Violation, World

RUN = "run-1"
_GIVEN_UP = object()
_WHY = "the user asked for it"
_MARKS = (places.live(RUN), places.live(RUN, 2))
_AFTER_QUIET_S = 4 * 3600


class Outcome(Struct):
    seed: int
    violation: str
    story: list[str]
    outcome: str
    faults: int
    crash_points: int
    steps: int
    kinds: dict[str, int]
    objects: dict[str, bytes]


class Simulation:
    def __init__(self, seed: int, *, tell: bool, make: Make) -> None:
        self.world = world = World(clock.generator(seed), tell=tell)
        self.scenario = scenario = scenarios.of(world.rng)
        self.referee = Referee(world, scenario)
        self.store = SimStore(world, self.referee.created, self.referee.replaced)
        self.cloud = SimCloud(world, scenario, self.referee, self._boot)
        self.referee.cloud = self.cloud
        self.controllers = [
            SimController(world, scenario, self.store, self.cloud, self.referee, make, number)
            for number in range(scenario.controllers)
        ]
        # One thing at a time each, as processes of their own.
        self._user, self._canceller, self._resumer = (
            SimController(world, scenario, self.store, self.cloud, self.referee, make, 2)
            for _ in range(3)
        )

    def run(self) -> None:
        world, scenario = self.world, self.scenario
        if world.telling:
            world.tell("scenario", str(scenario))
        # Now and then whoever submits is cut off for good.
        self._user.gives_up = _GIVEN_UP if world.rng.random() < 0.2 else None
        self._submit(None)
        for number, controller in enumerate(self.controllers):
            world.later(1 + 7 * number, controller.wake)
        if scenario.liar == OTHER:
            stranger = Stranger(world, self.store, self.cloud, scenario.quiet_s)
            self.referee.attacked = stranger.met
            world.later(60, stranger.wake)
        if scenario.cancel_at_s is not None:
            world.later(scenario.cancel_at_s, self._cancel)
        world.run(START_S + scenario.quiet_s + _AFTER_QUIET_S, self._done)
        self.referee.final(ORPHAN_S)

    def _submit(self, done: Any) -> None:
        """Until it has worked: the user is asked to try again."""
        if done is _GIVEN_UP:
            return
        if RUN not in self.referee.events:
            spec = self.scenario.spec
            self.world.later(
                5, lambda: self._user.begin(lambda c: c.submit(RUN, spec), self._submit)
            )

    def _cancel(self, done: Any = False) -> None:
        self.referee.cancelled = True
        if done is True or RUN in self.referee.ended:
            return
        self.world.later(
            20, lambda: self._canceller.begin(lambda c: c.cancel(RUN, _WHY), self._cancel)
        )

    def _resume(self, done: Any = False) -> None:
        """Once, with three times the budget and an hour more."""
        spec = self.referee.spec
        if done is True or RUN not in self.referee.closed:
            return
        if self.referee.ended[RUN] in ("succeeded", "abandoned") or self.referee.resumed:
            return
        budget = spec.budget and 3 * spec.budget
        until = spec.deadline_s and self.world.now + 3600.0
        self.world.later(
            30,
            lambda: self._resumer.begin(
                lambda c: c.resume(RUN, _WHY, budget=budget, deadline_s=until), self._resume
            ),
        )

    def _done(self) -> bool:
        """Nothing is left to happen: the run is closed, its marker gone, and no machine lives."""
        if self.referee.just_closed:
            self.referee.just_closed = False
            if self.scenario.resumes:
                self._resume()
        return (
            bool(self.referee.closed)
            and len(self.referee.closed) == len(self.referee.events)
            and not any(key in self.store.objects for key in _MARKS)
            and not self._to_be_resumed()
            and not self.referee.open
            and all(rental.ended is not None for rental in self.cloud.rentals.values())
            and self.referee.balanced()
        )

    def _to_be_resumed(self) -> bool:
        bad = self.referee.ended[RUN] not in ("succeeded", "abandoned")
        return self.scenario.resumes and bad and not self.referee.resumed

    def _boot(self, rental: Rental, request: Request, after: int, key: str) -> None:
        whose = (request.run_id, request.leg)
        job = self.referee.jobs.get(whose)
        if job is None:
            rate = request.way.rate * self.scenario.true_rates[request.way.instance_type]
            scenario = self.scenario
            job = SimJob(
                scenario.spec, request.way.nodes, rate, scenario.fails_at, scenario.hangs_at
            )
            self.referee.jobs[whose] = job
        rental.host = SimMachine(
            self.world, self.scenario, self.store, self.cloud, self.referee, job, rental, request,
            after, key,
        )  # fmt: skip


def simulate(
    seed: int, *, tell: bool = False, make: Make = Controller, crash_at: int = 0
) -> Outcome:
    """`crash_at`: the step of a controller's at which to die besides those by chance, counted from
    1; after it is done, if negative."""
    simulation = Simulation(seed, tell=tell, make=make)
    simulation.world.crash_at = crash_at
    violation = ""
    try:
        simulation.run()
    except Violation as found:
        violation = str(found)
        if tell:
            simulation.world.tell("referee", f"VIOLATION: {violation}")
    world = simulation.world
    return Outcome(
        seed,
        violation,
        world.story,
        simulation.referee.ended.get(RUN, ""),
        world.faults,
        world.crash_points,
        world.steps,
        world.kinds,
        simulation.store.objects,
    )
