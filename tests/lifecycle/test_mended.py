"""Ways in which runs once went wrong that the simulator does not try by itself."""

from __future__ import annotations

from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
    FAST,
    NOW,
    SPOT,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    found,
    requested,
    running,
    state_of,
    submitted,
    up,
    with_tokens,
)
from tradewind.lifecycle import decide
from tradewind.lifecycle.leg import STAY_S
from tradewind.lifecycle.money import exposed, spent
from tradewind.lifecycle.state import RunState
from tradewind.model.action import Record
from tradewind.model.event import (
    Ended,
    Event,
    LaunchRefused,
    LaunchUnknown,
    LegDraining,
    LegOver,
    LegRequested,
    Progress,
)


def events(state: RunState, seen: object, **more: object) -> list[object]:
    ways = state.spec.ways if state.spec else ()
    found = decide(state, seen, more.get("offers", ways), NOW)  # type: ignore[arg-type]
    return [getattr(action, "event", action) for action in found]


def test_a_speed_measured_elsewhere_is_not_forgotten() -> None:
    """It went to and fro: on the fast machines the slow ones looked as estimated again."""
    slow = Progress(leg=1, step=10.0, saved=0.0, rate=0.5)
    moved = LegOver(leg=1, cause="moved", reason="r")
    state = state_of(
        submitted(ways=(WAY, FAST), work=10_000.0, deadline_s=NOW + 8_000.0),
        requested(), found(a_machine()), up(), slow, moved,
        requested(2, FAST), found(a_machine("m2", 2)), up(2),
        Progress(leg=2, step=20.0, saved=0.0, rate=FAST.rate),
    )  # fmt: skip
    assert state.ratios[WAY.kind] == 0.5
    assert state.ratios[FAST.kind] == 1.0
    beats = (a_beat("m2", step=1000.0, rate=FAST.rate, leg=2),)
    seen = a_seen(a_machine("m2", 2), beats=beats, ago_s=STAY_S)
    assert not any(isinstance(event, LegDraining) for event in events(state, seen))


def test_no_move_to_what_could_not_be_bought() -> None:
    cheap = replace(WAY, zone="r1-b", price=WAY.price // 10)
    for budget, moves in ((1_650_000, False), (60_000_000, True)):
        state = running(ways=(WAY, cheap), work=5000.0, budget=budget)
        beats = (a_beat(step=100.0, rate=1.0),)
        seen = a_seen(a_machine(), beats=beats, ago_s=STAY_S, clock_s=CLOUD_S + 100)
        assert any(isinstance(e, LegRequested) for e in events(state, seen)) == moves


def test_a_refusal_after_an_unknown_launch_leaves_it_in_doubt() -> None:
    way = with_tokens()
    state = state_of(
        submitted(ways=(way,)),
        requested(1, way),
        LaunchUnknown(leg=1, reason="r"),
        LaunchRefused(leg=1, kind="throttled", reason="r"),
    )
    assert exposed(state, a_seen()) > spent(state, a_seen()) == 0


def test_a_thousand_refusals_are_waited_for_like_ten() -> None:
    refused: list[Event] = []
    for leg in range(1, 1200):
        refused += [requested(leg), LaunchRefused(leg=leg, kind="no_capacity", reason="r")]
    state = state_of(submitted(), *refused)
    assert state.barren == 1199
    assert isinstance(events(state, a_seen(ago_s=1e4))[-1], LegRequested)


def test_forty_ways_without_quota_end_a_run() -> None:
    ways = tuple(replace(WAY, zone=f"r1-{n}") for n in range(40))
    refused: list[Event] = []
    for leg, way in enumerate(ways, 1):
        refused += [requested(leg, way), LaunchRefused(leg=leg, kind="no_quota", reason="r")]
    (event,) = events(state_of(submitted(ways=ways), *refused), a_seen())
    assert isinstance(event, Ended)
    assert event.outcome == "failed"
    # Also where what is on offer is not what it was.
    (event,) = events(state_of(submitted(), *refused), a_seen(), offers=ways)
    assert isinstance(event, Ended)


def test_who_can_buy_nothing_of_it_leaves_it_to_others() -> None:
    assert events(state_of(submitted()), a_seen(), offers=()) == []


def test_moving_data_is_counted() -> None:
    way = replace(WAY, start_cost=7_000_000)
    state = running(way=way, ways=(way,))
    assert spent(state, a_seen(clock_s=CLOUD_S)) >= 7_000_000


def test_what_is_paid_at_a_cloud_that_does_not_answer_counts() -> None:
    """Three legs were interrupted within the hour that is paid at least. While nobody knows the
    cloud's time, they are taken for paid until they have been known for so long."""
    hourly = replace(SPOT, facts=replace(SPOT.facts, billing_step_s=3600))
    events: list[Event] = []
    for leg in (1, 2, 3):
        gone = LegOver(leg=leg, cause="interrupted", reason="reclaimed")
        events += [requested(leg, hourly), found(a_machine(f"m{leg}", leg)), gone]
    state = state_of(submitted(ways=(hourly,)), *events)

    def buys(ago_s: float) -> bool:
        actions = decide(state, a_seen(clock_s=None, ago_s=ago_s), (hourly,), NOW)
        return any(
            isinstance(each, Record) and isinstance(each.event, LegRequested) for each in actions
        )

    assert not buys(3599.0)
    assert buys(3600.0)
