from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tests.ledger.making import HOUR_S, NOON_S
from tests.lifecycle.builders import SPEC, WAY
from tradewind.ledger.idle import Idle, idle_of, lines
from tradewind.ledger.postings import RunCost, cost_of
from tradewind.ledger.report import key_of
from tradewind.model.event import (
    Commit,
    LegOver,
    LegRequested,
    LegUp,
    MachineEnded,
    MachinesFound,
    Progress,
    Submitted,
    Warned,
)
from tradewind.model.run import Machine, Request

SKEW_S = 5000
"""The provider's clock and the controller's have nothing to do with each other."""
PRICE = 3_600_000
"""A micro-dollar's thousand a second."""


def made(
    *told: tuple[int, Any], ended_s: int | None, step_s: int = 1
) -> tuple[RunCost, list[Idle]]:
    """One machine, launched at second 0; events of its leg at theirs. Asked two hours after."""
    way = replace(WAY, price=PRICE, facts=replace(WAY.facts, billing_step_s=step_s))
    start = datetime.fromtimestamp(NOON_S, UTC)
    machine = Machine(machine_id="m", launch_id="r-1", run_id="r", leg=1, rank=0,
                      launched_s=NOON_S + SKEW_S)  # fmt: skip
    request = Request(launch_id="r-1", run_id="r", leg=1, way=way, hard_stop_s=HOUR_S)
    events: list[tuple[int, Any]] = [
        (0, Submitted(run_id="r", spec=replace(SPEC, ways=(way,), idle_s=600, user="ada"))),
        (0, LegRequested(request=request, reason="r")),
        (0, MachinesFound(machines=(machine,), reason="r")),
        *told,
    ]
    if ended_s is not None:
        end = replace(machine, ended_s=NOON_S + SKEW_S + ended_s)
        events.append((ended_s, MachineEnded(machine=end, reason="r")))
    commits = [
        Commit(2, n, "w", start + timedelta(seconds=at), (event,))
        for n, (at, event) in enumerate(events, 1)
    ]
    now = start + timedelta(seconds=7200)
    each = (event for commit in commits for event in commit.events)
    cost = cost_of("r", each, NOON_S + SKEW_S + 7200)
    return cost, idle_of(cost, commits, now)


UP, OVER = LegUp(leg=1, reason="r"), LegOver(leg=1, cause="lost", reason="r")


def seconds(idles: list[Idle]) -> dict[str, int]:
    return {each.why: each.part.paid_s for each in idles}


def test_before_all_had_reported_and_after_the_leg_was_over() -> None:
    cost, idles = made((400, UP), (3000, OVER), ended_s=3100)
    assert seconds(idles) == {"starting": 400, "ending": 100}
    assert sum(each.part.micros for each in idles) == 500_000
    (line,) = lines(idles, cost.postings, key_of("user"))
    assert (line.what, line.seconds, line.idle_s) == ("ada", 3100, 500)
    assert line.by_why == {"starting": 400_000, "ending": 100_000}


def test_the_billing_step_that_was_begun_is_paid_for_nothing() -> None:
    _, idles = made((0, UP), (3000, OVER), ended_s=3000, step_s=HOUR_S)
    assert seconds(idles) == {"ending": 600}


def test_a_job_that_does_nothing_from_when_it_stopped_to_when_it_went_on() -> None:
    warned = Warned(about="idle", level=1, reason="r")
    on = Progress(leg=1, step=5, saved=5)
    _, idles = made((100, UP), (2000, warned), (2600, on), (4000, OVER), ended_s=4000)
    assert seconds(idles) == {"starting": 100, "idle": 1200}  # the 600 s before the warning too


def test_what_never_came_up_was_idle_all_the_time_and_what_lives_has_not_ended() -> None:
    _, idles = made((900, OVER), ended_s=950)
    assert seconds(idles) == {"starting": 900, "ending": 50}
    _, idles = made((300, UP), ended_s=None)
    assert seconds(idles) == {"starting": 300}


def test_never_more_than_was_paid_for() -> None:
    warned = Warned(about="idle", level=1, reason="r")
    cost, idles = made((100, UP), (200, warned), (9000, OVER), ended_s=500)
    assert sum(each.part.micros for each in idles) <= cost.micros


def test_a_period_cuts_it() -> None:
    cost, idles = made((400, UP), (3000, OVER), ended_s=3100)
    since = NOON_S + SKEW_S + 100
    (line,) = lines(idles, cost.postings, key_of("user"), since, since + 200)
    assert (line.seconds, line.idle_s) == (200, 200)
