"""`tradewind sim faults`: one seed, a run or two through everything that can go wrong."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tradewind.base import clock
from tradewind.controller import Controller
from tradewind.lifecycle.states import NO_RETURN
from tradewind.model import places
from tradewind.model.run import Request
from tradewind.sim import scenario as scenarios
from tradewind.sim.cloud import Rental, SimCloud
from tradewind.sim.controllers import Make, SimController
from tradewind.sim.court import Court
from tradewind.sim.job import SimJob
from tradewind.sim.lender import SimLender
from tradewind.sim.liar import OTHER, Stranger
from tradewind.sim.machine import SimMachine
from tradewind.sim.referee import ORPHAN_S, Referee
from tradewind.sim.scenario import Scenario
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, Violation, World

RUN = "run-1"
_GIVEN_UP = object()
_WHY = "the user asked for it"
_AFTER_QUIET_S = 4 * 3600
_CLOSED = 6
"""So much longer it may take where windows are closed half of the time, and each begins anew."""


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


class Life:
    """What one run's user does: submits it, cancels it, wants it to go on."""

    def __init__(self, simulation: Simulation, scenario: Scenario, referee: Referee) -> None:
        self.world, self.scenario, self.referee = simulation.world, scenario, referee
        self._run = scenario.run_id
        self._marks = (places.live(self._run), places.live(self._run, 2))
        # One thing at a time each, as processes of their own.
        self._user, self._canceller, self._resumer = (simulation.controller(2) for _ in range(3))
        self._objects, self._lender = simulation.store.objects, simulation.lender

    def begin(self) -> None:
        # Now and then whoever submits is cut off for good.
        self._user.gives_up = _GIVEN_UP if self.world.rng.random() < 0.2 else None
        self._submit(None)
        if self.scenario.cancel_at_s is not None:
            self.world.later(self.scenario.cancel_at_s, self._cancel)

    def _submit(self, done: Any) -> None:
        """Until it has worked: the user is asked to try again."""
        if done is _GIVEN_UP:
            return
        if not self.referee.events:
            spec = self.scenario.spec
            self.world.later(
                5, lambda: self._user.begin(lambda c: c.submit(self._run, spec), self._submit)
            )

    def _cancel(self, done: Any = False) -> None:
        self.referee.cancelled = True
        if done is True or self.referee.ended:
            return
        self.world.later(
            20, lambda: self._canceller.begin(lambda c: c.cancel(self._run, _WHY), self._cancel)
        )

    def _resume(self, done: Any = False) -> None:
        """Once, with three times the budget and an hour more."""
        spec = self.referee.spec
        if done is True or not self.referee.closed:
            return
        if self.referee.ended in NO_RETURN or self.referee.resumed:
            return
        budget = spec.budget and 3 * spec.budget
        until = spec.deadline_s and self.world.now + 3600.0
        self.world.later(
            30,
            lambda: self._resumer.begin(
                lambda c: c.resume(self._run, _WHY, budget=budget, deadline_s=until), self._resume
            ),
        )

    def done(self) -> bool:
        """Nothing is left to happen: the run is closed, its marker gone, and all is balanced."""
        referee = self.referee
        if referee.just_closed:
            referee.just_closed = False
            if self.scenario.resumes:
                self._resume()
        if not referee.closed or any(key in self._objects for key in self._marks):
            return False
        for key in self._lender.left(self._run, referee.closed_at):
            raise Violation(f"{key} is left in the store, and good")
        return (
            not (self.scenario.resumes and self._may_go_on())
            and not referee.open
            and not referee.rented.living()  # of whom the bill is not the last
            and referee.balanced()
        )

    def _may_go_on(self) -> bool:
        return self.referee.ended not in NO_RETURN and not self.referee.resumed


class Simulation:
    def __init__(self, seed: int, *, tell: bool, make: Make) -> None:
        self.world = world = World(clock.generator(seed), tell=tell)
        self.scenario = scenario = scenarios.of(world.rng)
        self._make = make
        self.scenarios = scenes = [scenario]
        if world.rng.random() < 0.15:
            scenes.append(scenarios.another(world.rng, scenario))
        self.court = Court({scene.run_id: Referee(world, scene) for scene in scenes})
        self.store = SimStore(world, self.court.created, self.court.replaced)
        self.lender = SimLender(world, scenario, self.store)
        self.clouds = {
            place.name: SimCloud(world, scenario, place, self.court, self._boot)
            for place in scenario.places
        }
        self.court.watch(self.clouds)
        self._controllers = [self.controller(number) for number in range(scenario.controllers)]
        self._lives = [Life(self, scene, self.court.of(scene.run_id)) for scene in scenes]

    def controller(self, number: int) -> SimController:
        return SimController(
            self.world, self.scenario, self.store, self.clouds, self.court, self.lender,
            self._make, number,
        )  # fmt: skip

    def run(self) -> None:
        world, scenario = self.world, self.scenario
        if world.telling:
            for life in self._lives:
                world.tell("scenario", str(life.scenario))
        for life in self._lives:
            life.begin()
        for number, controller in enumerate(self._controllers):
            world.later(1 + 7 * number, controller.wake)
        if scenario.liar == OTHER:
            stranger = Stranger(world, self.store, self.clouds.values(), scenario.quiet_s)
            for life in self._lives:
                life.referee.attacked = stranger.met
            world.later(60, stranger.wake)
        slower = _CLOSED if scenario.spec.schedule else 1
        world.run(START_S + scenario.quiet_s + slower * _AFTER_QUIET_S, self._done)
        for life in self._lives:
            life.referee.final(ORPHAN_S)

    def _done(self) -> bool:
        """Every run is done, no machine lives, and nothing is queued."""
        done = [life.done() for life in self._lives]  # each of them acts, too
        return all(done) and all(
            not cloud.tickets and all(rental.ended is not None for rental in cloud.rentals.values())
            for cloud in self.clouds.values()
        )

    def _boot(self, rental: Rental, request: Request, after: int, key: str) -> None:
        referee = self.court.of(request.run_id)
        scenario = referee.scenario
        job = referee.jobs.get(request.leg)
        if job is None:
            rate = request.way.rate * scenario.true_rates[request.way.instance_type]
            job = SimJob(
                scenario.spec, request.way.nodes, rate, scenario.fails_at, scenario.hangs_at
            )
            referee.jobs[request.leg] = job
        cloud = self.clouds[request.way.provider]
        rental.host = SimMachine(
            self.world, scenario, self.store, cloud, referee, self.lender, job, rental, request,
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
        simulation.court.of(RUN).ended,
        world.faults,
        world.crash_points,
        world.steps,
        world.kinds,
        simulation.store.objects,
    )
