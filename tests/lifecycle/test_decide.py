"""What the product promises of a run, one promise after the other, on states built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
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
    booting,
    found,
    requested,
    running,
    simulated,
    state_of,
    submitted,
    up,
    with_tokens,
)
from tradewind.lifecycle import RunState, decide, fold
from tradewind.lifecycle.leg import STAY_S
from tradewind.lifecycle.money import WEEK_S
from tradewind.lifecycle.next import LASTING_S, MOST_TROUBLES
from tradewind.lifecycle.seen import Seen
from tradewind.model.action import Action, Forget, Launch, Record, Terminate
from tradewind.model.event import (
    Abandoned,
    CancelAsked,
    Closed,
    Commit,
    Ended,
    Event,
    Forecast,
    LaunchRefused,
    LaunchUnknown,
    LegDraining,
    LegOver,
    LegRequested,
    MachineBack,
    MachineEnded,
    MachinesFound,
    MachineUsed,
    Progress,
    Stored,
    Submitted,
    Warned,
)
from tradewind.model.run import Heartbeat, Way
from tradewind.model.timing import DRAIN_S, GRACE_S, LOST_S

PAIR = replace(WAY, nodes=2)
CANCEL = CancelAsked(reason="the user asked for it")
RESERVE = 1_560_000
"""Of one machine: 600 s to boot, 900 s unattended and 60 s of lead, at 1,000 a second."""

HALF = Warned(about="budget", level=50, reason="half of it is spent")


def answer(
    state: RunState, seen: Seen, *, now: float = NOW, offers: Sequence[Way] = ()
) -> list[Action]:
    """What `decide` says; on every call also that it is pure, and that it gives its reasons."""
    before = state.copy()
    of_seen = (dict(seen.listed), dict(seen.clocks), dict(seen.beats))
    ways = offers or (state.spec.ways if state.spec else ())
    first = decide(state, seen, ways, now)
    assert decide(state, seen, ways, now) == first
    assert state == before
    assert (seen.listed, seen.clocks, seen.beats) == of_seen
    for action in first:
        assert reason_of(action.event if isinstance(action, Record) else action)
    return first


def reason_of(said: Event | Action) -> str:
    """These are not decided: they are what somebody else said or did."""
    if isinstance(said, Submitted | Progress | MachineUsed | Stored):
        return "seen"
    return said.reason  # type: ignore[union-attr]


def events(
    state: RunState, seen: Seen, *, now: float = NOW, offers: Sequence[Way] = ()
) -> list[Event]:
    actions = answer(state, seen, now=now, offers=offers)
    assert all(isinstance(action, Record) for action in actions)
    return [action.event for action in actions if isinstance(action, Record)]


def one(state: RunState, seen: Seen, *, now: float = NOW, offers: Sequence[Way] = ()) -> Event:
    (event,) = events(state, seen, now=now, offers=offers)
    return event


def over(cause: str = "lost", leg: int = 1, **more: float) -> LegOver:
    return replace(LegOver(leg=leg, cause=cause, reason="a reason"), **more)


def refused(kind: str, leg: int = 1) -> LaunchRefused:
    return LaunchRefused(leg=leg, kind=kind, reason=f"the provider says {kind}")


def ended(name: str = "m1", seconds: int = 100, leg: int = 1) -> MachineEnded:
    machine = a_machine(name, leg, ended_s=CLOUD_S + seconds)
    return MachineEnded(machine=machine, reason="its provider says so")


# -- buying ----------------------------------------------------------------------------------------


def test_the_purchase_is_recorded_before_it_is_made() -> None:
    event = one(state_of(submitted()), a_seen())
    assert isinstance(event, LegRequested)
    request = event.request
    assert (request.leg, request.launch_id, request.way) == (1, "run-1-1", WAY)
    assert request.hard_stop_s == 2 * (300 + 3600) + 3600
    actions = answer(state_of(submitted(), event), a_seen(wrote=frozenset({2})))
    assert [type(action) for action in actions] == [Launch]
    assert isinstance(actions[0], Launch)
    assert actions[0].request == request


def test_what_can_be_bought_now_replaces_what_the_plan_knew() -> None:
    event = one(state_of(submitted()), a_seen(), offers=(FAST,))
    assert isinstance(event, LegRequested)
    assert event.request.way == FAST


def test_a_first_leg_on_another_machine_than_the_plans_says_why() -> None:
    """Its user has just been shown a plan."""
    slow = replace(WAY, instance_type="slow", rate=WAY.rate / 50)
    event = one(state_of(submitted(ways=(slow, FAST))), a_seen())
    assert isinstance(event, LegRequested)
    assert event.request.way == FAST
    assert f"The plan's own choice, {slow.words}, ranks lower now" in event.reason
    event = one(state_of(submitted(ways=(slow, FAST))), a_seen(), offers=(FAST,))
    assert isinstance(event, LegRequested)
    assert "is not for sale now" in event.reason
    event = one(state_of(submitted(ways=(FAST, slow))), a_seen())
    assert isinstance(event, LegRequested)
    assert "own choice" not in event.reason


def test_only_the_writer_launches_without_a_token() -> None:
    state = state_of(submitted(), requested())
    assert answer(state, a_seen()) == []
    assert answer(state, a_seen(wrote=frozenset({1}))) == []
    assert len(answer(state, a_seen(wrote=frozenset({2})))) == 1


def test_with_a_token_anyone_launches_again() -> None:
    way = with_tokens()
    unknown = LaunchUnknown(leg=1, reason="the connection broke")
    for state in (
        state_of(submitted(), requested(way=way)),
        state_of(submitted(), requested(way=way), unknown),
    ):
        (action,) = answer(state, a_seen())
        assert isinstance(action, Launch)


def test_a_launch_of_unknown_outcome_is_never_repeated_without_a_token() -> None:
    unknown = LaunchUnknown(leg=1, reason="the connection broke")
    state = state_of(submitted(), requested(), unknown)
    for wrote in (frozenset[int](), frozenset({2}), frozenset({2, 3})):
        assert answer(state, a_seen(wrote=wrote)) == []


@pytest.mark.parametrize(
    ("way", "patience_s"), [(WAY, WAY.facts.listing_lag_s), (with_tokens(), 600)]
)
def test_a_launch_of_unknown_outcome_is_given_up(way: Way, patience_s: float) -> None:
    """Without a token when a listing would show it; with one, as late as it could have booted."""
    unknown = LaunchUnknown(leg=1, reason="the connection broke")
    state = state_of(submitted(), requested(way=way), unknown)
    assert not any(
        isinstance(action, Record) for action in answer(state, a_seen(ago_s=patience_s - 1))
    )
    event = one(state, a_seen(ago_s=patience_s))
    assert isinstance(event, LegOver)
    assert event.cause == "launch_unknown"
    assert "no machine is listed" in event.reason


def test_a_gang_found_in_part_waits_and_is_given_up() -> None:
    begun = (submitted(ways=(PAIR,)), requested(way=PAIR))
    event = one(state_of(*begun), a_seen(a_machine("m1")))
    assert isinstance(event, MachinesFound)
    state = state_of(*begun, event)
    assert state.claimed == ("m1",)
    assert answer(state, a_seen(a_machine("m1"), ago_s=119.0)) == []
    given_up = one(state, a_seen(a_machine("m1"), ago_s=120.0))
    assert isinstance(given_up, LegOver)
    assert given_up.cause == "launch_unknown"
    assert "only 1 machines are listed" in given_up.reason
    # Nobody claims it any more: it is ended, and the other may still come to light.
    after = state_of(*begun, event, given_up)
    assert after.doubts == {1: 4}
    (terminate,) = answer(after, a_seen(a_machine("m1")))
    assert isinstance(terminate, Terminate)
    assert terminate.machine_ids == ("m1",)


@pytest.mark.parametrize("later_s", [-60, 0, WAY.facts.listing_lag_s])
def test_a_listing_from_before_a_machine_ended_brings_nothing_back(later_s: int) -> None:
    """A controller may hold one for long, and others have closed the run meanwhile."""
    done = Ended(outcome="succeeded", reason="r")
    state = running(over(), ended(), done, Closed(reason="r"))
    ended_s = state.machines["m1"].machine.ended_s
    assert ended_s is not None
    old = a_seen(a_machine(), clock_s=ended_s + later_s)
    assert not [each for each in answer(state, old) if isinstance(each, Record)]


def test_a_complete_gang_boots() -> None:
    begun = (submitted(ways=(PAIR,)), requested(way=PAIR))
    machines = (a_machine("m1"), a_machine("m2", rank=1))
    event = one(state_of(*begun), a_seen(*machines))
    state = state_of(*begun, event)
    assert state.leg is not None
    assert (state.leg.state, state.claimed) == ("booting", ("m1", "m2"))
    assert answer(state, a_seen(*machines)) == []


def test_no_capacity_leads_to_another_way() -> None:
    begun = (submitted(ways=(SPOT, WAY)), requested(way=SPOT), refused("no_capacity"))
    assert answer(state_of(*begun), a_seen(ago_s=14.0)) == []  # not at once: others try too
    event = one(state_of(*begun), a_seen(ago_s=15.0))
    assert isinstance(event, LegRequested)
    assert (event.request.leg, event.request.way) == (2, WAY)
    later = one(state_of(*begun), a_seen(ago_s=600.0))
    assert isinstance(later, LegRequested)
    assert later.request.way == SPOT


def test_the_wait_grows_with_every_refusal() -> None:
    tried: list[Event] = [submitted(ways=(SPOT, WAY))]
    waits = []
    for leg in range(1, 8):
        tried += [requested(leg, SPOT), refused("no_capacity", leg)]
        state = state_of(*tried)
        waits.append(next(s for s in range(0, 601, 5) if answer(state, a_seen(ago_s=float(s)))))
    assert waits == [15, 30, 60, 120, 240, 300, 300]


def test_without_quota_for_anything_it_fails() -> None:
    tried = (
        submitted(ways=(SPOT, WAY)),
        requested(1, SPOT),
        refused("no_quota", 1),
        requested(2, WAY),
        refused("not_allowed", 2),
    )
    event = one(state_of(*tried), a_seen(ago_s=60.0))
    assert isinstance(event, Ended)
    assert event.outcome == "failed"
    assert event.reason == (
        "nothing can be launched: no quota, not allowed (the provider says not_allowed);"
        " `tradewind resume` tries again, when that has changed"
    )
    assert "not_allowed" in event.reason


def test_without_quota_for_one_the_other_is_bought() -> None:
    tried = (submitted(ways=(SPOT, WAY)), requested(1, SPOT), refused("no_quota", 1))
    event = one(state_of(*tried), a_seen(ago_s=1200.0))
    assert isinstance(event, LegRequested)
    assert event.request.way == WAY
    asked_again = one(state_of(*tried), a_seen(ago_s=LASTING_S))
    assert isinstance(asked_again, LegRequested)
    assert asked_again.request.way == SPOT


ELSEWHERE = replace(SPOT, zone="r1-b")
TAKEN = (over("interrupted", saved=60.0), ended(), requested(2, ELSEWHERE), refused("no_quota", 2))


def test_a_quota_that_its_own_machines_fill_is_asked_again() -> None:
    """One that was taken counts until its provider has seen that it is gone."""
    state = running(*TAKEN, way=SPOT, ways=(SPOT, ELSEWHERE, WAY))
    assert answer(state, a_seen(ago_s=14.0)) == []
    event = one(state, a_seen(ago_s=15.0))
    assert isinstance(event, LegRequested)
    assert event.request.way == ELSEWHERE  # nothing dearer instead


def test_a_quota_that_nothing_of_its_own_fills_is_believed() -> None:
    first = running(*TAKEN[:3], way=SPOT, ways=(SPOT, ELSEWHERE, WAY))
    for later_s, way in ((299, ELSEWHERE), (301, WAY)):
        at = datetime.fromtimestamp(first.at_s + later_s, UTC)
        state = fold([Commit(1, first.number + 1, "w1", at, (TAKEN[3],))], first)
        event = one(state, a_seen(ago_s=60.0))
        assert isinstance(event, LegRequested)
        assert event.request.way == way


def test_legs_that_come_to_nothing_are_not_bad_luck_for_ever() -> None:
    tried: list[Event] = [submitted()]
    for leg in range(1, MOST_TROUBLES + 1):
        state = state_of(*tried)
        assert isinstance(one(state, a_seen(ago_s=600.0)), LegRequested)
        tried += [requested(leg), over("launch_unknown", leg)]
    event = one(state_of(*tried), a_seen(ago_s=600.0))
    assert isinstance(event, Ended)
    assert event.outcome == "failed"
    assert "launch_unknown" in event.reason


# -- coming up -------------------------------------------------------------------------------------


def test_it_is_up_when_every_supervisor_has_reported() -> None:
    state = booting(way=PAIR)
    first, second = a_beat("m1", "setup"), a_beat("m2", "setup")
    assert answer(state, a_seen(beats=(first,))) == []
    assert one(state, a_seen(beats=(first, second))) == up()


def test_a_controller_that_has_just_come_need_not_wait_as_long_again() -> None:
    """The provider says by its own clock for how long it has billed them."""
    state = booting()
    assert answer(state, a_seen(clock_s=CLOUD_S + 599)) == []
    event = one(state, a_seen(clock_s=CLOUD_S + 600))
    assert isinstance(event, LegOver)
    assert event.cause == "boot_timeout"
    assert answer(state, a_seen(clock_s=None)) == []
    assert one(state, a_seen(clock_s=CLOUD_S + 600, beats=(a_beat(doing="setup"),))) == up()


def test_a_machine_that_does_not_come_up_in_time() -> None:
    state = booting(way=PAIR)
    beats = (a_beat("m1", "setup"),)
    assert answer(state, a_seen(beats=beats, ago_s=599.0)) == []
    event = one(state, a_seen(beats=beats, ago_s=600.0))
    assert isinstance(event, LegOver)
    assert event.cause == "boot_timeout"
    assert "1 of 2 machines" in event.reason


# -- being taken, lost, or broken ------------------------------------------------------------------


def test_a_lost_heartbeat_is_judged_by_the_observers_own_time() -> None:
    """Whatever the machine's clock says: only for how long nothing changed here."""
    for uptime_s in (0.0, 60.0, 1e9):
        beat = a_beat(uptime_s=uptime_s)
        fresh = a_seen(beats=(beat,), silent_s={"m1": LOST_S - 0.1}, ago_s=1e6)
        assert answer(running(), fresh) == []
        event = one(running(), a_seen(beats=(beat,), silent_s={"m1": float(LOST_S)}))
        assert isinstance(event, LegOver)
        assert event.cause == "lost"
        assert "m1" in event.reason


def test_one_lost_machine_of_a_gang_is_enough() -> None:
    beats = (a_beat("m1"), a_beat("m2"))
    event = one(running(way=PAIR), a_seen(beats=beats, silent_s={"m2": 500.0}))
    assert isinstance(event, LegOver)
    assert "machine m2 for 500 s" in event.reason


def test_notice_of_an_interruption_drains_the_leg() -> None:
    event = one(running(way=SPOT), a_seen(beats=(a_beat(notice=True),)))
    assert isinstance(event, LegDraining)
    assert (event.leg, event.cause) == (1, "interrupted")
    assert "m1" in event.reason


@pytest.mark.parametrize("state", [booting(way=SPOT), running(way=SPOT)])
def test_whoever_has_saved_after_a_notice_was_interrupted(state: RunState) -> None:
    """It may have stopped before any controller saw the notice; that is still nobody's failure."""
    beat = a_beat(doing="stopped", notice=True, saved=50.0, reason="the provider will take it")
    event = one(state, a_seen(beats=(beat,)))
    assert isinstance(event, LegOver)
    assert (event.cause, event.saved) == ("interrupted", 50.0)


@pytest.mark.parametrize(("way", "cause"), [(SPOT, "interrupted"), (WAY, "infrastructure")])
def test_a_machine_that_ended(way: Way, cause: str) -> None:
    gone = a_machine(ended_s=CLOUD_S + 500)
    seen = a_seen(gone, beats=(a_beat(saved=70.0, step=90.0),))
    told = one(running(way=way), seen)
    assert told == MachineEnded(machine=gone, reason="its provider says so")
    event = one(running(told, way=way), seen)
    assert isinstance(event, LegOver)
    assert (event.cause, event.step, event.saved) == (cause, 90.0, 70.0)


@pytest.mark.parametrize(
    ("life_s", "beat", "cause"),
    [
        (30, None, "ended_early"),
        (30, a_beat(), "ended_early"),
        (30, a_beat(notice=True), "interrupted"),
        (30, a_beat(saved=1.0), "interrupted"),
        (600, a_beat(), "interrupted"),
    ],
)
def test_a_spot_machine_that_ends_before_it_should_be_up(
    life_s: int, beat: Heartbeat | None, cause: str
) -> None:
    gone = MachineEnded(machine=a_machine(ended_s=CLOUD_S + life_s), reason="its provider says so")
    event = one(booting(gone, way=SPOT), a_seen(beats=(beat,) if beat else ()))
    assert isinstance(event, LegOver)
    assert event.cause == cause


def test_spot_machines_that_end_by_themselves_are_not_bought_for_ever() -> None:
    """The first may have been taken, and is replaced at once; then the pauses grow."""
    ways = [replace(SPOT, zone=f"r1-{zone}") for zone in range(MOST_TROUBLES)]
    tried: list[Event] = [submitted(ways=tuple(ways))]
    pauses = (0.0, 0.0, 15.0, 30.0, 60.0, 120.0, 240.0, 300.0)
    for leg, (way, pause_s) in enumerate(zip(ways, pauses, strict=True), 1):
        state = state_of(*tried)
        later_s = CLOUD_S + 10
        assert not pause_s or answer(state, a_seen(ago_s=pause_s - 0.1, clock_s=later_s)) == []
        assert isinstance(one(state, a_seen(ago_s=pause_s, clock_s=later_s)), LegRequested)
        tried += [requested(leg, way), found(a_machine(f"m{leg}", leg=leg))]
        gone = a_machine(f"m{leg}", leg=leg, ended_s=CLOUD_S + 5)
        tried.append(MachineEnded(machine=gone, reason="its provider says so"))
        tried.append(one(state_of(*tried), a_seen()))
    event = one(state_of(*tried), a_seen(ago_s=600.0))
    assert isinstance(event, Ended)
    assert event.outcome == "failed"


def test_an_interrupted_run_goes_on_elsewhere() -> None:
    state = running(over("interrupted", saved=600.0), way=SPOT, ways=(SPOT, WAY))
    assert state.troubles == 0
    event = one(state, a_seen(ago_s=1.0))
    assert isinstance(event, LegRequested)
    assert event.request.way == WAY  # spot has just been taken there
    assert event.request.hard_stop_s == 2 * (300 + 3000) + 3600  # for what is left to do


def test_safe_machines_that_are_taken_are_asked_for_again_at_once() -> None:
    """A node that is gone, say: others of its kind may well be there."""
    state = running(over("interrupted", saved=600.0))
    event = one(state, a_seen(ago_s=1.0))
    assert isinstance(event, LegRequested)
    assert event.request.way == WAY


def test_a_machine_that_is_back_is_recorded_and_ended() -> None:
    state = running(over(), ended())
    alive = a_machine()
    ended_s = state.machines["m1"].machine.ended_s
    assert ended_s is not None
    event = one(state, a_seen(alive, clock_s=ended_s + WAY.facts.listing_lag_s + 1))
    assert isinstance(event, MachineBack)
    (terminate,) = answer(
        running(over(), ended(), event, CANCEL, Ended(outcome="cancelled", reason="r")),
        a_seen(alive),
    )
    assert isinstance(terminate, Terminate)
    assert terminate.machine_ids == ("m1",)


def test_a_supervisor_that_stopped_by_itself() -> None:
    beat = a_beat(doing="stopped", reason="it could not reach the store for 130 s", saved=9.0)
    event = one(running(), a_seen(beats=(beat,)))
    assert isinstance(event, LegOver)
    assert (event.cause, event.reason, event.saved) == ("stopped", beat.reason, 9.0)


# -- the job's end ---------------------------------------------------------------------------------


def test_finished_on_every_machine_is_success() -> None:
    done, busy = a_beat("m1", "finished", exit_code=0, step=3600.0), a_beat("m2")
    state = running(way=PAIR)
    assert answer(state, a_seen(beats=(done, busy))) == []
    both = (done, a_beat("m2", "finished", exit_code=0))
    leg_over, end = events(state, a_seen(beats=both))
    assert isinstance(leg_over, LegOver)
    assert (leg_over.cause, leg_over.step) == ("finished", 3600.0)
    assert isinstance(end, Ended)
    assert end.outcome == "succeeded"


def failed(**more: object) -> Heartbeat:
    return replace(
        a_beat(doing="failed", exit_code=1, trouble="user", tail="ValueError: bad batch"), **more
    )


def test_the_jobs_own_error_so_often_fails_the_run_and_keeps_its_log() -> None:
    event = one(running(tries=3), a_seen(beats=(failed(failures=3),)))
    assert isinstance(event, LegOver)
    assert (event.cause, event.failures, event.exit_code) == ("job_failed", 3, 1)
    assert event.tail == "ValueError: bad batch"
    state = running(event, tries=3)
    assert state.tail == "ValueError: bad batch"
    end = one(state, a_seen())
    assert isinstance(end, Ended)
    assert end.outcome == "failed"
    assert "3 times" in end.reason


def test_the_jobs_own_error_less_often_is_tried_again() -> None:
    """As a gang's is: its supervisors do not restart it in place."""
    event = one(running(tries=2), a_seen(beats=(failed(failures=1),)))
    state = running(event, tries=2)
    assert isinstance(one(state, a_seen()), LegRequested)
    twice = running(
        event, requested(2), found(a_machine("m2", 2)), up(2), replace(event, leg=2), tries=2
    )
    assert isinstance(one(twice, a_seen()), Ended)


def test_an_error_of_the_infrastructure_is_not_the_jobs() -> None:
    beat = failed(trouble="infrastructure", failures=0, exit_code=-7)
    event = one(running(tries=1), a_seen(beats=(beat,)))
    assert isinstance(event, LegOver)
    assert (event.cause, event.failures, event.exit_code) == ("infrastructure", 0, -7)
    assert isinstance(one(running(event, tries=1), a_seen(ago_s=60.0)), LegRequested)


def test_a_rank_that_ends_with_one_that_was_told_has_not_failed() -> None:
    """It was told by that rank, and has saved; its own supervisor knew of nothing."""
    ended = failed(trouble="infrastructure", failures=0, exit_code=143, saved=70.0)
    told = a_beat("m2", doing="saving", notice=True, saved=70.0)
    event = one(running(way=PAIR), a_seen(beats=(ended, told)))
    assert isinstance(event, LegOver)
    assert (event.cause, event.saved, event.exit_code) == ("interrupted", 70.0, None)
    drains = LegDraining(leg=1, cause="moved", reason="elsewhere it is cheaper")
    moved = one(running(drains, way=PAIR), a_seen(beats=(ended, a_beat("m2"))))
    assert isinstance(moved, LegOver)
    assert moved.cause == "moved"
    own = replace(ended, trouble="user", exit_code=1)
    event = one(running(way=PAIR), a_seen(beats=(own, told)))
    assert isinstance(event, LegOver)
    assert event.cause == "job_failed", "an error of the job's own stays one"


# -- no longer wanted ------------------------------------------------------------------------------


def test_cancelled_while_waiting() -> None:
    event = one(state_of(submitted(), CANCEL), a_seen())
    assert event == Ended(outcome="cancelled", reason="the user asked for it")


def test_cancelled_while_requested() -> None:
    event = one(state_of(submitted(), requested(), CANCEL), a_seen(wrote=frozenset({2})))
    assert isinstance(event, LegOver)
    assert event.cause == "cancelled"


def test_cancelled_while_booting() -> None:
    idle = one(booting(CANCEL), a_seen(beats=(a_beat(doing="setup"),)))
    assert isinstance(idle, LegOver)
    assert idle.cause == "cancelled"
    busy = one(booting(CANCEL), a_seen(beats=(a_beat(),)))
    assert isinstance(busy, LegDraining)  # its job may have something to save
    assert busy.cause == "cancelled"


def test_cancelled_while_running_or_draining() -> None:
    beats = (a_beat(),)
    event = one(running(CANCEL), a_seen(beats=beats))
    assert event == LegDraining(leg=1, cause="cancelled", reason="the user asked for it")
    assert answer(running(CANCEL, event), a_seen(beats=beats)) == []
    stopped = (a_beat(doing="stopped", saved=120.0),)
    done = one(running(CANCEL, event), a_seen(beats=stopped))
    assert isinstance(done, LegOver)
    assert (done.cause, done.saved) == ("cancelled", 120.0)
    end = one(running(CANCEL, event, done), a_seen())
    assert isinstance(end, Ended)
    assert end.outcome == "cancelled"


def test_draining_takes_only_so_long() -> None:
    draining = LegDraining(leg=1, cause="moved", reason="r")
    state, beats = running(draining), (a_beat(doing="saving", saved=5.0),)
    assert answer(state, a_seen(beats=beats, ago_s=DRAIN_S - 1.0)) == []
    event = one(state, a_seen(beats=beats, ago_s=float(DRAIN_S)))
    assert isinstance(event, LegOver)
    assert (event.cause, event.saved) == ("moved", 5.0)


def test_past_a_hard_deadline_nothing_is_worth_anything() -> None:
    hard: dict[str, Any] = {"deadline_s": NOW, "hard": True}
    waiting = one(state_of(submitted(**hard)), a_seen())
    assert isinstance(waiting, Ended)
    assert waiting.outcome == "too_late"
    asked = one(state_of(submitted(**hard), requested()), a_seen())
    assert isinstance(asked, LegOver)
    assert asked.cause == "too_late"
    late, draining = events(running(**hard), a_seen(beats=(a_beat(),)))
    assert isinstance(late, Forecast)
    assert late.late
    assert isinstance(draining, LegDraining)
    assert draining.cause == "too_late"


def test_a_second_before_a_hard_deadline_it_still_works() -> None:
    state = running(deadline_s=NOW, hard=True)
    beats = (a_beat(step=3599.5),)
    assert events(state, a_seen(beats=beats), now=NOW - 1.0) == []


def test_past_a_soft_deadline_it_goes_on() -> None:
    said = Forecast(late=True, over_budget=False, finish_s=NOW, cost=0, reason="r")
    state = running(said, deadline_s=NOW)
    assert answer(state, a_seen(beats=(a_beat(),)), now=NOW + 3600) == []


# -- on time ---------------------------------------------------------------------------------------


def test_late_is_announced_early_by_measured_speed() -> None:
    """Half as fast as estimated: 7,200 s for the work, with 5,000 left."""
    beats = (a_beat(rate=0.5),)
    state = running(deadline_s=NOW + 5000)
    assert events(state, a_seen(beats=(a_beat(),))) == []  # as estimated it would be in time
    progress, forecast = events(state, a_seen(beats=beats))
    assert isinstance(progress, Progress)
    assert progress.rate == 0.5
    assert isinstance(forecast, Forecast)
    assert forecast.late
    assert forecast.finish_s == NOW + 7200
    assert "it will be late" in forecast.reason
    assert answer(running(progress, forecast, deadline_s=NOW + 5000), a_seen(beats=beats)) == []


def test_in_time_again_only_with_something_to_spare() -> None:
    said = Forecast(late=True, over_budget=False, finish_s=NOW, cost=0, reason="r")
    beats = (a_beat(step=1000.0),)
    assert events(running(said, deadline_s=NOW + 2610), a_seen(beats=beats)) == []
    event = one(running(said, deadline_s=NOW + 2660), a_seen(beats=beats))
    assert isinstance(event, Forecast)
    assert not event.late


def test_late_before_anything_is_bought_is_announced_with_the_purchase() -> None:
    late, request = events(state_of(submitted(deadline_s=NOW + 3000)), a_seen())
    assert isinstance(late, Forecast)
    assert late.late
    assert late.finish_s == NOW + 3900
    assert isinstance(request, LegRequested)


def test_who_finishes_late_unforeseen_says_so() -> None:
    """No controller was at work for a while."""
    beats = (a_beat(doing="finished", step=3600.0, exit_code=0),)
    late, leg_over, end = events(running(deadline_s=NOW - 1), a_seen(beats=beats))
    assert isinstance(late, Forecast)
    assert late.late
    assert isinstance(leg_over, LegOver)
    assert isinstance(end, Ended)


def test_measured_speed_is_recorded_when_it_is_news() -> None:
    assert events(running(), a_seen(beats=(a_beat(rate=1.04),))) == []
    event = one(running(), a_seen(beats=(a_beat(rate=1.1, step=30.0),)))
    assert event == Progress(leg=1, step=30.0, saved=0.0, rate=1.1)
    assert running(event).ratio == 1.1
    saved = one(running(), a_seen(beats=(a_beat(saved=10.0, step=12.0),)))
    assert saved == Progress(leg=1, step=12.0, saved=10.0)


@pytest.mark.parametrize("ending", [{"hard": True}, {"tries": 1}])
def test_a_run_that_ends_past_its_deadline_was_late(ending: dict[str, Any]) -> None:
    """Nothing was foreseen: its only leg never came to run."""
    gone = over("job_failed", failures=1)
    state = booting(gone, deadline_s=NOW - 1, **ending)
    late, end = events(state, a_seen())
    assert isinstance(late, Forecast)
    assert late.late
    assert isinstance(end, Ended)
    assert isinstance(one(booting(gone, late, deadline_s=NOW - 1, **ending), a_seen()), Ended)


# -- re-planning while it runs ---------------------------------------------------------------------

SLOW = Progress(leg=1, step=0.0, saved=0.0, rate=0.5)
LATE = Forecast(late=True, over_budget=False, finish_s=NOW, cost=0, reason="it will be late")


def test_a_run_that_would_be_late_moves_to_a_faster_way() -> None:
    """By measured speed, there too: 3,600 s of work and 300 s to start, instead of 7,200."""
    state = running(SLOW, LATE, ways=(WAY, FAST), deadline_s=NOW + 5000)
    beats = (a_beat(rate=0.5),)
    event = one(state, a_seen(beats=beats, ago_s=STAY_S))
    assert isinstance(event, LegRequested)
    assert (event.request.way, event.request.relieves) == (FAST, 1)
    assert "large" in event.reason
    drained = LegDraining(leg=1, cause="moved", reason="it is left for a faster one")
    after = running(SLOW, LATE, drained, over("moved"), ways=(WAY, FAST), deadline_s=NOW + 5000)
    in_time, bought = events(after, a_seen(ago_s=60.0))
    assert isinstance(in_time, Forecast)
    assert not in_time.late
    assert isinstance(bought, LegRequested)
    assert bought.request.way == FAST


def test_it_stays_where_it_would_be_in_time() -> None:
    state = running(SLOW, ways=(WAY, FAST), deadline_s=NOW + 50_000)
    assert answer(state, a_seen(beats=(a_beat(rate=0.5),), ago_s=STAY_S)) == []


def test_a_leg_that_has_just_begun_or_knows_no_speed_stays() -> None:
    state = running(SLOW, LATE, ways=(WAY, FAST), deadline_s=NOW + 5000)
    assert answer(state, a_seen(beats=(a_beat(rate=0.5),), ago_s=STAY_S - 1)) == []
    assert answer(state, a_seen(beats=(a_beat(),), ago_s=STAY_S)) == []


@pytest.mark.parametrize(
    ("price", "start_s", "start_cost", "moves"),
    [
        (1_800_000, 300.0, 0, True),
        (1_800_000, 3600.0, 0, False),  # booting eats up what is saved
        (1_800_000, 300.0, 1_500_000, False),  # moving the checkpoint there does
        (3_400_000, 0.0, 0, False),  # estimates are no better than a tenth
    ],
)
def test_it_moves_for_money_only_if_that_pays_for_the_restart(
    price: int, start_s: float, start_cost: int, moves: bool
) -> None:
    other = replace(WAY, zone="r1-b", price=price, start_s=start_s, start_cost=start_cost)
    state = running(ways=(WAY, other))
    found_events = events(state, a_seen(beats=(a_beat(rate=1.0),), ago_s=STAY_S))
    assert [type(event) for event in found_events] == [LegRequested] * moves


# -- for the money ---------------------------------------------------------------------------------


def test_a_reserve_must_be_left_for_a_purchase() -> None:
    enough = events(state_of(submitted(budget=RESERVE)), a_seen())
    assert [type(event) for event in enough] == [Forecast, LegRequested]
    too_little = events(state_of(submitted(budget=RESERVE - 1)), a_seen())
    assert [type(event) for event in too_little] == [Forecast, Ended]
    assert isinstance(too_little[1], Ended)
    assert too_little[1].outcome == "out_of_budget"
    assert "$1.56" in too_little[1].reason


def test_a_gang_needs_as_many_reserves_of_whole_billing_steps() -> None:
    way = replace(PAIR, facts=replace(WAY.facts, billing_step_s=3600))
    for budget, last in ((7_200_000, LegRequested), (7_199_999, Ended)):
        assert isinstance(
            events(state_of(submitted(ways=(way,), budget=budget)), a_seen())[-1], last
        )


def test_machines_may_be_up_for_what_is_left_and_no_longer() -> None:
    *_, event = events(state_of(submitted(budget=5_000_000)), a_seen())
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == int(0.99 * 5000) - 2 * 60
    # Both of a gang spend at once.
    *_, event = events(state_of(submitted(ways=(PAIR,), budget=9_000_000)), a_seen())
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == int(0.99 * 4500) - 2 * 60


def test_machines_are_never_up_for_longer_than_a_week() -> None:
    event = one(state_of(submitted(work=1e7)), a_seen())
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == WEEK_S


def test_more_than_may_be_spent_is_announced() -> None:
    state = running(budget=4_000_000)
    state = running(*events(state, a_seen(beats=(a_beat(rate=1.0),))), budget=4_000_000)
    assert events(state, a_seen(beats=(a_beat(rate=1.0),))) == []
    progress, event = events(state, a_seen(beats=(a_beat(rate=0.8),)))
    assert isinstance(progress, Progress)
    assert isinstance(event, Forecast)
    assert (event.over_budget, event.cost) == (True, 1_000 + 4_500_000)
    assert "more than may be spent" in event.reason


def test_nothing_is_bought_on_a_sum_that_may_be_wrong() -> None:
    state = running(over(), budget=40_000_000)
    # Its machine lives, and nobody can tell for how long it has been billed.
    assert not any(
        isinstance(action, Record) for action in answer(state, a_seen(ago_s=1000.0, clock_s=None))
    )
    assert isinstance(one(state, a_seen(ago_s=1000.0)), LegRequested)


def test_out_of_budget_only_when_it_is_sure() -> None:
    """4,000 s of a machine may be paid; one has been billed for 2,000 s, and lives."""
    said = Forecast(late=False, over_budget=True, finish_s=NOW, cost=0, reason="r")
    alive = running(said, HALF, over(), budget=4_000_000)
    later = a_seen(a_machine(), ago_s=60.0, clock_s=CLOUD_S + 2000)
    (terminate,) = answer(alive, later)
    assert isinstance(terminate, Terminate)  # and no end of the run: it may come to less
    dear = running(said, HALF, over(), ended(seconds=2500), budget=4_000_000)
    end = one(dear, a_seen(ago_s=60.0))
    assert isinstance(end, Ended)
    assert end.outcome == "out_of_budget"
    assert "$2.50 of $4.00" in end.reason


def test_a_machine_reported_as_ended_may_live_on_for_a_while() -> None:
    said = Forecast(late=False, over_budget=True, finish_s=NOW, cost=0, reason="r")
    state = running(said, HALF, over(), ended(seconds=2200), budget=4_000_000)
    assert events(state, a_seen(ago_s=419.0)) == []
    event = one(state, a_seen(ago_s=420.0))
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == int(0.99 * 1800) - 2 * 60


def test_a_purchase_of_unknown_outcome_is_counted_until_it_would_have_shown() -> None:
    said = Forecast(late=False, over_budget=True, finish_s=NOW, cost=0, reason="r")
    lost = (submitted(budget=3_000_000), requested(), said, over("launch_unknown"))
    patience_s = 120.0 + 900.0
    assert events(state_of(*lost), a_seen(ago_s=patience_s - 1)) == []
    event = one(state_of(*lost), a_seen(ago_s=patience_s))
    assert isinstance(event, LegRequested)
    assert event.request.hard_stop_s == int(0.99 * 3000) - 2 * 60


# -- cleaning up -----------------------------------------------------------------------------------


def test_strays_are_terminated_after_a_grace_time() -> None:
    """Machines with our tag of a leg that no journal asked for, or of no run at all."""
    stray = a_machine("m9", leg=7)
    waiting = booting()
    for state in (RunState(), waiting):
        patient = a_seen(stray, unclaimed_s=lambda name: GRACE_S - 1.0, marked=False)
        assert answer(state, patient) == []
        (terminate,) = answer(
            state, a_seen(stray, unclaimed_s=lambda name: float(GRACE_S), marked=False)
        )
        assert isinstance(terminate, Terminate)
        assert (terminate.provider, terminate.machine_ids) == ("cloud", ("m9",))
        gone = replace(stray, ended_s=CLOUD_S + 9)
        assert answer(state, a_seen(gone, unclaimed_s=lambda name: 1e6, marked=False)) == []


def test_what_no_live_leg_claims_is_terminated_at_once() -> None:
    state = booting(over("boot_timeout"), requested(2), found(a_machine("m2", 2)), up(2))
    (terminate,) = answer(state, a_seen(a_machine("m1"), a_machine("m2", 2), beats=(a_beat("m2"),)))
    assert isinstance(terminate, Terminate)
    assert terminate.machine_ids == ("m1",)


def test_closing_waits_for_what_a_listing_may_not_show_yet() -> None:
    end = Ended(outcome="failed", reason="r")
    state = booting(over("boot_timeout"), ended(), end)
    assert answer(state, a_seen(ago_s=119.0)) == []
    assert isinstance(one(state, a_seen(ago_s=120.0)), Closed)
    assert answer(state, a_seen(ago_s=1e6, clock_s=None)) == []  # not listed at all


def test_closing_waits_for_no_listing_where_all_that_can_be_bought_is_known() -> None:
    """By its token nobody can buy more than the machines that are known."""
    end = Ended(outcome="failed", reason="r")
    two = replace(with_tokens(), nodes=2)
    both = (ended(), ended("m2"))
    state = booting(over("boot_timeout"), *both, end, way=two)
    assert answer(state, a_seen(ago_s=0.5)) == []  # the listing may be older than the end
    assert isinstance(one(state, a_seen(ago_s=1.0)), Closed)
    assert answer(state, a_seen(ago_s=1.0, clock_s=None)) == []
    # One of two, or none and a refusal: another's try with that token may have brought more.
    begun = (submitted(ways=(two,)), requested(way=two))
    for so_far in ((found(), over("launch_unknown"), ended()), (refused("no_capacity"),)):
        state = state_of(*begun, *so_far, end)
        assert answer(state, a_seen(ago_s=119.0)) == []
        assert isinstance(one(state, a_seen(ago_s=120.0)), Closed)
    # Without tokens, a repeated call buys again.
    state = booting(over("boot_timeout"), *both, end, way=replace(two, facts=WAY.facts))
    assert answer(state, a_seen(ago_s=119.0)) == []


def test_closing_waits_for_every_machine() -> None:
    end = Ended(outcome="failed", reason="r")
    state = booting(over("boot_timeout"), end)
    (terminate,) = answer(state, a_seen(a_machine(), ago_s=1e6))
    assert isinstance(terminate, Terminate)


def test_what_comes_to_light_after_the_end_is_accounted_for() -> None:
    begun = (submitted(), requested(), over("launch_unknown"), CANCEL)
    end = Ended(outcome="cancelled", reason="r")
    for events_so_far in ((*begun, end), (*begun, end, Closed(reason="r"))):
        state = state_of(*events_so_far)
        event = one(state, a_seen(a_machine(), marked=False))
        assert isinstance(event, MachinesFound)
        (terminate,) = answer(state_of(*events_so_far, event), a_seen(a_machine(), marked=False))
        assert isinstance(terminate, Terminate)


def test_a_machine_that_its_provider_forgot_is_taken_for_ended() -> None:
    """Not for as long as listings may lag, and not while it reports."""
    state = running()
    for unlisted, silent, said in ((419.0, 1e4, False), (420.0, 0.0, False), (420.0, 1e4, True)):
        seen = a_seen(
            beats=(a_beat(),), silent_s={"m1": silent}, unlisted_s={"m1": unlisted}.__getitem__
        )
        events = [a.event for a in answer(state, seen) if isinstance(a, Record)]
        told = [e for e in events if isinstance(e, MachineEnded)]
        assert bool(told) == said
        assert all(e.estimated and e.machine.ended_s == CLOUD_S for e in told)


def test_whose_a_machine_is_its_provider_cannot_change() -> None:
    state = running()
    (record,) = answer(state, a_seen(replace(a_machine(), leg=7, ended_s=CLOUD_S)))
    assert isinstance(record, Record)
    assert isinstance(record.event, MachineEnded)
    assert (record.event.machine.leg, record.event.machine.ended_s) == (1, CLOUD_S)


def test_a_closed_run_is_forgotten_once() -> None:
    state = state_of(
        submitted(), CANCEL, Ended(outcome="cancelled", reason="r"), Closed(reason="r")
    )
    (forget,) = answer(state, a_seen())
    assert isinstance(forget, Forget)
    assert answer(state, a_seen(marked=False)) == []


def test_a_submission_that_was_cut_off_is_abandoned() -> None:
    assert answer(RunState(), a_seen(ago_s=GRACE_S - 1.0)) == []
    assert answer(RunState(), a_seen(ago_s=1e6, marked=False)) == []
    event = one(RunState(), a_seen(ago_s=float(GRACE_S)))
    assert isinstance(event, Abandoned)
    assert event.run_id == "run-1"
    (forget,) = answer(state_of(event), a_seen())
    assert isinstance(forget, Forget)


# -- everything ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_every_decision_of_a_whole_run_has_its_reason(seed: int) -> None:
    for commit in simulated(seed):
        for event in commit.events:
            assert reason_of(event)
