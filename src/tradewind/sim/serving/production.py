"""Our own policy on a trace: the `decide` that keeps services up, one look a period.

Nothing of it is written again here. Its replicas are simulated machines, its front counts what the
trace asks for, and its journal is kept in memory. It sees what a controller sees: machines that are
refused, notices, who is ready, the load until now.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tradewind.model.run import Way
from tradewind.model.service import (
    EngineSpec,
    FrontSpec,
    RuleChosen,
    ServiceCommit,
    ServiceEvent,
    ServiceSpec,
    ServiceSubmitted,
)
from tradewind.model.serving import Serving
from tradewind.services.action import Cancel, Record, Submit
from tradewind.services.decide import decide
from tradewind.services.fold import fold
from tradewind.services.replay import GIVE_UP_S, PERIOD_S, Replicas
from tradewind.services.scaling import BACK_S, periods
from tradewind.services.seen import FrontSeen, Seen, Told
from tradewind.sim.serving.machines import Machine, Machines
from tradewind.sim.serving.market import ON_DEMAND, Market

if TYPE_CHECKING:
    from tradewind.services.replay import Column
    from tradewind.sim.serving.demand import Demand

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_ROUNDS = 40
_ID = "svc"
"""Of the service."""
_MOST = 100_000
_BACK = BACK_S // PERIOD_S
_PATIENCE = int(GIVE_UP_S // PERIOD_S)
_WAITING = Told(phase="waiting", refused="no capacity")
_CLOSED = Told(phase="closed", outcome="cancelled")


@dataclass(frozen=True, slots=True)
class Served:
    """What became of it."""

    ready: Column
    """By period."""
    machines: Machines
    rules: int
    on_demand: float
    """Of the replica-seconds, the share that was not spot."""


def run(
    demand: Demand,
    kind: Replicas,
    goal: float,
    start: int,
    market: Market,
    spare: int = 0,
) -> Served:
    return _Run(demand, kind, goal, start, market, spare).run()


class _Run:
    def __init__(
        self,
        demand: Demand,
        kind: Replicas,
        goal: float,
        start: int,
        market: Market,
        spare: int,
    ) -> None:
        self._coming = periods(demand.load).tolist()
        self._load: list[float] = []
        """What the front had in it, in replicas."""
        self._behind = 0.0
        """Replica-seconds of work that wait."""
        asked = periods(demand.requests) * PERIOD_S
        self._asked = asked.tolist()
        self._kind, self._start = kind, start
        self._machines = Machines(market, kind, asked)
        self._state = fold(())
        self._since: dict[int, int] = {}
        self._runs: dict[str, Machine | None] = {}
        """Of every run that was submitted and is not closed; None: it waits for a machine."""
        self._closed: set[str] = set()
        self._now, self._rules = 0, 0
        self._on_demand = 0.0
        # Of those that were there before the trace began, too.
        self._ready_says = Serving(
            state="ready", host="sim", port=1, running=0, answered_s=kind.cold_s, up_s=kind.cold_s
        )
        spec = _spec(kind, goal, start, market, spare)
        self._spec = spec
        self._record([ServiceSubmitted(service_id=_ID, spec=spec)])

    def run(self) -> Served:
        import numpy as np

        ready = np.zeros(len(self._coming))
        for now, comes in enumerate(self._coming):
            self._now = now
            self._taken()
            for _ in range(_ROUNDS):  # a controller looks many times in a period
                if not self._look():
                    break
            there = ready[now] = self._ready()
            behind = max(self._behind + (comes - there) * PERIOD_S, 0.0)
            # As `load_of`: what comes, and what works off those who wait.
            self._load.append(comes + (self._behind + behind) / 2 / GIVE_UP_S)
            recent = self._coming[max(now - _PATIENCE, 0) : now + 1]
            self._behind = min(behind, sum(recent) * PERIOD_S)
        self._now += 1
        for machine in self._runs.values():
            if machine is not None:
                self._give_back(machine)
        all_s = self._machines.seconds
        return Served(ready, self._machines, self._rules, self._on_demand / all_s if all_s else 0.0)

    # -- a look ------------------------------------------------------------------------------------

    def _look(self) -> bool:
        """Whether anything was done: then there is more to see."""
        seen = Seen(
            service_id=_ID,
            known_s=self._known_s,
            replicas={run_id: self._told(run_id) for run_id in self._state.replicas},
            front=FrontSeen(),
            has_front=True,
            load=tuple(self._load[max(self._now - _BACK, 0) : self._now]),
            requests=tuple(self._asked[max(self._now - _BACK, 0) : self._now]),
        )
        for _ in range(_ROUNDS):
            actions = decide(self._state, seen, self._spec.ways, 0.0)
            events = [each.event for each in actions if isinstance(each, Record)]
            if not events:
                break
            self._record(events)
        done = False
        for action in actions:
            if isinstance(action, Submit):
                self._submit(action)
                done = True
            elif isinstance(action, Cancel) and action.run_id in self._runs:
                machine = self._runs.pop(action.run_id)
                if machine is not None:
                    self._give_back(machine)
                self._closed.add(action.run_id)
                done = True
        return done

    def _known_s(self, number: int) -> float:
        return (self._now - self._since.get(number, 0)) * PERIOD_S

    def _record(self, events: list[ServiceEvent]) -> None:
        number = self._state.number + 1
        self._since[number] = self._now
        self._rules += sum(isinstance(each, RuleChosen) for each in events)
        self._state = fold([ServiceCommit(1, number, "sim", _AT, tuple(events))], self._state)

    def _told(self, run_id: str) -> Told:
        if run_id in self._closed:
            return _CLOSED
        if run_id not in self._runs:
            return Told()
        machine = self._runs[run_id]
        if machine is None:
            return _WAITING
        lost = "its provider takes its machine" if self._now >= machine.noticed else ""
        if self._now < machine.ready:
            return Told(phase="active", lost=lost)
        return Told(phase="active", lost=lost, serving=self._ready_says)

    # -- its machines ------------------------------------------------------------------------------

    def _submit(self, action: Submit) -> None:
        """As its run would: the first way that is to be had."""
        machine = None
        for way in sorted(action.spec.ways, key=lambda each: each.price):
            zone = ON_DEMAND if way.market != "spot" else way.zone
            machine = self._machines.buy(zone, self._now, warm=self._now == 0)
            if machine is not None:
                break
        self._runs[action.run_id] = machine

    def _taken(self) -> None:
        """And those that still wait ask again."""
        for run_id, machine in list(self._runs.items()):
            if machine is not None and machine.taken <= self._now:
                self._give_back(machine)
                del self._runs[run_id]
                self._closed.add(run_id)
        self._closed &= self._state.replicas.keys()

    def _give_back(self, machine: Machine) -> None:
        before = self._machines.seconds
        self._machines.end(machine, self._now, self._ready() + 1)
        if machine.zone == ON_DEMAND:
            self._on_demand += self._machines.seconds - before

    def _ready(self) -> int:
        replicas = self._state.replicas
        return sum(
            each is not None
            and each.ready <= self._now < each.noticed
            and not replicas[run_id].leaving_at
            for run_id, each in self._runs.items()
        )


def _spec(kind: Replicas, goal: float, start: int, market: Market, spare: int) -> ServiceSpec:
    def way(zone: str, name: str, price: float) -> Way:
        return Way(
            provider="sim", region="", zone=zone, instance_type="m", market=name, nodes=1,
            price=round(price), rate=1.0, start_s=float(kind.cold_s),
        )  # fmt: skip

    spot = [
        way(zone, "spot", price)
        for zone, price in zip(market.zones, market.price.mean(axis=1), strict=True)
    ]
    return ServiceSpec(
        name=_ID,
        model=_ID,
        front=FrontSpec(port=1),
        engine=EngineSpec(job={}, drain_s=kind.drain_s),
        ways=(*spot, way(ON_DEMAND, "on_demand", market.on_demand)),
        start=start,
        fewest=1,
        most=_MOST,
        spare=spare,
        goal=goal,
        slack_s=kind.slack_s,
    )
