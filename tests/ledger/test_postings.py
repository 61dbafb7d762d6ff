from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
    SPOT,
    WAY,
    a_machine,
    found,
    requested,
    simulated,
    submitted,
    up,
)
from tradewind.ledger.postings import Posting, cost_of, postings, stored, transfers
from tradewind.model.bill import bill, charged
from tradewind.model.event import Event, LegOver, MachineBack, MachineEnded
from tradewind.model.run import Facts, Machine, Way


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
        machine_id="m1",
        leg=1,
        market="on_demand",
        price=3_600_000,
        seconds=90,
        micros=90_000,
        run_id="run-1",
        provider="cloud",
        region="r1",
        zone="r1-a",
        instance_type="small",
        paid_s=90,
        from_s=CLOUD_S,
        to_s=CLOUD_S + 90,
        on_demand_price=3_600_000,
        on_demand=90_000,
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
    assert bill(1, 1, Facts()) == 1
    assert bill(3601, 1, Facts()) == 2
    assert bill(0, 1000, Facts()) == 0


def test_disk_and_address_are_lines_of_their_own_at_whatever_price() -> None:
    """$3.60 an hour, of which the disk takes $0.36 and the address $0.18; off, only the disk
    goes on."""
    way = replace(WAY, disk_price=360_000, address_price=180_000)
    machine = a_machine(ended_s=CLOUD_S + 7200)
    assert charged(way, machine, 7200) == 7_200_000
    assert charged(way, replace(machine, off_s=CLOUD_S + 3600), 7200) == 3_600_000 + 360_000
    told = ((CLOUD_S, 1_000_000), (CLOUD_S + 3600, 2_000_000))
    assert charged(way, replace(machine, prices=told), 7200) == 3_000_000 + 2 * 540_000


def test_a_short_life_is_paid_as_the_least_that_is_billed() -> None:
    least = Facts(billing_least_s=60)
    assert [bill(3600, seconds, least) for seconds in (0, 59, 60, 61)] == [60, 60, 60, 61]
    assert bill(3600, 10, Facts(billing_least_s=60, billing_step_s=50)) == 100


@given(
    price=st.integers(0, 10**9),
    seconds=st.integers(-10, 10**7),
    step_s=st.sampled_from((1, 60, 3600)),
)
def test_a_bill_never_falls_short_and_never_exceeds_a_step(
    price: int, seconds: int, step_s: int
) -> None:
    exact = price * max(seconds, 1)  # in 3600ths of a micro-dollar
    facts = Facts(billing_step_s=step_s)
    assert exact <= 3600 * bill(price, seconds, facts) < exact + price * step_s + 3600
    assert bill(price, seconds, facts) <= bill(price, seconds + 1, facts)


def test_an_open_machine_has_no_cost_yet() -> None:
    events: list[Event] = [submitted(), requested(), found()]
    (posting,) = postings(events)
    assert (posting.seconds, posting.micros) == (None, 0)


def test_an_open_machine_s_cost_so_far() -> None:
    way = replace(WAY, facts=replace(WAY.facts, billing_step_s=60))
    events: list[Event] = [submitted(), requested(way=way), found()]
    (posting,) = postings(events, CLOUD_S + 61)
    assert (posting.seconds, posting.paid_s, posting.micros) == (61, 120, 120_000)
    assert posting.open
    assert posting.to_s == CLOUD_S + 61
    assert posting.stop_s == CLOUD_S + 36_000 + 2 * way.facts.billing_lead_s
    (posting,) = postings(events, CLOUD_S + 61, {"cloud": CLOUD_S + 10, "other": 0})
    assert (posting.seconds, posting.micros) == (10, 60_000)
    (posting,) = postings(events, 0)  # a clock that is behind: it has cost a step all the same
    assert (posting.seconds, posting.micros) == (0, 60_000)


def test_an_end_before_the_start_costs_one_step() -> None:
    posting = billed(-30)
    assert (posting.seconds, posting.micros, posting.to_s) == (0, 1_000, posting.from_s)


def test_what_a_provider_forgot_is_estimated_until_it_remembers() -> None:
    machine = a_machine()
    guess = replace(ended(machine, 100), estimated=True)
    events: list[Event] = [submitted(), requested(), found(machine), guess]
    assert [(p.micros, p.estimated) for p in postings(events)] == [(100_000, True)]
    events.append(ended(machine, 60))
    assert [(p.micros, p.estimated) for p in postings(events)] == [(60_000, False)]
    events += [guess, MachineBack(machine_id="m1", reason="it lives")]
    assert [(p.open, p.estimated) for p in postings(events)] == [(True, False)]


def test_whose_it_is() -> None:
    whose = submitted(project="nlp", user="ada", tags={"team": "blue"})
    (posting,) = postings([whose, requested(), found()])
    assert (posting.project, posting.user, posting.tags) == ("nlp", "ada", {"team": "blue"})


def test_moving_data_is_posted_once_for_each_leg_that_came_up() -> None:
    way = replace(WAY, start_cost=1_250_000)
    events: list[Event] = [
        submitted(ways=(way,)),
        requested(1, way),
        found(a_machine("m1", 1)),
        LegOver(leg=1, cause="boot_timeout", reason="r"),
        requested(2, way),
        found(a_machine("m2", 2, launched_s=CLOUD_S + 900)),
        up(2),
        ended(a_machine("m2", 2), 100),
    ]
    (moved,) = transfers(events)
    assert (moved.kind, moved.leg, moved.micros, moved.seconds) == ("transfer", 2, 1_250_000, 0)
    assert moved.from_s == moved.to_s == CLOUD_S + 900
    assert moved.estimated
    assert sum(p.micros for p in postings(events)) == 100_000  # what the provider bills, alone
    whole = cost_of("run-1", events)
    assert whole.micros == 1_350_000
    assert [p.kind for p in whole.postings] == ["machine", "machine", "transfer"]
    assert transfers([submitted(), requested(), found(), up()]) == []


def elsewhere(**more: Any) -> Way:
    return replace(WAY, **more)


@pytest.mark.parametrize(
    ("ways", "price"),
    [
        ((SPOT,), None),
        ((SPOT, elsewhere(instance_type="large")), None),
        ((SPOT, elsewhere(provider="other")), None),
        ((SPOT, elsewhere(region="r2", zone="r2-a", price=5)), 5),
        ((SPOT, elsewhere(region="r2", zone="r2-a", price=5), elsewhere(zone="r1-b", price=7)), 7),
        ((elsewhere(zone="r1-b", price=5), SPOT, WAY), WAY.price),
    ],
)
def test_what_it_would_have_cost_on_demand(ways: tuple[Way, ...], price: int | None) -> None:
    machine = a_machine()
    events: list[Event] = [submitted(ways=ways), requested(1, SPOT), found(machine)]
    (posting,) = postings([*events, ended(machine, 3600)])
    assert posting.on_demand_price == price
    assert posting.on_demand == price


def test_how_long_a_run_took() -> None:
    events: list[Event] = [submitted(), requested(), found(a_machine("m1"), a_machine("m2"))]
    assert cost_of("run-1", [submitted()]).elapsed_s == 0
    assert cost_of("run-1", events).elapsed_s == 0
    late = a_machine("m2", launched_s=CLOUD_S + 50)
    events += [ended(a_machine("m1"), 10), ended(late, 70)]
    assert cost_of("run-1", events).elapsed_s == 120


@pytest.mark.parametrize("seed", range(40))
def test_what_a_simulated_run_cost_is_its_postings(seed: int) -> None:
    events = [event for commit in simulated(seed) for event in commit.events]
    run_cost = cost_of("run-1", events, 0)
    machines, store = postings(events), stored(events, 0)
    assert list(run_cost.postings) == machines + store
    assert run_cost.outcome or run_cost.spec is None
    assert run_cost.micros == sum(p.micros for p in machines + store)
    for posting in run_cost.postings:
        assert posting.on_demand is None or posting.on_demand >= posting.micros
        assert not posting.open


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
