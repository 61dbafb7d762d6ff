from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.runs.builders import (
    CLOUD_S,
    SPOT,
    WAY,
    a_machine,
    found,
    requested,
    simulated,
    submitted,
)
from tradewind.ledger.postings import Posting, postings
from tradewind.model.bill import bill
from tradewind.model.event import Event, LegOver, MachineBack, MachineEnded
from tradewind.model.run import Machine, Way


def ended(machine: Machine, seconds: int) -> MachineEnded:
    gone = replace(machine, ended_s=machine.launched_s + seconds)
    return MachineEnded(machine=gone, reason="its provider says so")


def billed(seconds: int, *, step_s: int = 1, way: Way = WAY) -> Posting:
    stepped = replace(way, facts=replace(way.facts, billing_step_s=step_s))
    machine = a_machine()
    events: list[Event] = [
        submitted(),
        requested(way=stepped),
        found(machine),
        ended(machine, seconds),
    ]
    (posting,) = postings(events)
    return posting


def test_a_machine_costs_its_price_for_as_long_as_it_was_billed() -> None:
    assert billed(90) == Posting(
        machine_id="m1", leg=1, market="on_demand", price=3_600_000, seconds=90, micros=90_000
    )
    assert billed(90, way=SPOT).micros == 30_000


@pytest.mark.parametrize(
    ("seconds", "step_s", "paid_s"),
    [(59, 60, 60), (60, 60, 60), (61, 60, 120), (1, 3600, 3600), (3601, 3600, 7200), (0, 1, 1)],
)
def test_a_billing_step_that_was_begun_is_paid_whole(
    seconds: int, step_s: int, paid_s: int
) -> None:
    posting = billed(seconds, step_s=step_s)
    assert (posting.seconds, posting.micros) == (seconds, paid_s * 1000)


def test_a_fraction_of_a_micro_dollar_is_paid_too() -> None:
    assert bill(1, 1, 1) == 1
    assert bill(3601, 1, 1) == 2
    assert bill(0, 1000, 1) == 0


@given(
    price=st.integers(0, 10**9),
    seconds=st.integers(-10, 10**7),
    step_s=st.sampled_from((1, 60, 3600)),
)
def test_a_bill_never_falls_short_and_never_exceeds_a_step(
    price: int, seconds: int, step_s: int
) -> None:
    exact = price * max(seconds, 1)  # in 3600ths of a micro-dollar
    assert exact <= 3600 * bill(price, seconds, step_s) < exact + price * step_s + 3600
    assert bill(price, seconds, step_s) <= bill(price, seconds + 1, step_s)


def test_an_open_machine_has_no_cost_yet() -> None:
    events: list[Event] = [submitted(), requested(), found()]
    (posting,) = postings(events)
    assert (posting.seconds, posting.micros) == (None, 0)


def test_a_machine_that_is_back_is_open_until_it_has_ended_again() -> None:
    machine = a_machine()
    events: list[Event] = [submitted(), requested(), found(machine), ended(machine, 100)]
    assert [p.micros for p in postings(events)] == [100_000]
    events.append(MachineBack(machine_id="m1", reason="it is listed as alive again"))
    assert [(p.seconds, p.micros) for p in postings(events)] == [(None, 0)]
    events.append(ended(machine, 250))
    assert [(p.seconds, p.micros) for p in postings(events)] == [(250, 250_000)]


def test_a_corrected_end_replaces_the_first() -> None:
    machine = a_machine()
    events: list[Event] = [submitted(), requested(), found(machine)]
    events += [ended(machine, 100), ended(machine, 90)]
    assert [p.micros for p in postings(events)] == [90_000]


def test_what_was_found_when_it_had_ended_already_is_billed() -> None:
    machine = a_machine(ended_s=CLOUD_S + 40)
    assert [p.micros for p in postings([submitted(), requested(), found(machine)])] == [40_000]


def test_each_leg_at_the_price_that_it_was_bought_at() -> None:
    first, second = a_machine("m1", 1), a_machine("m2", 2)
    events: list[Event] = [
        submitted(),
        requested(1, SPOT),
        found(first),
        LegOver(leg=1, cause="interrupted", reason="r"),
        requested(2, WAY),
        found(second),
        ended(first, 100),
        ended(second, 100),
    ]
    assert [(p.leg, p.market, p.micros) for p in postings(events)] == [
        (1, "spot", 33_334),  # rounded up
        (2, "on_demand", 100_000),
    ]


def test_a_run_without_machines_costs_nothing() -> None:
    assert postings([submitted()]) == []
    assert postings([submitted(), requested()]) == []


@pytest.mark.parametrize("seed", range(20))
def test_a_closed_run_has_no_open_posting(seed: int) -> None:
    posted = postings(event for commit in simulated(seed) for event in commit.events)
    assert all(posting.seconds is not None for posting in posted)
