"""Controllers that die at any step, stall at any step, and share the runs with others.

Each drives the product's own generators; between any two steps everything else may happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.base.steps import Steps
from tradewind.controller import Controller
from tradewind.controller.purse import AskMonth
from tradewind.lifecycle.seen import Month
from tradewind.model.run import Listing
from tradewind.policy import careful, plain
from tradewind.policy.base import Choice, Known, Policy
from tradewind.providers.base import (
    AskPrices,
    LaunchMachines,
    ListAll,
    Listed,
    ListMachines,
    OutcomeUnknown,
    Refused,
    TerminateMachines,
    WithdrawLaunches,
)
from tradewind.sim.cloud import SimCloud
from tradewind.sim.court import Court
from tradewind.sim.lender import SimLender
from tradewind.sim.scenario import SEED, Scenario
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, Violation, World
from tradewind.store.lending import LendPass

Make = Callable[..., Controller]


class SimController:
    def __init__(
        self,
        world: World,
        scenario: Scenario,
        store: SimStore,
        clouds: Mapping[str, SimCloud],
        court: Court,
        lender: SimLender,
        make: Make,
        number: int,
    ) -> None:
        self._world, self._scenario = world, scenario
        self._store, self._clouds, self._court = store, clouds, court
        self._make, self.number = make, number
        self._skew_s = scenario.skews_s[number]
        self._lives = 0
        self.gives_up: Any = None
        """What it says when it dies, instead of beginning again."""
        self._steps: Any = None
        self._what: Callable[[Controller], Steps[Any]] = _whole_pass
        self._then: Callable[[Any], None] = self._passed
        self._quiet = START_S + scenario.quiet_s
        chances = scenario.chances
        self._p_crash = chances.crash
        self._p_stall = self._p_crash + chances.stall
        self._p_store = self._p_stall + chances.store_fails
        self._p_cloud = self._p_stall + chances.cloud_fails
        self._p_any = max(self._p_store, self._p_cloud)
        self._policies: dict[str, Policy] = {
            "careful": careful.choose,
            "plain": plain.choose,
            "restless": self._restless,
        }
        self._doers: dict[type, Callable[[Any], Any]] = {
            ListAll: self._list_all,
            ListMachines: lambda step: clouds[step.provider].list_machines(),
            LaunchMachines: lambda step: clouds[step.request.way.provider].launch(
                step.request, step.after, step.key
            ),
            TerminateMachines: lambda step: clouds[step.provider].terminate(step.machine_ids),
            WithdrawLaunches: lambda step: clouds[step.provider].withdraw(step.launch_ids),
            LendPass: lender.perform,
            AskMonth: self._month,
            AskPrices: self._prices,
        }
        self._born()

    def _born(self) -> None:
        world, skew = self._world, self._skew_s
        self._lives += 1
        self.name = f"controller{self.number + 1}.{self._lives}"
        self.controller = self._make(
            self.name,
            tuple(self._clouds),
            clock=lambda: world.now + skew,
            watch=lambda: world.now,
            seed=SEED,
            policy=self._policies[self._scenario.policy],
        )
        self.controller.asks_month = self._scenario.month is not None

    def wake(self) -> None:
        self.begin(_whole_pass, self._passed)

    def begin(self, what: Callable[[Controller], Steps[Any]], then: Callable[[Any], None]) -> None:
        """One thing at a time; begun again if it is cut off."""
        self._what, self._then = what, then
        self._steps = what(self.controller)
        self._advance(None, None)

    def _advance(self, answer: Any, error: TradewindError | None) -> None:
        world, rng, steps = self._world, self._world.rng, self._steps
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as done:
                self._then(done.value)
                return
            except SourceFailed:
                self._then([])
                return
            except TradewindError as bad:
                raise Violation(f"{self.name} cannot go on: {bad}") from None
            answer = error = None
            world.steps += 1
            if world.steps == abs(world.crash_at):
                self._crash(step, after=world.crash_at < 0)
                return
            if world.now < self._quiet:
                r = rng.random()
                if r < self._p_stall:
                    if r < self._p_crash:
                        self._crash(step, after=rng.random() < 0.5)
                    else:
                        self._stall(step)
                    return
                if r < self._p_any:
                    answer, error = self._maybe_fail(step, r)
                    continue
            answer, error = self._do(step)

    def _do(self, step: Any) -> tuple[Any, TradewindError | None]:
        doer = self._doers.get(type(step), self._store.perform)
        try:
            return doer(step), None
        except TradewindError as error:
            return None, error

    def _list_all(self, step: ListAll) -> Listed:
        found: dict[str, Listing | TradewindError] = {}
        for name in step.providers:
            try:
                found[name] = self._clouds[name].list_machines()
            except TradewindError as error:
                found[name] = error
        return found

    def _prices(self, step: AskPrices) -> dict[str, int]:
        told = (cloud.prices(step.ways) for cloud in self._clouds.values())
        return {what: price for found in told for what, price in found.items()}

    def _restless(self, known: Known) -> Choice:
        if self._world.now >= self._quiet:
            return plain.choose(known)
        options: list[int | None] = [None, *range(len(known.options))]
        return Choice(self._world.rng.choice(options), "why not")

    def _month(self, step: AskMonth) -> Month | None:
        if step.run_id != self._scenario.run_id:
            return None  # its project has no budget
        assert self._scenario.month is not None
        most, until_s = self._scenario.month
        over = self._world.now >= START_S + until_s
        return Month(
            number=202612 if over else 202611, share=0.9, words="(sim)", cap=None if over else most
        )

    def _crash(self, step: Any, *, after: bool) -> None:
        """Before the step is done, or after it and before anybody knows."""
        world = self._world
        world.crash_points += 1
        if after:
            self._do(step)
        world.fault("crash")
        if world.telling:
            world.tell(self.name, f"dies {'after' if after else 'before'} {_named(step)}")
        self._steps.close()
        if self.gives_up is not None:
            self._then(self.gives_up)
            return
        self._born()
        world.later(world.rng.randrange(5, 300), lambda: self.begin(self._what, self._then))

    def _stall(self, step: Any) -> None:
        world = self._world
        world.fault("stall")
        how = world.rng.random()
        wait = world.rng.randrange(1, 6) if how < 0.9 else world.rng.randrange(300)
        alone = self._scenario.controllers < 2 or world.now < world.absent_until
        if how > 0.99 and not alone and not self._scenario.limited:
            wait = world.rng.randrange(300, 3000)  # longer than a budget's reserve allows for
            world.absent_until = world.now + wait
        if world.rng.random() < 0.5:
            answer, error = self._do(step)
            world.later(wait, lambda: self._advance(answer, error))
        else:
            world.later(wait, lambda: self._advance(*self._do(step)))

    def _maybe_fail(self, step: Any, r: float) -> tuple[Any, TradewindError | None]:
        ours = type(step) in self._doers
        if r >= (self._p_cloud if ours else self._p_store):
            return self._do(step)
        try:
            if not ours:
                return self._store.fail(step), None
            self._world.fault(f"cloud fails {_named(step)}")
            return None, self._cloud_fails(step)
        except SourceFailed as error:
            return None, error

    def _cloud_fails(self, step: Any) -> TradewindError:
        if self._world.rng.random() < 0.5:
            return Refused("throttled", "slow down (sim)")
        if not isinstance(step, ListAll | ListMachines) and self._world.rng.random() < 0.5:
            self._do(step)
        return OutcomeUnknown("the connection broke (sim)")

    def _passed(self, troubles: list[tuple[str, TradewindError]]) -> None:
        for run_id, error in troubles or ():
            if not isinstance(error, SourceFailed):
                raise Violation(f"{run_id} cannot go on: {error}")
        cut_off = {name for name, _ in troubles or ()}  # before they had said all there was to say
        for memory in self.controller.memory.runs.values():
            state = memory.state
            if state.leg and memory.run_id not in cut_off:
                self._court.of(memory.run_id).ticked(
                    state.announced_late,
                    state.ratio,
                    state.leg.number,
                    state.leg.state == "running",
                )
        self._world.later(self._scenario.pass_s, self.wake)


def _whole_pass(controller: Controller) -> Steps[Any]:
    return controller.whole_pass()


def _named(step: Any) -> str:
    key = "" if isinstance(step, LaunchMachines) else getattr(step, "key", "")
    return f"{type(step).__name__} {key or getattr(step, 'prefix', '')}".strip()
