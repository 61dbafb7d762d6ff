"""What machines say of their use of the store: recorded, and counted as money."""

from __future__ import annotations

from msgspec.structs import replace

from tests.ledger.making import RATES
from tests.lifecycle.builders import (
    CLOUD_S,
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
from tradewind.lifecycle import decide
from tradewind.lifecycle.money import hard_stop_s, spent
from tradewind.lifecycle.usage import doubtful, hourly, used
from tradewind.model.event import LegOver, MachineEnded, MachineUsed
from tradewind.model.usage import Usage

METERED = replace(WAY, rates=RATES, nodes=2)
SAID = Usage(writes=1000)
MORE = Usage(writes=3000)


def test_it_is_recorded_with_the_end_of_its_leg() -> None:
    state = running(way=METERED)
    beats = (a_beat("m1", "failed", usage=SAID), a_beat("m2", usage=MORE))
    actions = decide(state, a_seen(a_machine(), beats=beats), (METERED,), 0.0)
    events = [action.event for action in actions]  # type: ignore[union-attr]
    assert [type(event) for event in events] == [MachineUsed, MachineUsed, LegOver]
    assert [event.usage for event in events[:2]] == [SAID, MORE]  # type: ignore[union-attr]


def test_while_a_leg_goes_on_nothing_is_recorded() -> None:
    state = running(way=METERED)
    beats = (a_beat("m1", usage=SAID), a_beat("m2", usage=MORE))
    assert decide(state, a_seen(a_machine(), beats=beats), (METERED,), 0.0) == []


def test_what_is_recorded_is_not_recorded_again() -> None:
    known = MachineUsed(machine_id="m1", leg=1, usage=SAID)
    state = running(known, way=METERED)
    assert used(state, {"m1": a_beat(usage=SAID), "m2": a_beat("m2"), "m9": a_beat("m9")}) == []
    (event,) = used(state, {"m1": a_beat(usage=MORE)})
    assert event == MachineUsed(machine_id="m1", leg=1, usage=MORE)


def test_money() -> None:
    """5,000 micro-dollars for a thousand writes, and 1,000 for a second of a machine."""
    state = running(way=METERED)
    at = CLOUD_S + 10
    assert spent(state, a_seen(clock_s=at)) == 20_000
    beats = (a_beat("m1", usage=SAID), a_beat("m2"))
    assert spent(state, a_seen(clock_s=at, beats=beats)) == 25_000
    state = running(MachineUsed(machine_id="m1", leg=1, usage=MORE), way=METERED)
    assert spent(state, a_seen(clock_s=at)) == 35_000
    free = running(MachineUsed(machine_id="m1", leg=1, usage=MORE))
    assert spent(free, a_seen(clock_s=at)) == 10_000


def test_only_machines_of_this_life_may_have_something_to_say() -> None:
    state = state_of(submitted(), requested(), found(a_machine()), up())
    assert doubtful(state) == ["m1"]
    state.first_leg = 2
    assert doubtful(state) == []


def test_the_prices_that_a_provider_tells_are_recorded() -> None:
    """With the end of a machine, or later, when it knows them."""
    prices = ((CLOUD_S, 1_000_000), (CLOUD_S + 30, 2_000_000))
    listed = a_machine(ended_s=CLOUD_S + 60, prices=prices)
    (action,) = decide(running(), a_seen(listed), (WAY,), 0.0)
    event = action.event  # type: ignore[union-attr]
    assert isinstance(event, MachineEnded)
    assert event.machine.prices == prices
    without = replace(event, machine=replace(event.machine, prices=()))
    (later, *_) = decide(running(without), a_seen(listed), (WAY,), 0.0)
    assert later.event == event  # type: ignore[union-attr]


def test_a_budget_leaves_room_for_what_supervisors_ask() -> None:
    """6,000 requests an hour of each kind, for each of two machines: 32,400 micro-dollars."""
    free, metered = replace(WAY, nodes=2), METERED
    assert hourly(free) == 0
    assert hourly(metered) == 32_400
    left = 7_264_800
    assert hard_stop_s(free, left, None, 10**6) == int(0.99 * 3632) - 120
    assert hard_stop_s(metered, left, None, 10**6) == int(0.99 * 3600) - 120
