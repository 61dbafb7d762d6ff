"""A leg that waits in a queue, alone and beside one that works."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
    NOW,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    commits,
    found,
    requested,
    state_of,
    submitted,
    up,
)
from tradewind.base.errors import BadFile
from tradewind.lifecycle import RunState, fold
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.leg import STAY_S
from tradewind.lifecycle.seen import Seen
from tradewind.model.action import Action, Launch, Record, Terminate, Withdraw
from tradewind.model.event import (
    CancelAsked,
    Commit,
    Ended,
    Event,
    LegDraining,
    LegOver,
    LegQueued,
    LegRequested,
    MachineEnded,
)
from tradewind.model.run import Facts, Heartbeat, Machine, Queued
from tradewind.model.timing import BEAT_S, SHUTDOWN_S
from tradewind.model.windows import Schedule, Window
from tradewind.policy import plain
from tradewind.policy.base import Choice, Known, Policy

QUEUE = replace(
    WAY,
    provider="slurm",
    price=360_000,
    facts=Facts(tokens=True, queues=True, listing_lag_s=60),
)
"""A tenth of the price, and nobody knows when."""
WAYS = (QUEUE, WAY)


def queued(leg: int = 1, starts_s: int | None = None) -> LegQueued:
    return LegQueued(leg=leg, reason="Priority", starts_s=starts_s)


def waiting(*more: Event, waits: bool = True) -> RunState:
    """The first leg is in a queue."""
    first = submitted(ways=WAYS)
    return state_of(first, requested(way=QUEUE, waits=waits), queued(), *more)


def beside(*more: Event) -> RunState:
    """And the second one works meanwhile."""
    second = a_machine("m2", leg=2)
    return waiting(requested(2, WAY, beside=1), found(second), up(2), *more)


IN_QUEUE = {"run-1-1": ("slurm", Queued(launch_id="run-1-1", run_id="run-1", leg=1))}


def seen_by(
    *machines: Machine,
    beats: tuple[Heartbeat, ...] = (),
    queued: dict[str, tuple[str, Queued]] = IN_QUEUE,
) -> Seen:
    clocks = {"cloud": CLOUD_S, "slurm": CLOUD_S}
    return replace(a_seen(*machines, beats=beats), clocks=clocks, queued=queued)


def picks(what: str) -> Policy:
    def policy(known: Known) -> Choice:
        for n, option in enumerate(known.options):
            if option.way is not None and option.way.provider == what:
                return Choice(n, f"{what} it is")
        return Choice(None, "nothing")

    return policy


def events_of(actions: list[Action]) -> list[Event]:
    return [action.event for action in actions if isinstance(action, Record)]


def decided(state: RunState, seen: Seen, provider: str = "cloud", now: float = NOW) -> list[Action]:
    return decide(state, seen, WAYS, now, picks(provider))


def test_what_is_queued_costs_nothing_and_others_may_work() -> None:
    state = waiting()
    assert state.phase == "waiting"
    assert state.leg is None
    assert state.queued
    assert state.queued.state == "queued"
    assert state.buys
    assert beside().phase == "active"


def test_it_is_asked_for_beside_what_waits() -> None:
    (event,) = events_of(decided(waiting(), seen_by()))
    assert isinstance(event, LegRequested)
    assert (event.request.leg, event.request.beside, event.request.waits) == (2, 1, False)


def test_while_the_queue_is_still_the_best_nothing_is_done() -> None:
    assert decided(waiting(), seen_by(), "slurm") == []


def test_what_may_have_begun_is_withdrawn_before_another_is_bought() -> None:
    (event,) = events_of(decided(waiting(waits=False), seen_by()))
    assert isinstance(event, LegOver)
    assert event.cause == "moved"


@pytest.mark.parametrize("limits", [{"budget": 10**9}, {"max_duration_s": 10**6}])
def test_with_a_limit_nothing_works_beside_a_queue(limits: dict[str, Any]) -> None:
    """What both would use up together is known to nobody."""
    state = state_of(submitted(ways=WAYS, **limits))
    (event,) = events_of(decide(state, seen_by(queued={}), WAYS, NOW, picks("slurm")))
    assert isinstance(event, LegRequested)
    assert not event.request.waits


def test_a_queue_is_all_there_is() -> None:
    """Then its job may begin without anybody looking."""
    state = state_of(submitted(ways=(QUEUE,)))
    (event,) = events_of(decide(state, seen_by(queued={}), (QUEUE,), NOW, picks("slurm")))
    assert isinstance(event, LegRequested)
    assert not event.request.waits


def test_what_was_taken_is_queued_for_again_at_once() -> None:
    """A spot machine that was taken says that there is no capacity for a while; a queue is where
    one waits for it."""
    taken = LegOver(leg=1, cause="interrupted", reason="preempted", step=5.0, saved=5.0)
    just_now = replace(seen_by(queued={}), known_s=lambda number: 1.0)
    for way, expected in ((QUEUE, [QUEUE]), (replace(WAY, market="spot"), [])):
        first = requested(way=way), found(a_machine("m1")), up()
        state = state_of(submitted(ways=(way,)), *first, taken)
        told = events_of(decide(state, just_now, (way,), NOW, plain.choose))
        asked = [event.request.way for event in told if isinstance(event, LegRequested)]
        assert asked == expected


def test_its_machines_come_and_nothing_works() -> None:
    state = waiting(found(a_machine("s1")))
    assert state.phase == "active"
    assert state.queued is None
    assert state.leg
    assert (state.leg.number, state.leg.state) == (1, "booting")


def test_its_machines_come_and_what_works_is_drained_for_it() -> None:
    state = beside(found(a_machine("s1")))
    assert state.queued
    assert state.queued.state == "booting"
    beat = a_beat("m2", leg=2, step=10.0, rate=1.0)
    seen = seen_by(a_machine("s1"), a_machine("m2", leg=2), beats=(beat,), queued={})
    (event,) = events_of(decided(state, seen, "slurm"))
    assert isinstance(event, LegDraining)
    assert event.leg == 2
    drained = fold(commits_after(state, event), state)
    assert drained.queued is None
    assert drained.relief
    assert drained.relief.number == 1


def test_its_machines_come_and_are_not_worth_the_move() -> None:
    state = beside(found(a_machine("s1")))
    beat = a_beat("m2", leg=2, step=3590.0, rate=1.0)
    seen = seen_by(a_machine("s1"), a_machine("m2", leg=2), beats=(beat,), queued={})
    (event,) = events_of(decided(state, seen, "cloud"))
    assert isinstance(event, LegOver)
    assert (event.leg, event.cause) == (1, "not_needed")
    after = fold(commits_after(state, event), state)
    assert after.leg
    assert after.leg.number == 2
    (doing,) = decided(after, seen)
    assert isinstance(doing, Terminate)
    assert doing.machine_ids == ("s1",)


def test_it_takes_over_from_one_that_is_interrupted() -> None:
    gone = LegOver(leg=2, cause="interrupted", reason="the provider reclaimed machine m2")
    state = beside(found(a_machine("s1")), gone)
    assert state.leg
    assert state.leg.number == 1
    assert state.phase == "active"


def test_it_is_withdrawn_when_the_run_is_done() -> None:
    beat = a_beat("m2", "finished", leg=2, step=3600.0)
    seen = seen_by(a_machine("m2", leg=2), beats=(beat,))
    records = events_of(decided(beside(), seen))
    assert [(type(event), getattr(event, "leg", 0)) for event in records[-3:]] == [
        (LegOver, 2),
        (LegOver, 1),
        (Ended, 0),
    ]
    after = fold(commits_after(beside(), *records), beside())
    doings = decided(after, seen)
    assert Withdraw("slurm", ("run-1-1",), "no live leg claims them") in doings


def test_its_user_does_not_want_it_any_more() -> None:
    state = waiting(CancelAsked(reason="no"))
    (event,) = events_of(decided(state, seen_by()))
    assert isinstance(event, LegOver)
    assert event.cause == "cancelled"


def test_what_was_not_needed_is_not_queued_for_again_at_once() -> None:
    """Else each pass would buy machines, and pay for what they are billed at least."""
    over = LegOver(leg=1, cause="not_needed", reason="a start costs more")
    state = beside(found(a_machine("s1")), over)
    beat = a_beat("m2", leg=2, step=10.0, rate=1.0)
    seen = seen_by(a_machine("m2", leg=2), beats=(beat,), queued={})

    def asked(after_s: float) -> list[LegRequested]:
        known = {state.over_at: after_s}
        later = replace(seen, known_s=lambda number: known.get(number, 1e6))
        told = events_of(decided(state, later, "slurm"))
        return [event for event in told if isinstance(event, LegRequested)]

    assert asked(STAY_S - 1) == []
    (event,) = asked(STAY_S)
    assert (event.request.way.provider, event.request.waits) == ("slurm", True)


def test_what_is_queued_for_in_a_window_ends_with_it() -> None:
    """NOW is 08:00."""
    morning = Schedule(windows=(Window(start_s=7 * 3600, end_s=9 * 3600),))
    asked = requested(1, WAY, until_s=NOW + 3600)
    state = state_of(submitted(ways=WAYS, schedule=morning), asked, found(), up())
    seen = seen_by(a_machine(), beats=(a_beat(step=10.0, rate=1.0),), queued={})
    seen = replace(seen, known_s=lambda number: 1e6)
    told = events_of(decided(state, seen, "slurm"))
    (event,) = [event for event in told if isinstance(event, LegRequested)]
    assert (event.request.relieves, event.request.until_s) == (1, NOW + 3600)
    assert event.request.hard_stop_s == 3600 + SHUTDOWN_S + BEAT_S


def test_a_run_is_not_closed_while_something_is_queued() -> None:
    end = Ended(outcome="cancelled", reason="no")
    state = waiting(CancelAsked(reason="no"), LegOver(leg=1, cause="cancelled", reason="no"), end)
    actions = decided(state, replace(seen_by(), known_s=lambda number: 1e6))
    assert [type(action) for action in actions] == [Withdraw]


def test_a_queue_that_forgets_it() -> None:
    seen = replace(seen_by(queued={}), unqueued_s=lambda launch_id: 361.0)
    (event,) = events_of(decided(waiting(), seen))
    assert isinstance(event, LegOver)
    assert event.cause == "launch_unknown"
    soon = replace(seen, unqueued_s=lambda launch_id: 359.0)
    assert isinstance(events_of(decided(waiting(), soon))[0], LegRequested)


def test_what_a_provider_says_of_the_wait_is_recorded_when_it_is_news() -> None:
    def said(starts_s: int) -> list[Event]:
        waits = Queued(launch_id="run-1-1", run_id="run-1", leg=1, starts_s=starts_s)
        seen = seen_by(queued={"run-1-1": ("slurm", waits)})
        state = state_of(
            submitted(ways=WAYS),
            requested(way=QUEUE, waits=True),
            queued(starts_s=CLOUD_S + 10_000),
        )
        return events_of(decided(state, seen, "slurm"))

    assert said(CLOUD_S + 10_900) == []
    (event,) = said(CLOUD_S + 14_000)
    assert isinstance(event, LegQueued)
    assert event.starts_s == CLOUD_S + 14_000


def test_a_launch_that_was_queued_unseen_is_found_in_the_queue() -> None:
    state = state_of(submitted(ways=WAYS), requested(way=QUEUE, waits=True))
    (event,) = events_of(decided(state, seen_by()))
    assert isinstance(event, LegQueued)


def test_machines_that_are_lost_before_they_are_used() -> None:
    lost = MachineEnded(machine=a_machine("s1", ended_s=CLOUD_S + 9), reason="gone")
    state = beside(found(a_machine("s1")), lost)
    beat = a_beat("m2", leg=2, step=10.0, rate=1.0)
    seen = seen_by(a_machine("m2", leg=2), beats=(beat,), queued={})
    (event,) = events_of(decided(state, seen, "slurm"))
    assert isinstance(event, LegOver)
    assert (event.leg, event.cause) == (1, "infrastructure")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((requested(2, WAY),), "beside 0, not what waits"),
        ((requested(2, WAY, beside=7),), "beside 7, not what waits"),
        ((queued(3),), "not under way"),
        ((Ended(outcome="failed", reason="r"),), "while leg 1 is in a queue"),
    ],
)
def test_what_no_controller_writes(more: tuple[Event, ...], words: str) -> None:
    with pytest.raises(BadFile, match=words):
        waiting(*more)


def test_nothing_is_asked_for_beside_one_whose_job_may_have_begun() -> None:
    with pytest.raises(BadFile, match="may have begun"):
        waiting(requested(2, WAY, beside=1), waits=False)


def test_launches_of_a_queue_are_repeated_only_with_tokens() -> None:
    state = state_of(submitted(ways=WAYS), requested(way=QUEUE, waits=True))
    (action,) = decided(state, seen_by(queued={}))
    assert isinstance(action, Launch)


def commits_after(state: RunState, *events: Event) -> list[Commit]:
    made = commits(*events)
    return [replace(each, number=state.number + n) for n, each in enumerate(made, 1)]
