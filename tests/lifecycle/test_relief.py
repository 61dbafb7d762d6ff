"""The next leg while the one before it is drained."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import (
    FACTS,
    NOW,
    SPOT,
    a_beat,
    a_machine,
    a_seen,
    commits,
    found,
    requested,
    running,
    state_of,
    submitted,
    up,
)
from tradewind.base.errors import BadFile
from tradewind.lifecycle import RunState, fold
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.seen import Seen
from tradewind.model.action import Launch, Record, Terminate
from tradewind.model.event import (
    CancelAsked,
    Ended,
    Event,
    LaunchRefused,
    LegDraining,
    LegOver,
    LegRequested,
)
from tradewind.model.run import Way
from tradewind.model.timing import DRAIN_S

NOTICED = replace(FACTS, notice_s=120, tokens=True)
HERE = replace(SPOT, facts=NOTICED, start_s=150.0)
THERE = replace(HERE, zone="r1-b", price=1_300_000)
TAKEN = LegDraining(leg=1, cause="interrupted", reason="interruption notice for machine m1")
SAVES = a_beat(doing="saving", step=900.0, saved=600.0, notice=True)
DONE = a_beat(doing="stopped", step=900.0, saved=900.0, notice=True, reason="it has saved")
RELIEF = requested(2, THERE, relieves=1)
NEXT = a_machine("m2", leg=2)


def drained(*more: Event, ways: tuple[Way, ...] = (HERE, THERE), **spec: Any) -> RunState:
    return running(TAKEN, *more, way=HERE, ways=ways, **spec)


def records(state: RunState, seen: Seen) -> list[Event]:
    ways = state.spec.ways if state.spec else ()
    return [a.event for a in decide(state, seen, ways, NOW) if isinstance(a, Record)]


def test_it_is_asked_for_elsewhere_while_the_old_one_saves() -> None:
    (asked,) = records(drained(), a_seen(beats=(SAVES,)))
    assert isinstance(asked, LegRequested)
    assert (asked.request.leg, asked.request.relieves) == (2, 1)
    assert asked.request.way == THERE
    assert "while leg 1 saves" in asked.reason


def test_both_are_under_way_and_neither_is_ended() -> None:
    state = drained(RELIEF)
    assert [leg.number for leg in state.legs] == [1, 2]
    (launch,) = decide(state, a_seen(beats=(SAVES,)), (HERE, THERE), NOW)
    assert launch == Launch(RELIEF.request, "the purchase is recorded, and nothing carries its id")
    up = drained(RELIEF, found(NEXT))
    assert up.claimed == ("m1", "m2")
    seen = a_seen(a_machine(), NEXT, beats=(SAVES, a_beat("m2", "setup", leg=2)))
    assert decide(up, seen, (HERE, THERE), NOW) == []


def test_it_takes_over_when_the_old_one_is_over() -> None:
    state = drained(RELIEF, found(NEXT))
    (over,) = records(state, a_seen(beats=(DONE,)))
    assert isinstance(over, LegOver)
    then = drained(RELIEF, found(NEXT), over)
    assert then.leg is not None
    assert then.relief is None
    assert (then.leg.number, then.leg.state, then.leg.began_at) == (2, "booting", 900.0)
    assert then.phase == "active"
    seen = a_seen(a_machine(), NEXT, beats=(a_beat("m2", "setup", leg=2),))
    assert records(then, seen) == [up(2)]
    doings = decide(drained(RELIEF, found(NEXT), over, up(2)), seen, (HERE, THERE), NOW)
    assert doings == [Terminate("cloud", ("m1",), "no live leg claims them")]


@pytest.mark.parametrize(
    ("way", "asked"),
    [
        (THERE, True),
        (replace(THERE, start_s=119.0), False),  # it would wait, and be paid for it
        (replace(THERE, start_s=120.0), True),
        (replace(HERE, price=1), False),  # where machines are just being taken
    ],
)
def test_only_where_it_costs_nothing(way: Way, asked: bool) -> None:
    state = drained(ways=(HERE, way))
    found = records(state, a_seen(beats=(SAVES,)))
    assert bool(found) is asked


def test_the_later_the_less_it_has_to_wait() -> None:
    quick = replace(THERE, start_s=100.0)
    state = drained(ways=(HERE, quick))
    assert records(state, a_seen(beats=(SAVES,), ago_s=19.0)) == []
    assert records(state, a_seen(beats=(SAVES,), ago_s=20.0)) != []


def test_a_move_may_take_as_long_as_it_may() -> None:
    moved = LegDraining(leg=1, cause="moved", reason="there is a better way")
    slow = replace(THERE, start_s=float(DRAIN_S), price=1_000_000)
    for way, asked in ((slow, True), (replace(slow, start_s=DRAIN_S - 1.0), False)):
        state = running(moved, way=HERE, ways=(HERE, way))
        beats = (a_beat(doing="saving", step=900.0),)
        assert bool(records(state, a_seen(beats=beats))) is asked


@pytest.mark.parametrize("cause", ["cancelled", "too_late", "too_long", "idle"])
def test_a_leg_that_ends_for_good_is_not_relieved(cause: str) -> None:
    state = running(replace(TAKEN, cause=cause), way=HERE, ways=(HERE, THERE))
    assert records(state, a_seen(beats=(SAVES,))) == []


def test_nothing_is_bought_after_the_users_no() -> None:
    state = drained(CancelAsked(reason="the user asked for it"))
    assert records(state, a_seen(beats=(SAVES,))) == []


def test_one_that_was_refused_is_asked_for_again_after_a_while() -> None:
    refused = LaunchRefused(leg=2, kind="no_capacity", reason="none there")
    third = replace(HERE, zone="r1-c", price=1_400_000)
    state = drained(RELIEF, refused, ways=(HERE, THERE, third))
    assert (state.relief, state.barren) == (None, 1)
    assert state.leg is not None
    assert state.leg.number == 1
    assert records(state, a_seen(beats=(SAVES,), ago_s=14.0)) == []
    (asked,) = records(state, a_seen(beats=(SAVES,), ago_s=15.0))
    assert isinstance(asked, LegRequested)
    assert (asked.request.leg, asked.request.way) == (3, third)


def test_where_the_quota_has_room_for_one_leg_it_comes_after_it() -> None:
    refused = LaunchRefused(leg=2, kind="no_quota", reason="too many machines")
    state = drained(RELIEF, refused)
    for ago_s in (0.0, 60.0, 110.0):
        assert records(state, a_seen(beats=(SAVES,), ago_s=ago_s)) == []
    over, *_ = records(state, a_seen(beats=(DONE,)))
    (asked,) = records(drained(RELIEF, refused, over), a_seen())
    assert isinstance(asked, LegRequested)
    assert (asked.request.way, asked.request.relieves) == (THERE, 0)


def test_a_job_that_ends_well_after_all_needs_it_no_more() -> None:
    state = drained(RELIEF, found(NEXT))
    finished = (a_beat(doing="finished", step=3600.0, notice=True),)
    over, unneeded, ended = records(state, a_seen(beats=finished))
    assert isinstance(over, LegOver)
    assert over.cause == "finished"
    assert isinstance(unneeded, LegOver)
    assert (unneeded.leg, unneeded.cause) == (2, "not_needed")
    assert isinstance(ended, Ended)
    assert ended.outcome == "succeeded"
    then = drained(RELIEF, found(NEXT), over, unneeded, ended)
    assert (then.phase, then.step, then.troubles) == ("ended", 3600.0, 0)
    (terminate,) = decide(then, a_seen(a_machine(), NEXT), (HERE, THERE), NOW)
    assert isinstance(terminate, Terminate)
    assert set(terminate.machine_ids) == {"m1", "m2"}


def test_the_budget_must_bear_both() -> None:
    """What the old one may still cost while it saves is kept, besides what it may after."""
    at_once = 10_000
    while not records(drained(budget=at_once), a_seen(beats=(SAVES,))):
        at_once += 10_000
    over = LegOver(leg=1, cause="interrupted", reason="r", saved=900.0)
    later = 10_000
    while not any(
        isinstance(e, LegRequested)
        for e in records(running(TAKEN, over, way=HERE, ways=(HERE, THERE), budget=later), a_seen())
    ):
        later += 10_000
    saving = HERE.price * DRAIN_S // 3600
    assert abs(at_once - later - saving) <= 10_000


def test_a_journal_that_relieves_what_is_not_drained_is_refused() -> None:
    for events in (
        (submitted(ways=(HERE, THERE)), requested(1, HERE), requested(2, THERE, relieves=1)),
        (submitted(ways=(HERE, THERE)), requested(1, HERE, relieves=1)),
        (*_drained(), requested(2, THERE, relieves=3)),
        (*_drained(), RELIEF, requested(3, THERE, relieves=1)),
    ):
        with pytest.raises(BadFile):
            fold(commits(*events))
    assert state_of(*_drained(), RELIEF).relief is not None


def _drained() -> tuple[Event, ...]:
    return submitted(ways=(HERE, THERE)), requested(1, HERE), found(), up(), TAKEN
