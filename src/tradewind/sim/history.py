"""What has really happened to a run, for all who judge it: nothing is judged here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.model.event import Event
from tradewind.model.run import Request
from tradewind.sim.liar import OWN
from tradewind.sim.rented import Rented
from tradewind.sim.scenario import Scenario
from tradewind.sim.world import World

if TYPE_CHECKING:
    from tradewind.sim.job import SimJob

SKEW_S = 240
"""The clocks of those who decide may be wrong by so much."""
STALL_S = 300
"""So long may whoever decides have stalled since it looked."""


class History:
    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world, self.scenario = world, scenario
        self.run_id = scenario.run_id
        self.spec = scenario.spec  # as it is now
        self.rented = Rented(world, self.run_id)
        self.events: list[Event] = []
        self.since = 0  # the first event of the run's present life
        self.jobs: dict[int, SimJob] = {}
        self.requests: dict[int, Request] = {}
        self.moved = 0
        """Micro-dollars for what machines have moved out of or into the store's place."""
        self.heard: set[str] = set()
        """Machines that have ever reported."""
        self.cancelled = False
        self.cancelled_at: int | None = None
        self.lied = scenario.liar == OWN

    @property
    def of_life(self) -> list[Event]:
        """Events of the run's present life."""
        return self.events[self.since :]
