"""Small values that the tests of runs, their money, controllers and supervisors start from.

A machine costs 1,000 micro-dollars a second, and a unit of work takes one second: figures in the
tests can be reckoned in the head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import json
from msgspec.structs import replace

from tradewind.lifecycle import RunState, fold
from tradewind.lifecycle.seen import Seen
from tradewind.model.event import (
    Commit,
    Event,
    LegRequested,
    LegUp,
    MachinesFound,
    Submitted,
)
from tradewind.model.run import Facts, Heartbeat, Machine, Request, Spec, Way
from tradewind.sim.faults import RUN, simulate

AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
NOW = 1_800_000_000.0
CLOUD_S = 5_000
"""The provider's clock: nobody else's."""
FACTS = Facts(boot_timeout_s=600, billing_step_s=1, billing_lead_s=60, listing_lag_s=120)
WAY = Way(
    provider="cloud",
    region="r1",
    zone="r1-a",
    instance_type="small",
    market="on_demand",
    nodes=1,
    price=3_600_000,
    rate=1.0,
    start_s=300.0,
    facts=FACTS,
)
SPOT = replace(WAY, market="spot", price=1_200_000)
FAST = replace(WAY, zone="r1-c", instance_type="large", price=7_200_000, rate=2.0)
SPEC = Spec(name="test", work=3600.0, ways=(WAY,))


def with_tokens(way: Way = WAY) -> Way:
    return replace(way, facts=replace(way.facts, tokens=True))


def a_request(leg: int = 1, way: Way = WAY, run_id: str = RUN, **more: Any) -> Request:
    request = Request(
        launch_id=f"{run_id}-{leg}", run_id=run_id, leg=leg, way=way, hard_stop_s=36_000
    )
    return replace(request, **more)


def a_machine(name: str = "m1", leg: int = 1, rank: int = 0, **more: Any) -> Machine:
    machine = Machine(
        machine_id=name,
        launch_id=f"{RUN}-{leg}",
        run_id=RUN,
        leg=leg,
        rank=rank,
        launched_s=CLOUD_S,
    )
    return replace(machine, **more)


def a_beat(name: str = "m1", doing: str = "working", **more: Any) -> Heartbeat:
    return replace(Heartbeat(machine_id=name, leg=1, beat=1, uptime_s=60.0, doing=doing), **more)


def submitted(spec: Spec = SPEC, **more: Any) -> Submitted:
    return Submitted(run_id=RUN, spec=replace(spec, **more))


def requested(leg: int = 1, way: Way = WAY, **more: Any) -> LegRequested:
    return LegRequested(request=a_request(leg, way, **more), reason="it is the cheapest")


def found(*machines: Machine) -> MachinesFound:
    return MachinesFound(machines=machines or (a_machine(),), reason="the provider launched them")


def up(leg: int = 1) -> LegUp:
    return LegUp(leg=leg, reason="every supervisor has reported")


def commits(*events: Event) -> list[Commit]:
    """One for each event."""
    return [Commit(1, number, "w1", AT, (event,)) for number, event in enumerate(events, 1)]


def state_of(*events: Event) -> RunState:
    return fold(commits(*events))


def booting(*more: Event, way: Way = WAY, **spec: Any) -> RunState:
    """The first leg, all of whose machines (m1, m2, …) were found, and what came after."""
    machines = [a_machine(f"m{n + 1}", rank=n) for n in range(way.nodes)]
    first = submitted(**({"ways": (way,)} | spec))
    return state_of(first, requested(way=way), found(*machines), *more)


def running(*more: Event, way: Way = WAY, **spec: Any) -> RunState:
    return booting(up(), *more, way=way, **spec)


def a_seen(
    *machines: Machine,
    beats: tuple[Heartbeat, ...] = (),
    silent_s: Mapping[str, float] | None = None,
    ago_s: float | Callable[[int], float] = 0.0,
    clock_s: int | None = CLOUD_S,
    **more: Any,
) -> Seen:
    """By one observer; `ago_s` is how long it has known each commit, `clock_s` what the provider's
    clock showed, None where it could not be asked."""
    silent = silent_s or {}
    return Seen(
        run_id=RUN,
        known_s=ago_s if callable(ago_s) else lambda number: ago_s,
        listed={machine.machine_id: ("cloud", machine) for machine in machines},
        clocks={} if clock_s is None else {"cloud": clock_s},
        beats={beat.machine_id: (beat, silent.get(beat.machine_id, 0.0)) for beat in beats},
        **more,
    )


FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
decoded = json.Decoder(Commit).decode


@cache
def simulated(seed: int) -> tuple[Commit, ...]:
    """The journal of a simulated run: what controllers really write, in all their trouble."""
    objects = simulate(seed).objects
    prefix = f"runs/{RUN}/journal/"
    return tuple(decoded(objects[key]) for key in sorted(objects) if key.startswith(prefix))


def sample(name: str) -> list[Commit]:
    """A journal as it was written once: a commit on each line."""
    return [decoded(line) for line in (FOLDER / f"{name}.jsonl").read_bytes().splitlines()]
