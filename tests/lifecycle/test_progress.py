"""Money without progress is bounded; a hard deadline that is lost is said, and not paid for."""

from __future__ import annotations

from msgspec.structs import replace

from tests.lifecycle.builders import CLOUD_S, FAST, NOW, WAY, a_beat, a_machine, a_seen, running, up
from tests.lifecycle.builders import found as machines_found
from tests.lifecycle.test_beside import events
from tradewind.lifecycle import progress
from tradewind.lifecycle.seen import Seen
from tradewind.model.event import Ended, Event, LegDraining, LegOver, LegRequested, Progress, Warned
from tradewind.model.run import Heartbeat

DAY = 86_400.0
SLOW = Progress(leg=1, step=400.0, saved=400.0, rate=0.5)


def seen(beat: Heartbeat, ago_s: float = 900.0) -> Seen:
    return a_seen(a_machine(), beats=(beat,), ago_s=ago_s, clock_s=CLOUD_S + 900)


def test_a_job_without_a_step_for_a_quarter_of_its_work_is_begun_anew() -> None:
    state = running(work=DAY)
    for still_s, ends in ((DAY / 4 - 60, False), (DAY / 4, True)):
        found = events(state, seen(a_beat(rate=1.0, stalled_s=still_s)))
        assert any(isinstance(event, LegDraining) for event in found) == ends
    short = running(work=600.0)
    assert not [
        event
        for event in events(short, seen(a_beat(rate=1.0, stalled_s=5400.0)))
        if isinstance(event, LegDraining)
    ]


def over(leg: int, cause: str, **more: float) -> LegOver:
    return LegOver(leg=leg, cause=cause, reason="", **more)  # type: ignore[arg-type]


def test_interruptions_do_not_help_a_job_that_hangs() -> None:
    hung: list[Event] = [over(1, "interrupted", stalled_s=DAY / 8)]
    for leg in (2, 3, 4):
        request = replace(running().requests[1], leg=leg, launch_id=f"run-1-{leg}")
        hung += [
            LegRequested(request=request, reason=""),
            machines_found(a_machine(f"m{leg}", leg)),
            up(leg),
            over(leg, "interrupted", stalled_s=DAY / 8),
        ]
    [ended] = [e for e in events(running(*hung, work=DAY), a_seen()) if isinstance(e, Ended)]
    assert (ended.outcome, "no step" in ended.reason) == ("failed", True)
    saved = over(4, "interrupted", stalled_s=DAY / 8, saved=100.0)
    going_on = running(*hung[:-1], saved, work=DAY)
    assert not any(isinstance(e, Ended) for e in events(going_on, a_seen()))


def test_two_hard_stops_without_anything_saved_are_enough() -> None:
    beat = a_beat("m1", "stopped", uptime_s=35_800.0, reason="its time is up in 0 s")
    [event] = events(running(), seen(beat))
    assert isinstance(event, LegOver)
    assert event.cause == "hard_stop"
    state = running(event)
    assert state.hard_stops == 1
    state.hard_stops = 2
    [ended] = [e for e in events(state, a_seen(ago_s=9_000.0)) if isinstance(e, Ended)]
    assert ended.outcome == "failed"


def test_a_hard_deadline_that_is_lost_is_said_and_then_ends_it() -> None:
    state = running(SLOW, work=4_000.0, deadline_s=NOW + 3_000, hard=True)
    beat = a_beat(step=400.0, rate=0.5)
    told = [event for event in events(state, seen(beat)) if isinstance(event, Warned)]
    assert [warned.about for warned in told] == ["lost"]
    said = running(SLOW, told[0], work=4_000.0, deadline_s=NOW + 3_000, hard=True)
    for ago_s, ends in ((progress.GRACE_S - 1, False), (progress.GRACE_S, True)):
        found = events(said, seen(beat, ago_s))
        assert any(isinstance(e, LegDraining) and e.cause == "too_late" for e in found) == ends
    faster = running(
        SLOW, told[0], ways=(WAY, FAST), work=4_000.0, deadline_s=NOW + 3_000, hard=True
    )
    [back] = [event for event in events(faster, seen(beat)) if isinstance(event, Warned)]
    assert (back.about, back.level) == ("lost", 0)
