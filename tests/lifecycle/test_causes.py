"""Why machines ended and launches never begin, where their provider tells."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
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
)
from tradewind.lifecycle import RunState, fold
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.seen import Seen
from tradewind.model.action import Action, Record, Withdraw
from tradewind.model.event import (
    Commit,
    Ended,
    Event,
    LaunchRefused,
    LegOver,
    LegQueued,
    MachineEnded,
)
from tradewind.model.run import JOB, TAKEN, Facts, Machine, Queued, Way

QUEUE = replace(WAY, facts=Facts(tokens=True, queues=True, listing_lag_s=60))


def decided(state: RunState, seen: Seen, *ways: Way) -> list[Action]:
    return decide(state, seen, ways or (QUEUE,), NOW)


def events(actions: list[Action]) -> list[Event]:
    return [action.event for action in actions if isinstance(action, Record)]


def after(state: RunState, *more: Event) -> RunState:
    from tests.lifecycle.builders import AT

    return fold(
        [Commit(1, state.number + n, "w1", AT, (event,)) for n, event in enumerate(more, 1)], state
    )


@dataclass
class Ending:
    by: str
    why: str
    cause: str
    failures: int
    market: str = "on_demand"


@pytest.mark.parametrize(
    "case",
    [
        Ending(JOB, "OOMKilled", "job_failed", 1),
        Ending(JOB, "OOMKilled", "job_failed", 1, "spot"),
        Ending(TAKEN, "Evicted", "interrupted", 0),
        Ending(TAKEN, "a pod of higher priority took its place", "interrupted", 0, "spot"),
        Ending("", "it reached its hard stop", "infrastructure", 0),
        Ending("", "ended with code 3", "ended_early", 0, "spot"),
    ],
)
def test_a_machine_s_end_says_whose_doing_it_was(case: Ending) -> None:
    way = SPOT if case.market == "spot" else WAY
    state = running(way=way)
    gone = a_machine(ended_s=CLOUD_S + 5, ended_by=case.by, ended_why=case.why)
    (told,) = events(decided(state, a_seen(gone), way))
    assert isinstance(told, MachineEnded)
    assert told.machine == gone
    (over,) = events(decided(after(state, told), a_seen(gone, beats=(a_beat(),)), way))
    assert isinstance(over, LegOver)
    assert (over.cause, over.failures) == (case.cause, case.failures)
    assert case.why in over.reason


def test_a_job_that_takes_its_machine_along_is_not_tried_for_ever() -> None:
    state = running(tries=2)
    for leg in (1, 2):
        gone = a_machine(f"m{leg}", leg=leg, ended_s=CLOUD_S + 5, ended_by=JOB, ended_why="OOM")
        state = after(state, MachineEnded(machine=gone, reason="its provider says so"))
        (over,) = events(decided(state, a_seen(gone), WAY))
        state = after(state, over)
        if leg == 1:
            machine = a_machine("m2", leg=2)
            state = after(state, requested(2), found(machine), up(2))
    (end,) = events(decided(state, a_seen(), WAY))
    assert isinstance(end, Ended)
    assert end.outcome == "failed"


def test_of_several_that_ended_the_one_that_is_to_blame_is_named() -> None:
    pair = replace(WAY, nodes=2)
    state = running(way=pair)
    for n, (by, why) in enumerate((("", "code 1"), (JOB, "OOMKilled"))):
        gone = a_machine(f"m{n + 1}", rank=n, ended_s=CLOUD_S, ended_by=by, ended_why=why)
        state = after(state, MachineEnded(machine=gone, reason="its provider says so"))
    (over,) = events(decided(state, a_seen(), pair))
    assert isinstance(over, LegOver)
    assert over.cause == "job_failed"
    assert "m2" in over.reason


def test_journals_of_before_name_no_cause() -> None:
    text = b"""{"machine_id": "m1", "launch_id": "run-1-1", "run_id": "run-1", "leg": 1, "rank": 0,
     "launched_s": 5000, "ended_s": 5010}"""
    machine = json.decode(text, type=Machine)
    assert (machine.ended_by, machine.ended_why) == ("", "")


# What waits, and will never begin.


def waiting(*more: Event) -> RunState:
    untold = LegQueued(leg=1, reason="the provider has no machines for it yet")
    return state_of(submitted(ways=(QUEUE,)), requested(way=QUEUE), untold, *more)


def in_queue(reason: str = "", refused: str = "", ago_s: float = 0.0) -> Seen:
    queued = Queued(launch_id="run-1-1", run_id="run-1", leg=1, reason=reason, refused=refused)
    return replace(a_seen(ago_s=ago_s), queued={"run-1-1": ("cloud", queued)})


IMAGE = "its image cannot be pulled: not found"


@pytest.mark.parametrize("queued_already", [False, True])
def test_what_will_never_begin_is_refused_and_withdrawn(queued_already: bool) -> None:
    state = waiting()
    if not queued_already:
        state = state_of(submitted(ways=(QUEUE,)), requested(way=QUEUE))
    seen = in_queue(IMAGE, "not_found")
    (refused,) = events(decided(state, seen))
    assert refused == LaunchRefused(leg=1, kind="not_found", reason=IMAGE)
    state = after(state, refused)
    assert state.queued is state.leg is None
    assert state.phase == "waiting"
    # There is no other way: the run says why it ends, and what waits is taken back.
    (end,) = events(decided(state, seen))
    assert isinstance(end, Ended)
    assert IMAGE in end.reason
    doings = decided(after(state, end), seen)
    assert [doing for doing in doings if isinstance(doing, Withdraw)]


def test_a_gang_that_found_no_room_may_be_tried_again() -> None:
    state = waiting()
    (refused,) = events(decided(state, in_queue("1 of 2 pods have nodes", "no_capacity")))
    state = after(state, refused)
    seen = in_queue("1 of 2 pods have nodes", "no_capacity")
    assert not events(decided(state, seen))  # after a while
    assert any(isinstance(each, Withdraw) for each in decided(state, seen))


def test_why_it_waits_is_told_once_and_when_it_is_another_reason() -> None:
    first = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu"
    (told,) = events(decided(waiting(), in_queue(first)))
    assert told == LegQueued(leg=1, reason=first)
    state = waiting(told)
    counted = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu"
    assert not events(decided(state, in_queue(counted, ago_s=86_400)))
    other = "0/4 nodes are available: 4 node(s) were unschedulable"
    assert not events(decided(state, in_queue(other, ago_s=60)))  # it may come and go
    assert events(decided(state, in_queue(other, ago_s=3_600))) == [LegQueued(leg=1, reason=other)]
