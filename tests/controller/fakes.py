"""A cloud and its machines for one test at a time: they do what they are told, and fail on request.

`World` drives the product's generators over a real store, counts what they ask for, and moves time
only when the test says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import CLOUD_S, NOW, SPEC, a_beat
from tradewind.base import steps
from tradewind.base.errors import TradewindError
from tradewind.controller import Controller
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Event
from tradewind.model.run import Listing, Machine, Queued, Request, Spec
from tradewind.providers.base import LaunchMachines, ListAll, ListMachines, TerminateMachines
from tradewind.store.memory import MemoryStore
from tradewind.store.steps import performer


class FakeProvider:
    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.launches: list[Request] = []
        self.terminated: list[str] = []
        self.at_s = CLOUD_S
        self.next_error: dict[str, TradewindError] = {}
        """By name of the call: the next one fails so, before it does anything."""
        self.lose_answer: TradewindError | None = None
        """The next launch buys, and fails so."""
        self.queues = False
        """Launches wait, for ever."""
        self.queued: list[Queued] = []

    def list_machines(self) -> Listing:
        self._fail("list")
        machines = tuple(self.machines.values())
        return Listing(at_s=self.at_s, machines=machines, queued=tuple(self.queued))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        self._fail("launch")
        same = [m for m in self.machines.values() if m.launch_id == request.launch_id]
        if same and request.way.facts.tokens:
            return same
        self.launches.append(request)
        if self.queues:
            waits = Queued(launch_id=request.launch_id, run_id=request.run_id, leg=request.leg)
            self.queued.append(waits)
            return []
        bought = [
            Machine(
                machine_id=f"m{len(self.machines) + 1 + rank}",
                launch_id=request.launch_id,
                run_id=request.run_id,
                leg=request.leg,
                rank=rank,
                launched_s=self.at_s,
            )
            for rank in range(request.way.nodes)
        ]
        self.machines |= {machine.machine_id: machine for machine in bought}
        if self.lose_answer:
            error, self.lose_answer = self.lose_answer, None
            raise error
        return bought

    def terminate(self, machine_ids: Sequence[str]) -> None:
        self._fail("terminate")
        for name in machine_ids:
            self.terminated.append(name)
            if name in self.machines and self.machines[name].ended_s is None:
                self.end(name)

    def end(self, name: str) -> None:
        self.machines[name] = replace(self.machines[name], ended_s=self.at_s)

    def _fail(self, call: str) -> None:
        error = self.next_error.pop(call, None)
        if error:
            raise error


class World:
    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.cloud = FakeProvider()
        self.passed_s = 0.0
        self.reports = 0
        self.asked: Counter[str] = Counter()
        """How often each kind of step was asked for, since the test last cleared it."""
        self.meanwhile: Callable[[Any], None] | None = None
        """Happens before each step is done, but for its own."""
        self._perform = performer(self.store)

    def controller(self, writer: str = "w1") -> Controller:
        return Controller(
            writer,
            ("cloud",),
            clock=lambda: NOW + self.passed_s,
            watch=lambda: self.passed_s,
        )

    def wait(self, seconds: float) -> None:
        self.passed_s += seconds
        self.cloud.at_s += int(seconds)

    def perform(self, step: Any) -> Any:
        happens, self.meanwhile = self.meanwhile, None
        if happens:
            happens(step)
            self.meanwhile = happens
        self.asked[type(step).__name__] += 1
        if isinstance(step, ListAll):
            return dict.fromkeys(step.providers, self.cloud.list_machines())
        if isinstance(step, ListMachines):
            return self.cloud.list_machines()
        if isinstance(step, LaunchMachines):
            return self.cloud.launch(step.request, step.after)
        if isinstance(step, TerminateMachines):
            return self.cloud.terminate(step.machine_ids)
        return self._perform(step)

    def run(self, generator: steps.Steps[Any]) -> Any:
        return steps.run(generator, self.perform)

    def submit(self, controller: Controller, run_id: str = "run-1", spec: Spec = SPEC) -> bool:
        submitted: bool = self.run(controller.submit(run_id, spec))
        return submitted

    def whole_pass(self, controller: Controller) -> list[tuple[str, TradewindError]]:
        troubles: list[tuple[str, TradewindError]] = self.run(controller.whole_pass())
        return troubles

    def beat(self, name: str, doing: str = "working", run_id: str = "run-1", **more: Any) -> None:
        """The machine reports."""
        self.reports += 1
        told = {"beat": self.reports, "uptime_s": 60.0 + self.reports} | more
        data = json.encode(a_beat(name, doing, **told))
        self.store.replace(places.heartbeat(run_id, name), data)

    def events(self, run_id: str = "run-1") -> list[Event]:
        return [event for c in journal.read(self.store, run_id) for event in c.events]

    def types(self, run_id: str = "run-1") -> list[str]:
        return [type(event).__name__ for event in self.events(run_id)]
