from __future__ import annotations

from copy import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.supervisor.builders import RUNNING, failed, killed, me, working
from tradewind.model.timing import (
    BEAT_S,
    DRAIN_S,
    FENCE_S,
    SHUTDOWN_S,
    UNATTENDED_S,
    UNREACHABLE_S,
)
from tradewind.supervisor.decide import Act, Job, Me, Save, ShutDown, Start, Stop, decide

UP_S = 1000.0
"""When `working` has last reached the store."""
STOPS_S = 36_000.0 - SHUTDOWN_S - BEAT_S
"""The last moment at which a shutdown is over when the time that was given is."""


def acts(who: Me, job: Job, uptime_s: float = UP_S) -> list[type[Act]]:
    """What it does, by kind; each with its reason."""
    done = decide(who, job, uptime_s)
    assert all(act.reason for act in done)
    return [type(act) for act in done]


def test_it_starts_once_it_knows_from_where() -> None:
    new = me()
    assert acts(new, Job(), 10.0) == []
    assert new.doing == "setup"
    new.resume = "runs/run-1/checkpoints/000000/1.json"
    (start,) = decide(new, Job(), 20.0)
    assert isinstance(start, Start)
    assert new.resume in start.reason
    assert new.doing == "working"
    assert acts(new, RUNNING, 30.0) == []


def test_without_a_checkpoint_it_starts_from_the_beginning() -> None:
    (start,) = decide(me(resume=""), Job(), 10.0)
    assert start == Start("from the beginning")


def test_a_fenced_leg_stops_at_once() -> None:
    for doing in ("setup", "working", "saving"):
        who = working(fenced="its leg is over: lost", doing=doing)
        assert acts(who, RUNNING) == [Stop, ShutDown]
        assert (who.doing, who.shut_down) == ("stopped", True)
        assert who.reason == "its leg is over: lost"


@pytest.mark.parametrize("doing", ["finished", "failed"])
def test_how_the_job_ended_is_told_to_the_last(doing: str) -> None:
    who = working(fenced="its leg is over", doing=doing)
    assert acts(who, failed()) == [Stop, ShutDown]
    assert who.doing == doing


def test_it_shuts_down_in_time_before_its_hard_stop() -> None:
    who = working(reached_s=STOPS_S, asked_to_save=True, doing="saving")
    assert acts(who, RUNNING, STOPS_S - 1) == []
    assert acts(who, RUNNING, STOPS_S) == [Stop, ShutDown]
    assert who.shut_down


def test_it_saves_before_its_hard_stop() -> None:
    saves_s = STOPS_S - DRAIN_S
    who = working(reached_s=saves_s)
    assert acts(who, RUNNING, saves_s) == []
    assert acts(who, RUNNING, saves_s + 1) == [Save]
    assert (who.doing, who.asked_to_save) == ("saving", True)
    assert "its time is up" in who.reason


@pytest.mark.parametrize(
    "why",
    [{"notice": True}, {"draining": "it is to move"}],
)
def test_it_saves_once_when_it_has_notice_or_is_to_drain(why: dict[str, object]) -> None:
    who = working(**why)
    assert acts(who, RUNNING) == [Save]
    assert who.doing == "saving"
    assert acts(who, RUNNING) == []  # it was asked
    assert acts(who, failed(143)) == []  # what it exits with then tells nothing
    assert (who.doing, who.failures) == ("stopped", 0)


def test_a_job_that_ends_well_after_it_was_asked_to_save_has_stopped() -> None:
    who = working(draining="it is to move", asked_to_save=True, doing="saving")
    assert acts(who, Job("exited", exit_code=0)) == []
    assert who.doing == "stopped"


def test_a_job_that_has_not_begun_does_not_begin_any_more() -> None:
    who = me(resume="", notice=True)
    assert acts(who, Job(), 50.0) == []
    assert who.doing == "stopped"
    assert acts(who, Job(), 60.0) == []


def test_one_machine_starts_its_job_again_in_place() -> None:
    who = working(tries=3)
    assert acts(who, failed()) == [Start]
    assert acts(who, failed()) == [Start]
    assert (who.doing, who.failures) == ("working", 2)
    assert acts(who, failed()) == []
    assert (who.doing, who.failures) == ("failed", 3)
    assert "exit code 1" in who.reason


@pytest.mark.parametrize(
    ("retry_on", "code", "trouble", "again"),
    [
        (None, 127, "hopeless", False),
        (None, 1, "user", True),
        (("75", "SIGSEGV"), 1, "user", False),
        (("75", "SIGSEGV"), 75, "user", True),
        (("75", "SIGSEGV"), -11, "user", True),
        (("SIGSEGV",), 139, "user", True),
        (("127",), 127, "hopeless", True),
    ],
)
def test_only_failures_that_are_worth_it_are_tried_again(
    retry_on: tuple[str, ...] | None, code: int, trouble: str, again: bool
) -> None:
    who = working(tries=3, retry_on=retry_on)
    assert acts(who, failed(code, trouble)) == ([Start] if again else [])
    assert (who.doing, who.failures) == ("working" if again else "failed", 1)
    if not again:
        assert "retry" in who.reason


def test_without_retries_the_first_failure_is_the_last() -> None:
    who = working(tries=1)
    assert acts(who, failed()) == []
    assert who.doing == "failed"


def test_getting_further_starts_the_count_again() -> None:
    who = working(tries=2)
    for saved in (0.0, 10.0, 20.0, 30.0):
        assert acts(who, failed(saved=saved)) == [Start]
        assert who.failures == 1
    assert acts(who, failed(saved=30.0)) == []
    assert (who.doing, who.failures) == ("failed", 2)


def test_a_gang_is_never_started_again_in_place() -> None:
    """The others wait for a process group that is gone."""
    who = working(nodes=2, tries=3)
    assert acts(who, failed()) == []
    assert (who.doing, who.failures) == ("failed", 1)


def test_a_job_is_not_started_again_on_a_machine_that_is_to_go() -> None:
    for who in (working(notice=True), working(draining="it is cancelled")):
        assert acts(who, failed()) == []
        assert (who.doing, who.failures) == ("failed", 1)


def test_what_the_machine_is_to_blame_for_is_not_tried_again_on_it() -> None:
    who = working(tries=3)
    assert acts(who, failed(-7, "infrastructure")) == []
    assert (who.doing, who.failures) == ("failed", 0)


def test_a_job_that_was_killed_starts_again_in_place_while_that_gets_it_further() -> None:
    who = working(tries=1)
    for saved in (0.0, 10.0, 20.0):
        assert acts(who, killed(saved)) == [Start]
        assert (who.doing, who.failures) == ("working", 0)
    assert acts(who, killed(20.0)) == []
    assert (who.doing, who.failures) == ("failed", 0)


@pytest.mark.parametrize("why", [{"nodes": 2}, {"notice": True}, {"draining": "it is to move"}])
def test_a_killed_job_of_a_gang_or_on_a_machine_that_is_to_go_is_left(why: dict[str, Any]) -> None:
    who = working(**why)
    assert acts(who, killed()) == []
    assert who.doing == "failed"


def test_who_cannot_reach_the_store_stops_its_job_and_later_itself() -> None:
    who = working()
    assert acts(who, RUNNING, UP_S + FENCE_S - 1) == []
    assert acts(who, RUNNING, UP_S + FENCE_S) == [Stop]
    assert who.doing == "stopped"
    assert "could not reach the store" in who.reason
    assert acts(who, Job(), UP_S + UNREACHABLE_S - 1) == []
    assert acts(who, Job(), UP_S + UNREACHABLE_S) == [Stop, ShutDown]


def test_who_could_never_reach_the_store_counts_from_its_first_beat() -> None:
    who = me()
    assert acts(who, Job(), 500.0) == []
    assert acts(who, Job(), 500.0 + FENCE_S) == [Stop]
    assert acts(who, Job(), 500.0 + UNREACHABLE_S) == [Stop, ShutDown]


@pytest.mark.parametrize("doing", ["stopped", "failed", "finished"])
def test_who_is_done_and_left_alone_shuts_down(doing: str) -> None:
    who = working(doing=doing)
    ended = failed()
    for uptime_s in (UP_S, UP_S + UNATTENDED_S - 1):
        who.reached_s, who.heard = uptime_s, True
        assert acts(who, ended, uptime_s) == []
    who.reached_s, who.heard = UP_S + UNATTENDED_S, True
    assert acts(who, ended, UP_S + UNATTENDED_S) == [ShutDown]
    assert (who.doing, who.shut_down) == (doing, True)


_jobs = st.one_of(
    st.just(Job()),
    st.just(RUNNING),
    st.builds(failed, st.integers(-9, 143), st.sampled_from(("user", "infrastructure"))),
    st.builds(killed, st.floats(0, 100)),
)


@given(
    beats=st.lists(st.tuples(st.floats(1, 200), _jobs, st.booleans()), min_size=1, max_size=30),
    hard_stop_s=st.integers(200, 3000),
    nodes=st.integers(1, 2),
    notice_at=st.integers(0, 40),
)
def test_it_never_works_on_alone_nor_past_its_time(
    beats: list[tuple[float, Job, bool]], hard_stop_s: int, nodes: int, notice_at: int
) -> None:
    """Whatever happens: no start once it was fenced off or asked to save, and an end in time."""
    who = me(hard_stop_s=hard_stop_s, nodes=nodes, resume="")
    uptime_s = 0.0
    for number, (more_s, job, reached) in enumerate(beats):
        uptime_s += more_s
        who.notice = number >= notice_at
        same = copy(who)
        done = decide(who, job, uptime_s)
        assert decide(same, job, uptime_s) == done
        assert same == who
        starts = any(isinstance(act, Start) for act in done)
        assert who.reached_s is not None
        if who.notice or uptime_s - who.reached_s >= FENCE_S or who.doing == "stopped":
            assert not starts
        assert (uptime_s >= hard_stop_s - SHUTDOWN_S - BEAT_S) <= who.shut_down
        assert who.shut_down == any(isinstance(act, ShutDown) for act in done)
        if who.shut_down:
            return
        if reached:
            who.reached_s = uptime_s


def test_who_is_heard_but_does_not_hear_stops_too() -> None:
    """Without its orders it cannot know that it was replaced."""
    who = working(heard_s=UP_S)
    for uptime_s in (UP_S + FENCE_S - 1, UP_S + FENCE_S):
        who.reached_s = uptime_s
        told = acts(who, RUNNING, uptime_s)
    assert told == [Stop]
    assert who.doing == "stopped"
