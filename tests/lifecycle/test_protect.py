"""Budgets of months, thresholds, idle jobs, and the longest that machines may be up."""

from __future__ import annotations

import pytest

from tests.lifecycle.builders import (
    CLOUD_S,
    SPOT,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    booting,
    running,
    state_of,
    submitted,
)
from tests.lifecycle.test_decide import answer, events, one, over
from tradewind.lifecycle import RunState
from tradewind.lifecycle.seen import Month
from tradewind.model.action import Terminate
from tradewind.model.event import (
    Closed,
    Ended,
    Event,
    LegDraining,
    LegOver,
    LegRequested,
    MachineEnded,
    Resumed,
    Warned,
)

USD = 10**6


def a_month(cap: int | None, share: float = 0.0, number: int = 202611) -> Month:
    return Month(number=number, share=share, words="$1.00 left", cap=cap)


def said(about: str, level: int) -> Warned:
    return Warned(about=about, level=level, reason="r")


def ended(seconds: int) -> MachineEnded:
    machine = a_machine(ended_s=CLOUD_S + seconds)
    return MachineEnded(machine=machine, reason="its provider says so")


# -- the project's month ---------------------------------------------------------------------------


def test_a_run_whose_project_is_poor_waits_and_says_so_once_a_month() -> None:
    waits = state_of(submitted())
    event = one(waits, a_seen(month=a_month(cap=USD)))
    assert isinstance(event, Warned)
    assert event.about == "waiting"
    assert "$1.00 left; $1." in event.reason
    assert event.reason.endswith("is needed for the next launch")
    told = state_of(submitted(), event)
    assert events(told, a_seen(month=a_month(cap=USD))) == []
    again = one(told, a_seen(month=a_month(cap=USD, number=202612)))
    assert isinstance(again, Warned)


def test_it_buys_when_there_is_money_again_and_no_longer_than_that_lasts() -> None:
    told = state_of(submitted(work=360_000.0), said("waiting", 202611))
    event = one(told, a_seen(month=a_month(cap=4 * USD)))
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == int(0.99 * 4000) - 2 * 60
    free = one(told, a_seen(month=a_month(cap=None)))
    assert isinstance(free, LegRequested)
    assert free.request.hard_stop_s > 36_000


def test_a_cheaper_way_is_bought_where_the_month_allows_no_other() -> None:
    state = state_of(submitted(ways=(WAY, SPOT)))
    event = one(state, a_seen(month=a_month(cap=USD)))
    assert isinstance(event, LegRequested)
    assert event.request.way.market == "spot"


def test_its_own_budget_ends_a_run_though_its_project_is_rich() -> None:
    state = state_of(submitted(budget=USD), said("budget", 100))
    recorded = events(state, a_seen(month=a_month(cap=100 * USD)))
    assert isinstance(recorded[-1], Ended)
    assert recorded[-1].outcome == "out_of_budget"


@pytest.mark.parametrize(("share", "level"), [(0.49, None), (0.5, 50), (0.85, 80), (1.2, 100)])
def test_how_the_month_stands_is_said_at_each_threshold(share: float, level: int | None) -> None:
    seen = a_seen(beats=(a_beat(),), month=a_month(cap=None, share=share))
    found = events(running(), seen)
    assert [e.level for e in found if isinstance(e, Warned)] == (
        [] if level is None else [202_611_000 + level]
    )
    told = running(*found)
    assert events(told, seen) == []


# -- the run's own budget --------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "level"), [(1999, None), (2000, 50), (3200, 80), (4000, 100)])
def test_what_is_spent_is_said_at_each_threshold(seconds: int, level: int | None) -> None:
    seen = a_seen(beats=(a_beat(step=99.0),), clock_s=CLOUD_S + seconds)
    first = events(running(budget=4 * USD, work=100.0), seen)
    then = events(running(*first, budget=4 * USD, work=100.0), seen)  # after a forecast, maybe
    found = [e for e in (*first, *then) if isinstance(e, Warned)]
    assert [e.level for e in found] == ([] if level is None else [level])
    if level is not None and level >= 80:
        assert "resume --budget" in found[0].reason


# -- how long --------------------------------------------------------------------------------------


def test_machines_know_when_their_time_is_up_and_begin_to_save_then() -> None:
    event = one(state_of(submitted(max_duration_s=600)), a_seen())
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == 600 + 240 + 60 + 30


def test_time_is_counted_over_all_legs() -> None:
    state = running(over(), ended(400), max_duration_s=600)
    event = one(state, a_seen(ago_s=1000.0))
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == 200 + 240 + 60 + 30


@pytest.mark.parametrize("seconds", [541, 600, 5000])
def test_with_too_little_time_left_it_ends(seconds: int) -> None:
    event = one(running(over(), ended(seconds), max_duration_s=600), a_seen(ago_s=1000.0))
    assert isinstance(event, Ended)
    assert event.outcome == "too_long"


def test_one_that_is_to_end_counts_as_up_until_its_provider_says_when_it_ended() -> None:
    event = one(running(over(), max_duration_s=600), a_seen(ago_s=1000.0, clock_s=CLOUD_S + 400))
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == 200 + 240 + 60 + 30


def test_nothing_is_bought_while_the_last_leg_may_have_taken_all_the_time() -> None:
    state = running(over("too_long"), max_duration_s=600)
    (doing,) = answer(state, a_seen(ago_s=1000.0, clock_s=CLOUD_S + 600))
    assert isinstance(doing, Terminate)
    then = running(over("too_long"), ended(600), max_duration_s=600)
    assert isinstance(one(then, a_seen(ago_s=1000.0, clock_s=CLOUD_S + 605)), Ended)


def test_a_run_that_took_too_long_has_its_time_anew_when_it_is_resumed() -> None:
    end = (Ended(outcome="too_long", reason="r"), Closed(reason="r"), Resumed(reason="r"))
    state = running(over("too_long"), ended(600), *end, max_duration_s=600)
    event = one(state, a_seen(ago_s=1000.0))
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == 600 + 240 + 60 + 30


def test_one_that_was_never_up_is_not_said_to_have_been() -> None:
    event = one(state_of(submitted(max_duration_s=8)), a_seen())
    assert isinstance(event, Ended)
    assert (
        event.reason == "its machines were up for 0s of the 8s they may be; 1m must be left to buy"
    )


def test_a_leg_is_drained_when_its_time_is_up() -> None:
    state = running(max_duration_s=600)
    assert events(state, a_seen(beats=(a_beat(),), clock_s=CLOUD_S + 599)) == []
    event = one(state, a_seen(beats=(a_beat(),), clock_s=CLOUD_S + 600))
    assert isinstance(event, LegDraining)
    assert event.cause == "too_long"


def test_one_that_never_came_up_is_given_up_when_its_time_is_up() -> None:
    event = one(booting(max_duration_s=300), a_seen(clock_s=CLOUD_S + 300))
    assert isinstance(event, LegOver)
    assert event.cause == "too_long"


# -- doing nothing ---------------------------------------------------------------------------------


def test_an_idle_job_is_reported_once_a_leg() -> None:
    state = running(idle_s=600)
    assert events(state, a_seen(beats=(a_beat(idle_s=599.0),))) == []
    event = one(state, a_seen(beats=(a_beat(idle_s=600.0, stalled_s=900.0),)))
    assert isinstance(event, Warned)
    assert event.about == "idle"
    assert "10m" in event.reason
    assert events(running(event, idle_s=600), a_seen(beats=(a_beat(idle_s=700.0),))) == []


def test_a_busy_job_that_gets_no_further_is_reported_and_never_stopped() -> None:
    state = running(idle_s=600, idle_stop=True)
    event = one(state, a_seen(beats=(a_beat(stalled_s=600.0),)))
    assert isinstance(event, Warned)
    assert event.about == "stalled"


def test_an_idle_job_is_stopped_if_its_user_asked_for_that() -> None:
    state = running(idle_s=600, idle_stop=True)
    event = one(state, a_seen(beats=(a_beat(idle_s=600.0),)))
    assert isinstance(event, LegDraining)
    assert event.cause == "idle"
    stopped = state_after(event, over("idle"))
    end = one(stopped, a_seen(ago_s=60.0))
    assert isinstance(end, Ended)
    assert end.outcome == "idle"


def state_after(*more: Event) -> RunState:
    return running(*more, idle_s=600, idle_stop=True)


def test_one_busy_machine_of_a_gang_is_enough() -> None:
    from msgspec.structs import replace

    state = running(way=replace(WAY, nodes=2), idle_s=600, idle_stop=True)
    beats = (a_beat(idle_s=900.0), a_beat("m2", idle_s=0.0))
    assert events(state, a_seen(beats=beats)) == []
    assert events(state, a_seen(beats=beats[:1])) == []  # nobody knows what the other does
