"""What clouds have rented to a run, by their own account: for how long, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

from tradewind.sim.world import World

if TYPE_CHECKING:
    from tradewind.sim.cloud import Rental, SimCloud, Ticket


class Rented:
    def __init__(self, world: World, run_id: str) -> None:
        self._world, self._run_id = world, run_id
        self.clouds: Mapping[str, SimCloud]
        self.first_leg = 1
        """Since the run was submitted or resumed."""

    def __iter__(self) -> Iterator[tuple[SimCloud, Rental]]:
        for cloud in self.clouds.values():
            for rental in cloud.rentals.values():
                if rental.machine.run_id == self._run_id:
                    yield cloud, rental

    def tickets(self) -> Iterator[tuple[SimCloud, str, Ticket]]:
        """What waits in a queue, by launch."""
        for cloud in self.clouds.values():
            for launch_id, ticket in cloud.tickets.items():
                if ticket.request.run_id == self._run_id:
                    yield cloud, launch_id, ticket

    def living(self) -> bool:
        return any(rental.ended is None for _, rental in self)

    def charged(self) -> int:
        return sum(cloud.charged(rental) for cloud, rental in self)

    def up_s(self) -> int:
        """One leg after another, in this life of the run."""
        return sum(end - began for began, end in self._spans())

    def at_once(self) -> int:
        """The most legs that were up at the same time, one and its relief: what passes while no
        controller looks counts for each."""
        changes = [change for began, end in self._spans() for change in ((began, 1), (end, -1))]
        return max([1, *accumulate(by for _, by in sorted(changes))])

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Of machines that stand for their legs."""
        for cloud, rental in self:
            machine = rental.machine
            if machine.leg >= self.first_leg and machine.rank == 0:
                end = self._world.now if rental.ended is None else rental.ended
                yield machine.launched_s - cloud.skew_s, end

    def paid_sets(self) -> float:
        """Sets of machines that are paid for now, used or not; a gang that was broken off half-way
        counts by its machines."""
        paid = 0.0
        for cloud, rental in self:
            machine, way = rental.machine, rental.way
            least_s = max(way.facts.billing_step_s, way.facts.billing_least_s)
            if machine.ended_s is None or cloud.clock < machine.launched_s + least_s:
                paid += 1 / way.nodes
        return paid
