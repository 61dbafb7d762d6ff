"""One account of money: what a plan reckons, a policy is told, a reserve and a hard stop keep back,
and the ledger books, is the same for any way."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import tradewind
from tests.lifecycle.builders import CLOUD_S, FACTS, NOW, SPEC, WAY, a_seen, state_of, submitted
from tradewind.api import moving
from tradewind.catalog import ratecard
from tradewind.ledger.postings import cost_of
from tradewind.lifecycle import forecast
from tradewind.lifecycle.money import hard_stop_s, kept_aside, needed, reserve, spent
from tradewind.lifecycle.state import RunState
from tradewind.model.event import (
    Event,
    LegOver,
    LegRequested,
    LegUp,
    MachineEnded,
    MachinesFound,
    MachineUsed,
)
from tradewind.model.offer import Market
from tradewind.model.plan import Plan
from tradewind.model.ratecard import Place
from tradewind.model.run import Machine, Request, Spec, Way
from tradewind.model.usage import GB, Rates, Usage, cost
from tradewind.planning import ways as plan_ways
from tradewind.planning.planner import Planner
from tradewind.planning.rates import Rates as PlanRates
from tradewind.providers import charges

HOUR = 3600
EVERY_S = 600
ASKED = 3000
"""What a supervisor asks of the store in an hour, each way."""


@st.composite
def a_way(draw: st.DrawFn) -> tuple[Way, int, int]:
    """With the sizes of its checkpoint and data."""
    checkpoint, data = draw(st.sampled_from([0, GB, 40 * GB])), draw(st.sampled_from([0, 90 * GB]))
    rates = Rates(
        writes=draw(st.sampled_from([0, 5_000_000])),
        reads=draw(st.sampled_from([0, 400_000])),
        gb_in=draw(st.sampled_from([0, 20_000])),
        gb_out=draw(st.sampled_from([0, 20_000, 90_000])),
    )
    disk, address = draw(st.sampled_from([0, 11_000])), draw(st.sampled_from([0, 5_000]))
    way = replace(
        WAY,
        market=draw(st.sampled_from(["spot", "on_demand"])),
        nodes=draw(st.integers(1, 4)),
        disk_price=disk,
        address_price=address,
        price=draw(st.integers(200_000, 60_000_000)) + disk + address,
        rates=rates,
        start_cost=draw(st.sampled_from([0, 700_000])),
        bring=cost(Usage(bytes_out=checkpoint), rates),
        bring_once=cost(Usage(bytes_out=data), rates),
        save=cost(Usage(bytes_in=checkpoint), rates) * HOUR // EVERY_S,
        facts=replace(FACTS, boot_timeout_s=draw(st.sampled_from([300, 900]))),
    )
    return way, checkpoint, data


def stay(spec: Spec, way: Way, leg: int, up_s: int, read: int, data: int) -> list[Event]:
    """A leg that is up for so long, reads what its start reads, saves as often as was thought, and
    once more in the end; and what its supervisors ask of the store."""
    launch = f"run-1-{leg}"
    machines = tuple(
        Machine(
            machine_id=f"m{leg}-{rank}", launch_id=launch, run_id="run-1", leg=leg, rank=rank,
            launched_s=CLOUD_S, ended_s=CLOUD_S + up_s,
        )
        for rank in range(way.nodes)
    )  # fmt: skip
    saved = spec.checkpoint_bytes * (up_s // EVERY_S + 1)
    many = ASKED * up_s // HOUR
    events: list[Event] = [
        LegRequested(
            request=Request(launch_id=launch, run_id="run-1", leg=leg, way=way, hard_stop_s=10**6),
            reason="",
        ),
        MachinesFound(machines=tuple(replace(m, ended_s=None) for m in machines), reason=""),
        LegUp(leg=leg, reason=""),
    ]
    for rank, machine in enumerate(machines):
        moved = {"bytes_in": saved, "bytes_out": read + data} if rank == 0 else {}
        used = Usage(writes=many, reads=many, **moved)
        events.append(MachineUsed(machine_id=machine.machine_id, leg=leg, usage=used))
    events.append(LegOver(leg=leg, cause="interrupted", reason="", saved=float(leg)))
    return [*events, *(MachineEnded(machine=machine, reason="") for machine in machines)]


def booked(events: list[Event]) -> int:
    return sum(posting.micros for posting in cost_of("run-1", events).postings)


@given(one=a_way(), hours=st.floats(0.5, 30), legs=st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_all_count_the_same(one: tuple[Way, int, int], hours: float, legs: int) -> None:
    way, checkpoint, data = one
    up_s = int(hours * HOUR)
    spec = replace(SPEC, ways=(way,), checkpoint_bytes=checkpoint, work=1e7)
    events: list[Event] = [submitted(spec)]
    for leg in range(1, legs + 1):
        before = state_of(*events)
        read = checkpoint if leg > 1 else 0
        # The policy's expectation of this very stay.
        [option] = forecast.known(before, spec, a_seen(), (way,), NOW, None).options
        expected = option.start_cost + option.price * up_s // HOUR
        then = booked(events)
        events += stay(spec, way, leg, up_s, read, data)
        paid = booked(events) - then
        last = cost(Usage(bytes_in=checkpoint), way.rates) if way.rates else 0
        assert paid == pytest.approx(expected + last, abs=way.save * EVERY_S // HOUR + 3_000)
        # The hard stop: with so much money it would have been up for as long at least.
        for_it = paid + 10_000
        most_s = hard_stop_s(way, for_it, None, 1e7, kept_aside(before, way))
        assert most_s <= up_s * 1.01 + 60
        assert _stayed(spec, way, events, leg, most_s, read, data) <= for_it
        # The reserve: a machine that never came up, and starts that read what they read.
        dud_s = way.facts.boot_timeout_s
        dud = _stayed(spec, way, events, leg, dud_s, 0, 0) - way.start_cost
        assert dud <= reserve(before, way) + last
        assert kept_aside(before, way) == option.start_cost + (last if way.save else 0)
        assert needed(before, a_seen(), way) <= max(
            reserve(before, way), needed_to_begin(way, before)
        )
    # And what a run has spent by its own fold is what the ledger says.
    assert spent(state_of(*events), a_seen(clock_s=CLOUD_S + up_s)) == booked(events)


def needed_to_begin(way: Way, state: RunState) -> int:
    hour = way.price_all * 1.1 + way.save + way.nodes * 70_000
    return kept_aside(state, way) + int(hour * (way.start_s + 600) / HOUR)


def _stayed(
    spec: Spec, way: Way, events: list[Event], leg: int, up_s: int, read: int, data: int
) -> int:
    """What one stay of another length costs."""
    before = [event for event in events if getattr(event, "leg", 0) != leg]
    alone: list[Event] = [before[0], *stay(spec, way, leg, up_s, read, data)]
    return booked(alone)


CARD, CATALOG = ratecard.card(), tradewind.catalog.load()
MODEL = tradewind.Train(model="llama-3.1-8b", steps=30_000, sequence=2048, global_batch=64)
MOMENT = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("provider", "data", "store"),
    [
        ("gcp", ("aws", "us-east-1"), None),  # far from its data, which its store is beside
        ("aws", None, None),  # of no data, and a store wherever the machines are
        ("aws", None, ("aws", "eu-central-1")),  # a store of ours, an ocean away
        ("aws", ("aws", "us-east-1"), ("gcp", "us-central1")),
        ("gcp", ("gcp", "us-central1"), ("aws", "us-east-1")),
    ],
)
def test_a_plan_counts_what_its_ways_will_be_charged(
    provider: str, data: Place | None, store: Place | None
) -> None:
    """Machines with their disk and address, requests, data and checkpoints, wherever the store is:
    as each cloud prices the plan's own ways."""
    lies = data and tradewind.Data(
        uri="s3://b/x", size_bytes=500_000_000_000, provider=data[0], region=data[1]
    )
    wanted = tradewind.Workload(
        name="w",
        train=MODEL,
        data=lies or None,
        run=tradewind.Job(command="python train.py"),
    )
    rates = PlanRates(CARD, charges.usual(CARD), store)
    made: list[Plan] = []
    markets: tuple[Market, ...] = ("spot", "on_demand")
    for market in markets:
        limits = tradewind.Limits(providers=(provider,), markets=(market,))
        planner = Planner(
            dataclasses.replace(wanted, limits=limits), CATALOG, now=MOMENT, rates=rates
        )
        made += planner.plans(explain=False).plans
    compared = set()
    for plan in made:
        if plan.on_demand_hours + plan.spot_hours < plan.checkpoint_every_s / HOUR:
            continue  # the last checkpoint alone, which a policy does not count
        spec = plan_ways.spec(plan, wanted, MOMENT)
        bucket = store or data or (plan.provider, plan.region)
        ways = {way.market: charged(spec, way, bucket, lies) for way in spec.ways}
        total, extra = 0.0, 0.0
        for market, held_h in (("on_demand", plan.on_demand_hours), ("spot", plan.spot_hours)):
            if held_h:
                way = ways[market]
                [option] = forecast.known(
                    state_of(submitted(spec)), spec, a_seen(), (way,), NOW, None
                ).options
                total += option.price * held_h
                extra += (way.disk_price + way.address_price) * way.nodes * held_h
                compared.add(market)
        way = next(iter(ways.values()))
        total += way.bring_once + plan.interruptions * (way.bring_once + way.bring)
        assert total == pytest.approx(plan.cost - plan.costs.get("storage", 0), rel=0.005)
        assert extra == pytest.approx(plan.costs["disk"] + plan.costs["address"], rel=0.005)
    assert compared == {"on_demand", "spot"}


def charged(spec: Spec, way: Way, bucket: Place, data: tradewind.Data | None) -> Way:
    """As its cloud does, but for the footprint, which is none."""
    extra = charges.usual(CARD)(way.provider, way.region, way.instance_type, way.market)
    rates = charges.store(CARD, (way.provider, way.region), bucket, 0)
    way = replace(charges.with_beside(CARD, spec, way, extra), rates=rates)
    made = moving.priced(spec, way, "s3://another/store")
    # Checkpoints as often as the plan has thought, and data as it has booked it.
    a_save = cost(Usage(bytes_in=spec.checkpoint_bytes), rates)
    return replace(
        made,
        start_cost=0,
        bring_once=way.bring_once,
        save=round(a_save * HOUR / (spec.checkpoint_every_s or HOUR)),
    )
