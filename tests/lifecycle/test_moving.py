"""Machines far from the store: what bringing the work there costs is known before it is bought, and
fits below the budget."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
    FACTS,
    NOW,
    SPEC,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    found,
    running,
    state_of,
    submitted,
    up,
)
from tradewind.lifecycle import decide, forecast, moving
from tradewind.lifecycle.money import exposed, hard_stop_s, kept_aside, needed, reserve, spent
from tradewind.lifecycle.state import RunState
from tradewind.model.action import Record
from tradewind.model.event import (
    Ended,
    Event,
    LegOver,
    LegRequested,
    MachineEnded,
    MachineUsed,
    Progress,
)
from tradewind.model.run import Way
from tradewind.model.timing import DRAIN_S
from tradewind.model.usage import GB, Rates, Usage, cost

RATES = Rates(gb_in=90_000, gb_out=90_000)
BYTES = 100 * GB
ONE = 9_000_000
"""To carry a checkpoint over, either way."""
FAR = replace(
    WAY, region="far", zone="far-a", rates=RATES, bring=ONE, bring_once=2 * ONE, save=6 * ONE
)
OVER = (
    LegOver(leg=1, cause="interrupted", reason="", saved=100.0),
    MachineEnded(machine=a_machine(ended_s=CLOUD_S + 60), reason=""),
)


def test_each_start_brings_the_data_and_later_ones_the_checkpoint() -> None:
    new = state_of(submitted(ways=(FAR,)))
    assert moving.start(new, FAR) == 2 * ONE
    assert moving.start(new, WAY) == 0
    there = running(*OVER, way=FAR)
    assert moving.start(there, FAR) == 3 * ONE
    assert moving.again(FAR) == 3 * ONE
    booked = replace(FAR, start_cost=7)
    assert (moving.start(new, booked), moving.again(booked)) == (2 * ONE + 7, 3 * ONE + 7)


@given(save=st.integers(0, 200 * ONE), lead_s=st.sampled_from([0, 60, 900]), never=st.booleans())
def test_what_is_bought_can_begin_and_save(save: int, lead_s: int, never: bool) -> None:
    """Where saving costs far more than machines, the reserve alone would buy minutes of nothing."""
    facts = replace(FACTS, billing_lead_s=lead_s, ends="never" if never else "itself")
    way = replace(FAR, save=save, facts=facts)
    state = state_of(submitted(ways=(way,)))
    least = needed(state, a_seen(), way)
    assert least >= reserve(state, way)
    most_s = hard_stop_s(way, least, None, 1e6, kept_aside(state, way))
    assert most_s >= way.start_s + DRAIN_S
    poor = state_of(submitted(ways=(way,), budget=least - 1))
    *_, event = [each.event for each in decide(poor, a_seen(), (way,), NOW) if type(each) is Record]
    assert isinstance(event, Ended)
    assert event.outcome == "out_of_budget"


def test_what_a_policy_is_told() -> None:
    ways = (FAR, replace(FAR, zone="far-b"), WAY)
    state = running(way=FAR, ways=ways)
    seen = a_seen(a_machine(), beats=(a_beat(step=10.0, rate=1.0),))
    asked = forecast.known(state, SPEC, seen, ways, NOW, None)
    assert [option.start_cost for option in asked.options] == [0, 3 * ONE, 0]
    assert [option.again_cost for option in asked.options] == [3 * ONE, 3 * ONE, 0]
    assert [option.price for option in asked.options] == [WAY.price + 6 * ONE] * 2 + [WAY.price]


def test_the_reserve_has_room_for_it() -> None:
    state = running(*OVER, way=FAR, checkpoint_bytes=BYTES)
    assert reserve(state, FAR) == reserve(state, WAY) + 3 * ONE + ONE  # the last save, too
    assert kept_aside(state, WAY) == 0


def test_what_is_exposed_has_room_for_a_last_save() -> None:
    over = LegOver(leg=1, cause="lost", reason="", saved=100.0)
    near, far = (running(over, way=way, checkpoint_bytes=BYTES) for way in (WAY, FAR))
    seen = a_seen()
    assert exposed(far, seen) - exposed(near, seen) >= ONE
    assert spent(far, seen) == spent(near, seen)  # nothing was measured, so nothing is booked


def test_what_cannot_be_paid_for_is_not_bought() -> None:
    """Its machines would fit the budget for an hour; its data would not."""
    for budget, bought in ((20_000_000, False), (40_000_000, True)):
        state = state_of(submitted(ways=(FAR,), budget=budget, checkpoint_bytes=BYTES))
        events = [each.event for each in decide(state, a_seen(), (FAR,), NOW)]  # type: ignore[union-attr]
        assert any(isinstance(event, LegRequested) for event in events) is bought
        assert any(isinstance(event, Ended) for event in events) is not bought


@given(
    price=st.sampled_from([0, 100_000, 3_600_000, 40_000_000]),
    nodes=st.integers(1, 8),
    gb_in=st.integers(0, 200_000),
    gb_out=st.integers(0, 200_000),
    checkpoint=st.integers(0, 2**40),
    data=st.integers(0, 2**42),
    every_s=st.integers(60, 14_400),
    times=st.floats(0.5, 6.0),
    step_s=st.sampled_from([1, 60]),
    lives=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=4),
)
@settings(max_examples=300, deadline=None)
def test_a_budget_is_kept_with_all_that_legs_measure(
    price: int,
    nodes: int,
    gb_in: int,
    gb_out: int,
    checkpoint: int,
    data: int,
    every_s: int,
    times: float,
    step_s: int,
    lives: list[float],
) -> None:
    """Legs one after another, each until a share of what it may be up, bring what they were
    expected to bring, and save as often, and once more."""
    rates = Rates(gb_in=gb_in, gb_out=gb_out)
    bring = cost(Usage(bytes_out=checkpoint), rates)
    way = replace(
        WAY,
        nodes=nodes,
        price=price,
        rates=rates,
        bring=bring,
        bring_once=cost(Usage(bytes_out=data), rates),
        save=-(-cost(Usage(bytes_in=checkpoint), rates) * 3600 // every_s),
        facts=replace(FACTS, billing_step_s=step_s),
    )
    budget = 1_000 + int(times * reserve(RunState(), way))  # about what a purchase needs
    spec = replace(SPEC, ways=(way,), budget=budget, checkpoint_bytes=checkpoint, work=1e7)
    events: list[Event] = [submitted(spec)]
    for leg, share in enumerate(lives, 1):
        state = state_of(*events)
        asked = _asked(state, way)
        if asked is None:
            break
        up_s = int(share * asked.request.hard_stop_s)
        read = data if leg == 1 else data + checkpoint
        moved = Usage(bytes_out=read, bytes_in=checkpoint * (up_s // every_s + 1))
        machines = [a_machine(f"m{leg}-{rank}", leg, rank) for rank in range(nodes)]
        ended = [replace(machine, ended_s=CLOUD_S + up_s) for machine in machines]
        events += [asked, found(*machines), up(leg)]
        events += [MachineUsed(machine_id=f"m{leg}-0", leg=leg, usage=moved)]
        events += [LegOver(leg=leg, cause="interrupted", reason="", saved=float(leg))]
        events += [MachineEnded(machine=machine, reason="") for machine in ended]
        assert spent(state_of(*events), _SURE) <= budget


_SURE = a_seen(ago_s=10**6)


def _asked(state: RunState, way: Way) -> LegRequested | None:
    records = [each.event for each in decide(state, _SURE, (way,), NOW) if isinstance(each, Record)]
    return next((event for event in records if isinstance(event, LegRequested)), None)


def test_what_is_measured_where_nothing_was_estimated_says_nothing_of_others() -> None:
    here = replace(WAY, provider="local", region="local", zone="", guessed=True)
    slow = Progress(leg=1, step=10.0, saved=10.0, rate=0.01)
    state = running(slow, way=here, ways=(WAY, here))
    assert (state.ratio_of(here), state.ratio_of(WAY)) == (0.01, 1.0)
    state = running(slow, ways=(WAY, here))
    assert (state.ratio_of(here), state.ratio_of(replace(WAY, zone="b"))) == (1.0, 0.01)
