"""What a run has seen of capacity, and what our policy makes of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import (
    AT,
    SPOT,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    found,
    requested,
    submitted,
    up,
)
from tradewind.lifecycle import RunState, fold
from tradewind.lifecycle import capacity as capacities
from tradewind.lifecycle.decide import decide
from tradewind.model.action import Record
from tradewind.model.event import Commit, Event, LaunchRefused, LegDraining, LegOver, LegRequested
from tradewind.policy import careful

OTHER = replace(SPOT, zone="r1-b", price=1_300_000)
HOUR = 3600.0
START = AT.timestamp()


def at(*timed: tuple[float, Event]) -> RunState:
    """Folded, each event in a commit so many seconds after the start."""
    return fold(
        Commit(1, number, "w1", AT + timedelta(seconds=after_s), (event,))
        for number, (after_s, event) in enumerate(timed, 1)
    )


def refused(leg: int, kind: str = "no_capacity") -> LaunchRefused:
    return LaunchRefused(leg=leg, kind=kind, reason="r")


def over(leg: int, cause: str = "interrupted", **more: float) -> LegOver:
    return replace(LegOver(leg=leg, cause=cause, reason="r"), **more)


def stay(leg: int, begin_s: float, end_s: float, cause: str = "interrupted") -> list:  # type: ignore[type-arg]
    machine = a_machine(f"m{leg}", leg=leg)
    return [
        (begin_s, requested(leg, SPOT)),
        (begin_s, found(machine)),
        (begin_s, up(leg)),
        (end_s, over(leg, cause, saved=float(leg))),
    ]


def test_plans_learn_from_launches_refusals_and_interruptions() -> None:
    told = [*stay(1, 0.0, 5 * HOUR), (6 * HOUR, requested(2, SPOT)), (6 * HOUR, refused(2))]
    told += stay(3, 7 * HOUR, 9 * HOUR, "finished")
    timed = [(0.0, submitted()), *told]
    heard = []
    for number in range(1, len(timed)):
        before, after = at(*timed[:number]), at(*timed[: number + 1])
        heard += capacities.answers(before, after)
    assert [(one.there, (one.at_s - START) / HOUR, one.held_s / HOUR) for one in heard] == [
        (True, 0, 0),
        (False, 5, 5),
        (False, 6, 0),
        (True, 7, 0),
        (True, 9, 2),
    ]
    assert all(one.way == SPOT for one in heard)


def test_a_stay_that_was_cut_short_is_a_spell_of_capacity() -> None:
    state = at((0, submitted()), *stay(1, 100, 4000))
    seen = capacities.of(state, SPOT, START + 5000, None, held=False)
    assert seen == capacities.Capacity(None, 1000.0, ((True, 3900.0), (False, 60.0)))


def test_a_stay_that_its_run_ended_says_nothing_of_what_came_after() -> None:
    state = at((0, submitted()), *stay(1, 100, 4000, "moved"))
    seen = capacities.of(state, SPOT, START + 5000, None, held=False)
    assert seen == capacities.Capacity(None, 1000.0, ((True, 3900.0),))


def test_refusals_close_together_are_one_spell_without_capacity() -> None:
    state = at(
        (0, submitted()),
        (10, requested(1, SPOT)), (10, refused(1)),
        (610, requested(2, SPOT)), (610, refused(2)),
        (9610, requested(3, SPOT)), (9610, refused(3)),
    )  # fmt: skip
    seen = capacities.of(state, SPOT, START + 9700, None, held=False)
    assert seen.history == ((False, 660.0), (None, 8940.0), (False, 60.0))
    assert (seen.up, seen.since_s) == (None, 90.0)


def test_what_is_held_is_up_since_its_launch() -> None:
    state = at((0, submitted()), *stay(1, 100, 4000), *stay(2, 4500, 0)[:3])
    seen = capacities.of(state, SPOT, START + 5000, None, held=True)
    assert (seen.up, seen.since_s) == (True, 500.0)
    assert seen.history == ((True, 3900.0), (False, 60.0), (None, 440.0))
    assert capacities.held_s(state, SPOT, START + 5000) == 500.0


def test_a_wrong_clock_makes_no_negative_times() -> None:
    state = at((0, submitted()), (5000, requested(1, SPOT)), (5000, found()), (100, over(1)))
    seen = capacities.of(state, SPOT, START - 50_000, None, held=False)
    assert all(lasted_s > 0 for _, lasted_s in seen.history)
    assert seen.since_s == 0.0


@pytest.mark.parametrize(("ago_s", "expected"), [(100.0, False), (700.0, None)])
def test_on_demand_that_was_refused_is_believed_for_a_while(
    ago_s: float, expected: bool | None
) -> None:
    state = at((0, submitted()), (10, requested()), (10, refused(1)))
    assert capacities.of(state, WAY, START + 10 + ago_s, ago_s, held=False).up is expected


# -- with our policy -------------------------------------------------------------------------------


def chosen(state: RunState, now: float, *beats: object, ago_s: float = 400.0) -> list[Event]:
    assert state.spec is not None
    seen = a_seen(beats=beats, ago_s=ago_s)  # type: ignore[arg-type]
    actions = decide(state, seen, state.spec.ways, now, careful.choose)
    return [action.event for action in actions if isinstance(action, Record)]


def asked(state: RunState, now: float) -> LegRequested:
    (event,) = (e for e in chosen(state, now) if isinstance(e, LegRequested))
    return event


def work(hours: float, slack_h: float) -> Event:
    return submitted(
        ways=(SPOT, OTHER, WAY), work=hours * HOUR, deadline_s=START + (hours + slack_h) * HOUR
    )


def test_with_slack_the_cheapest_spot_is_tried_first() -> None:
    assert asked(at((0, work(24, 24))), START).request.way == SPOT


def test_without_slack_nothing_is_gambled() -> None:
    assert asked(at((0, work(24, 1))), START).request.way == WAY


def test_the_zone_that_has_just_failed_is_not_the_next() -> None:
    state = at((0, work(24, 24)), *stay(1, 100, 500))
    assert asked(state, START + 520).request.way == OTHER
    gone = at((0, work(24, 24)), (10, requested(1, SPOT)), (10, refused(1)))
    assert asked(gone, START + 30).request.way == OTHER


def test_a_zone_that_failed_long_ago_is_tried_again() -> None:
    state = at((0, work(24, 60)), *stay(1, 100, 20 * HOUR))
    assert asked(state, START + 30 * HOUR).request.way == SPOT


def test_a_leg_on_demand_goes_back_to_spot_when_there_is_slack_for_it() -> None:
    begun = (
        (0.0, work(24, 24)),
        (10.0, requested(1, WAY)),
        (10.0, found()),
        (20.0, up()),
    )
    beat = a_beat(rate=1.0, step=HOUR, saved=HOUR)
    moved = chosen(at(*begun), START + HOUR, beat, ago_s=HOUR)
    assert any(isinstance(e, LegRequested) and e.request.relieves == 1 for e in moved)
    late = chosen(at(*begun), START + 24 * HOUR, beat, ago_s=HOUR)
    assert not any(isinstance(e, LegDraining) for e in late)
