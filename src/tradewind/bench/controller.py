"""How long a controller's pass over many idle runs takes, against a store that is far away.

Every run is under way on one machine, and nothing is to be done for it: its journal ends with a
leg that is running, the provider lists its machine, and its heartbeat has changed since the last
pass. The store is in memory, and each request takes as long as to a bucket in the same region.

Machines are made up, or those that a real provider lists (`found`): then a pass asks it as any
controller would, and nothing is launched or ended there.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from typing import Any

from msgspec import json
from msgspec.structs import replace

from tradewind.base import clock
from tradewind.base.errors import NotFound
from tradewind.bench.slow import Slow, pages_of
from tradewind.controller import Controller, drive
from tradewind.journal import journal
from tradewind.lifecycle.leg import STAY_S
from tradewind.model import places
from tradewind.model.event import Event, LegRequested, LegUp, MachinesFound, Progress, Submitted
from tradewind.model.run import Facts, Heartbeat, Listing, Machine, Request, Spec, Way
from tradewind.providers.base import Provider, Refused
from tradewind.store.base import Store
from tradewind.store.memory import MemoryStore

LATENCY_S = 0.020
PASS_LIMIT_S = 10.0
REQUESTS_LIMIT = 2.0
PEAK_LIMIT_MB = 1000.0
_FACTS = Facts(tokens=True)
_DAY_S = 86_400


class Idle:
    """A provider that sells nothing."""

    requests = 0

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        raise Refused("not_allowed", "idle runs buy nothing")

    def terminate(self, machine_ids: Sequence[str]) -> None:
        raise Refused("not_allowed", "idle runs end nothing")


class Fleet(Idle):
    """Lists what there is, a page after another."""

    def __init__(self, machines: Sequence[Machine], at_s: int, latency_s: float) -> None:
        self._listing = Listing(at_s=at_s, machines=tuple(machines))
        self._latency_s = latency_s
        self.requests = 0

    def list_machines(self) -> Listing:
        pages = pages_of(len(self._listing.machines))
        self.requests += pages
        clock.sleep(self._latency_s * pages)
        return self._listing


class Found(Idle):
    """Lists what a real one does."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.list_s = 0.0

    def list_machines(self) -> Listing:
        start = clock.stopwatch()
        found = self._provider.list_machines()
        self.list_s = clock.stopwatch() - start
        return found


def measure(
    runs: int = 10_000,
    *,
    workers: int = drive.WORKERS,
    latency_s: float = LATENCY_S,
    found: Provider | None = None,
) -> dict[str, Any]:
    """`requests_per_run` are those to the store for a run of its own; `look_requests` are those of
    the pass as a whole, to the store and to the provider. `found`: a provider whose machines are
    taken for those of idle runs, a run a machine; `runs` of them at most."""
    store = MemoryStore()
    now = clock.now().timestamp()
    fleet: Fleet | Found
    if found is None:
        names = [f"run-{number:07d}" for number in range(runs)]
        machines = [_begin(store, _machine(name, now), now) for name in names]
        fleet = Fleet(machines, int(now), latency_s)
    else:
        machines = _one_each(found.list_machines().machines)[:runs]
        for machine in machines:
            _begin(store, machine, now)
        fleet = Found(found)
    runs = len(machines)
    if not runs:
        raise NotFound("there is no machine of a run: the provider lists none that goes on")
    slow = Slow(store, latency_s)
    waited = [0.0]
    controller = Controller(
        "ctl-bench",
        ("cloud",),
        clock=lambda: clock.now().timestamp(),
        watch=lambda: clock.stopwatch() + waited[0],
    )
    perform = drive.performer(slow, {"cloud": fleet})

    def one_pass() -> tuple[float, int, int]:
        """Seconds, requests for single runs, requests for the pass."""
        before, in_all = slow.requests("runs"), slow.requests() + fleet.requests
        start = clock.stopwatch()
        troubles = drive.whole_pass(controller, perform, workers=workers)
        taken = clock.stopwatch() - start
        assert not troubles, troubles[0]
        for_runs = slow.requests("runs") - before
        return taken, for_runs, slow.requests() + fleet.requests - in_all - for_runs

    cold_s, cold_requests, _ = one_pass()
    for machine in machines:
        _beat(store, machine, 2)
    # Legs that have just begun are not asked whether to move: let it be later than that.
    waited[0] = STAY_S + 60.0
    pass_s, requests, look_requests = one_pass()
    assert not slow.changes(), "the runs were not idle"
    listed = {"list_s": round(fleet.list_s, 3)} if isinstance(fleet, Found) else {}
    return {
        "runs": runs,
        "pass_s": round(pass_s, 3),
        **listed,
        "requests_per_run": round(requests / runs, 3),
        "peak_mb": round(_peak_mb(), 1),
        "look_requests": look_requests,
        "cold_pass_s": round(cold_s, 3),
        "cold_requests_per_run": round(cold_requests / runs, 3),
        "workers": workers,
        "latency_ms": round(1e3 * latency_s, 3),
    }


def _one_each(machines: Sequence[Machine]) -> list[Machine]:
    """Of each run the first machine that goes on, as if it were all of it."""
    found: dict[str, Machine] = {}
    for machine in machines:
        if machine.ended_s is None:
            found.setdefault(machine.run_id, machine)
    return list(found.values())


def _machine(name: str, now: float) -> Machine:
    return Machine(
        machine_id=f"m-{name}", launch_id=f"{name}-1", run_id=name, leg=1, rank=0,
        launched_s=int(now) - 3600,
    )  # fmt: skip


def _begin(store: Store, machine: Machine, now: float) -> Machine:
    """A run that has been under way for an hour, with a deadline, a budget and somewhere else to
    go, so that deciding takes what it takes."""
    name = machine.run_id
    way = Way(
        provider="cloud", region="r1", zone="r1-a", instance_type="small", market="spot", nodes=1,
        price=2_000_000, rate=1.0, start_s=300.0, facts=_FACTS,
    )  # fmt: skip
    spec = Spec(
        name=name,
        work=float(_DAY_S),
        ways=(way, replace(way, zone="r1-b"), replace(way, market="on_demand", price=6_000_000)),
        deadline_s=now + 3 * _DAY_S,
        budget=500_000_000,
    )
    request = Request(
        launch_id=machine.launch_id, run_id=name, leg=machine.leg, way=way, hard_stop_s=7 * _DAY_S
    )  # fmt: skip
    events: list[Event] = [
        Submitted(run_id=name, spec=spec),
        LegRequested(request=request, reason="the cheapest that makes the deadline"),
        MachinesFound(machines=(machine,), reason="the provider launched them"),
        LegUp(leg=machine.leg, reason="every supervisor has reported"),
        Progress(leg=machine.leg, step=3000.0, saved=3000.0, rate=1.0),
    ]
    at = journal.moment(now)
    store.create(places.LIVE + name, b"{}")
    for number, event in enumerate(events, 1):
        journal.append(store, name, number, writer="ctl-bench", at=at, events=[event])
    _beat(store, machine, 1)
    return machine


def _beat(store: Store, machine: Machine, beat: int) -> None:
    heartbeat = Heartbeat(
        machine_id=machine.machine_id, leg=machine.leg, beat=beat, uptime_s=3500.0 + 30 * beat,
        doing="working", step=3000.0 + 30 * beat, rate=1.0, saved=3000.0,
    )  # fmt: skip
    store.replace(places.heartbeat(machine.run_id, machine.machine_id), json.encode(heartbeat))


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
