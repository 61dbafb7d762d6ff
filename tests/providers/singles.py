"""A cloud that sells machines singly and fails on request."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import Refused


class FakeSingles:
    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.fails: dict[int, Exception] = {}
        """By rank, what buying it raises."""
        self.bought_anyway: set[int] = set()
        """Of these, the ranks that are bought nevertheless."""
        self.stuck = False
        """Nothing can be terminated now."""
        self.now_s = 1000

    def list_machines(self) -> Listing:
        return Listing(at_s=self.now_s, machines=tuple(self.machines.values()))

    def launch_one(self, request: Request, rank: int, after: int, key: str) -> Machine:
        trouble = self.fails.pop(rank, None)
        if trouble is None or rank in self.bought_anyway:
            name = f"fake-{request.launch_id}-{rank}"
            assert name not in self.machines, "bought twice"
            self.machines[name] = Machine(
                machine_id=name,
                launch_id=request.launch_id,
                run_id=request.run_id,
                leg=request.leg,
                rank=rank,
                launched_s=self.now_s,
            )
        if trouble is not None:
            raise trouble
        return self.machines[name]

    def terminate(self, machine_ids: Sequence[str]) -> None:
        if self.stuck:
            raise Refused("throttled", "too many requests")
        for name in machine_ids:
            self.machines.pop(name, None)
