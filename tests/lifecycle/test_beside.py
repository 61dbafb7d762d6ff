"""What works is given up only for what is up."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
    NOW,
    WAY,
    a_beat,
    a_machine,
    a_request,
    a_seen,
    found,
    running,
)
from tradewind.lifecycle.beside import is_gone
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.leg import STAY_S
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import RunState
from tradewind.model.action import Record
from tradewind.model.event import (
    Event,
    LaunchRefused,
    LegDraining,
    LegLimited,
    LegOver,
    LegRequested,
    MachinesFound,
)
from tradewind.policy import careful

CHEAP = replace(WAY, zone="r1-b", price=WAY.price // 4)
WORK: dict[str, Any] = {"ways": (WAY, CHEAP), "work": 36_000.0}
AT_WORK = a_beat(step=100.0, rate=1.0)


def events(state: RunState, seen: Seen) -> list[Event]:
    ways = state.spec.ways if state.spec else ()
    made = decide(state, seen, ways, NOW, careful.choose)
    return [action.event for action in made if isinstance(action, Record)]


def asked(**spec: Any) -> LegRequested:
    seen = a_seen(a_machine(), beats=(AT_WORK,), ago_s=STAY_S, clock_s=CLOUD_S + 600)
    [event] = events(running(**(WORK | spec)), seen)
    assert isinstance(event, LegRequested)
    return event


def bought() -> MachinesFound:
    return found(a_machine("m2", 2))


def test_it_is_asked_for_while_the_other_works() -> None:
    event = asked()
    assert (event.request.way, event.request.relieves, event.request.waits) == (CHEAP, 1, True)
    state = running(event, **WORK)
    assert (state.phase, state.leg and state.leg.state) == ("active", "running")


def test_a_refusal_costs_no_work() -> None:
    refused = LaunchRefused(leg=2, kind="no_capacity", reason="sold out")
    state = running(asked(), refused, **WORK)
    assert (state.leg and state.leg.number, state.queued) == (1, None)
    seen = a_seen(a_machine(), beats=(AT_WORK,), ago_s=STAY_S, clock_s=CLOUD_S + 600)
    assert not any(isinstance(event, LegDraining) for event in events(state, seen))


def test_it_is_drained_when_all_of_the_next_are_up() -> None:
    state = running(asked(), bought(), **WORK)
    machines = (a_machine(), a_machine("m2", 2))
    silent = a_seen(*machines, beats=(AT_WORK,), ago_s=300.0, clock_s=CLOUD_S + 600)
    assert events(state, silent) == []
    beats = (AT_WORK, a_beat("m2", "setup", leg=2))
    [event] = events(state, a_seen(*machines, beats=beats, ago_s=300.0, clock_s=CLOUD_S + 600))
    assert isinstance(event, LegDraining)
    assert (event.leg, event.cause) == (1, "moved")


def test_what_never_comes_up_costs_no_work() -> None:
    state = running(asked(), bought(), **WORK)
    machines = (a_machine(), a_machine("m2", 2))
    seen = a_seen(*machines, beats=(AT_WORK,), ago_s=601.0, clock_s=CLOUD_S + 600)
    [event] = events(state, seen)
    assert isinstance(event, LegOver)
    assert (event.leg, event.cause) == (2, "boot_timeout")


def test_where_a_quota_has_room_for_one_it_is_drained_first() -> None:
    refused = LaunchRefused(leg=2, kind="no_quota", reason="32 vCPUs of 32 are in use")
    state = running(asked(), refused, **WORK)
    seen = a_seen(a_machine(), beats=(AT_WORK,), ago_s=STAY_S, clock_s=CLOUD_S + 600)
    [event] = events(state, seen)
    assert isinstance(event, LegDraining)


def test_two_at_once_never_pass_a_budget() -> None:
    """What nobody looks after goes on until its hard stop: the first is given ten hours."""
    ten_hours = 10 * WAY.price
    enough = asked(budget=3 * ten_hours)
    assert enough.request.hard_stop_s * CHEAP.price / 3600 <= 2 * ten_hours
    seen = a_seen(a_machine(), beats=(AT_WORK,), ago_s=STAY_S, clock_s=CLOUD_S + 600)

    def at(budget: float) -> list[Event]:
        return events(running(**(WORK | {"budget": int(budget)})), seen)

    # With less, it has until they are up; and the two together still keep to the budget.
    told, event = at(1.2 * ten_hours)
    assert isinstance(told, LegLimited)
    assert isinstance(event, LegRequested)
    assert told.hard_stop_s < 3600
    spent = told.hard_stop_s * WAY.price + event.request.hard_stop_s * CHEAP.price
    assert spent / 3600 <= 1.2 * ten_hours
    # Refused, it is told its old time again.
    refused = LaunchRefused(leg=2, kind="no_capacity", reason="sold out")
    after = running(told, event, refused, **(WORK | {"budget": int(1.2 * ten_hours)}))
    assert after.leg is not None
    assert after.leg.request.hard_stop_s == told.hard_stop_s
    [again] = events(after, seen)
    assert again == LegLimited(leg=1, hard_stop_s=36_000, reason=again.reason)  # type: ignore[union-attr]


def test_what_was_refused_is_not_drained_for() -> None:
    """The more often in a row, the longer it is believed."""
    refused = LaunchRefused(leg=2, kind="no_capacity", reason="sold out")
    state = running(asked(), refused, **WORK)
    assert is_gone(state, a_seen(ago_s=1_000.0), CHEAP)
    assert not is_gone(state, a_seen(ago_s=1_300.0), CHEAP)
    assert not is_gone(state, a_seen(ago_s=1_000.0), WAY)
    twice = running(
        asked(),
        refused,
        LegRequested(request=a_request(3, CHEAP, relieves=1, waits=True), reason=""),
        LaunchRefused(leg=3, kind="no_capacity", reason=""),
        **WORK,
    )
    assert is_gone(twice, a_seen(ago_s=1_300.0), CHEAP)
