"""Who lends passes to a simulated store, and knows until when each of them is good.

What a pass is for and how it is held is the product's; here it is a number that is good until a
moment of the world's own clock."""

from __future__ import annotations

from tradewind.base.errors import NoAccess
from tradewind.model import places
from tradewind.model.run import Request
from tradewind.sim.scenario import Scenario
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, World
from tradewind.store.lending import LendPass, Pass, decoded, encoded
from tradewind.store.steps import Replace

SECRET = b"secret-of-a-pass-"


class SimLender:
    def __init__(self, world: World, scenario: Scenario, store: SimStore) -> None:
        self._world, self._store = world, store
        self._refuses = scenario.chances.no_pass
        self._quiet = START_S + scenario.quiet_s
        self._until: dict[str, int] = {}
        self._since: dict[str, int] = {}

    def lend(self, run_id: str, for_s: int) -> Pass:
        lent = Pass(
            store_url="sim://",
            run_id=run_id,
            for_s=for_s,
            credentials={"key": f"{SECRET.decode()}{len(self._until)}"},
        )
        self._since[lent.mark] = self._world.now
        self._until[lent.mark] = self._world.now + for_s
        return lent

    def first(self, request: Request) -> tuple[Pass, int]:
        """What a machine of this launch begins with, and how old it is by the store's clock: where
        it was in a queue, what controllers have put there meanwhile."""
        data = self._store.objects.get(places.first_pass(request.run_id, request.launch_id))
        if data is None:  # what its buyer has lent, a moment ago
            return self.lend(request.run_id, request.way.pass_s), 0
        lent = decoded(data)
        return lent, self._world.now - self._since[lent.mark]

    def perform(self, step: LendPass) -> None:
        world = self._world
        if self._refuses and world.now < self._quiet and world.rng.random() < self._refuses:
            world.fault("no pass is lent")
            raise NoAccess("no pass is lent (sim)")
        self._store.perform(Replace(step.key, encoded(self.lend(step.run_id, step.for_s))))

    def left(self, run_id: str, before: int) -> list[str]:
        """The run's passes in the store that were lent before then, and are still good."""
        if not self._until:
            return []
        folder = places.passes(run_id)
        lent = {
            key: decoded(data).mark
            for key, data in self._store.objects.items()
            if key.startswith(folder)
        }
        return [
            key
            for key, mark in lent.items()
            if self._since[mark] < before and self._until[mark] > self._world.now
        ]

    def until(self, mark: str) -> int:
        """By the world's clock."""
        return self._until[mark]
