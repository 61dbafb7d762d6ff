"""What moving costs, in choices: where it is free, everything is as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.policy.questions import ANSWERS, answers, questions
from tradewind.policy import careful, expected, moving, plain, safety
from tradewind.policy.base import Known, Option, Policy

HOUR = 3600.0
SAFE = Option("home/a", "on_demand", 3_000_000, 1.0, 600.0, again_s=600.0, up=True)
SPOT = Option("home/z", "spot", 1_500_000, 1.0, 600.0, again_s=600.0, up=True, up_s=10 * HOUR)
FAR = replace(SPOT, place="far/z", price=1_000_000)
DEAR = 20_000_000
"""To bring the work there: as much as 20 hours of it."""


def known(*options: Option, **more: Any) -> Known:
    return replace(Known(24 * HOUR, options, 48 * HOUR, tick_s=300.0), **more)


def held(option: Option) -> Option:
    return replace(option, start_s=0.0, start_cost=0, again_cost=moving.again(option))


def test_where_moving_is_free_nothing_has_changed() -> None:
    """By choices and words that were recorded before it had a price."""
    assert answers() == json.loads(ANSWERS.read_text())
    assert all(not option.start_cost for each in questions() for option in each.options)


@pytest.mark.parametrize("policy", [plain.choose, expected.choose, careful.choose])
def test_what_is_far_must_be_worth_its_start(policy: Policy) -> None:
    far = replace(FAR, start_cost=DEAR)
    assert policy(known(SPOT, FAR, SAFE)).option == 1
    assert policy(known(SPOT, far, SAFE)).option == 0
    assert policy(known(SPOT, replace(FAR, start_cost=10_000), SAFE)).option == 1


@pytest.mark.parametrize("policy", [plain.choose, expected.choose, careful.choose])
def test_a_move_must_pay_back_what_it_costs(policy: Policy) -> None:
    here = held(replace(SPOT, start_cost=DEAR))
    assert policy(known(here, replace(FAR, start_cost=DEAR), SAFE, holding=0)).option == 0
    much = replace(FAR, price=100_000)
    assert policy(known(here, much, SAFE, holding=0)).option == 1


def test_what_is_held_is_not_left_because_coming_back_would_cost() -> None:
    """It is paid for already: it is left when it is taken."""
    there = held(replace(FAR, start_cost=DEAR))
    for others in ((SAFE,), (replace(SPOT, price=2_800_000), SAFE)):
        assert expected.choose(known(there, *others, holding=0)).option == 0


def test_safe_machines_at_home_are_the_measure_where_others_are_far() -> None:
    far = replace(SAFE, place="far/a", price=2_900_000, start_cost=DEAR)
    short = {"time_s": 24 * HOUR + 700}
    for policy in (expected.choose, careful.choose, safety.safest):
        assert policy(known(far, SAFE, **short)).option == 1
        assert policy(known(held(far), SAFE, **short, holding=0)).option == 0


def test_nobody_waits_for_what_is_not_worth_its_start() -> None:
    away = replace(FAR, up=False, up_s=600.0, history=((True, 20 * HOUR),))
    assert expected.choose(known(away, SAFE)).option is None
    assert expected.choose(known(replace(away, start_cost=5 * DEAR), SAFE)).option == 1


def test_spot_that_is_soon_lost_is_dearer_by_its_starts() -> None:
    """The same at a place for machines that last."""
    once = 700_000
    brief = replace(FAR, up_s=60.0, history=((False, 300.0), (True, 300.0)) * 8)
    steady = replace(FAR, up_s=100 * HOUR)
    for cost, short in ((0, 0), (once, 1)):
        far = replace(brief, start_cost=cost)
        assert expected.choose(known(far, replace(SPOT, price=1_400_000), SAFE)).option == short
    far = replace(steady, start_cost=once)
    assert expected.choose(known(far, replace(SPOT, price=1_400_000), SAFE)).option == 0


def test_later_starts_without_a_deadline() -> None:
    assert moving.later(SPOT, 100.0) == 0.0
    assert moving.later(replace(SAFE, start_cost=DEAR), 100.0) == 0.0
    assert moving.later(replace(SPOT, start_cost=DEAR), 100.0) > DEAR
    # A hundred hours of far spot would do for less than at home, were it not for coming back.
    far = replace(FAR, start_cost=DEAR)
    assert plain.choose(known(far, SAFE, work=100 * HOUR, time_s=None)).option == 1


@pytest.mark.parametrize("policy", [expected.choose, careful.choose])
def test_free_machines_are_taken_while_they_will_do(policy: Policy) -> None:
    """And where they are too slow, all others are weighed as if they were not there."""
    free = replace(SAFE, place="local", price=0, start_s=2.0)
    slow = replace(free, rate=0.1)
    assert policy(known(SPOT, SAFE, free)).option == 2
    assert policy(known(SPOT, SAFE, slow)).option == policy(known(SPOT, SAFE)).option == 0
    assert policy(known(held(slow), SPOT, SAFE, holding=0)).option == 1
    assert policy(known(slow, replace(SPOT, up=False, up_s=HOUR))).option == 0


@given(
    cost=st.integers(0, 10**8),
    more=st.integers(1, 10**8),
    price=st.integers(500_000, 3_500_000),
    up_s=st.floats(0, 50 * HOUR),
    time_h=st.floats(24.5, 72),
)
@settings(max_examples=60, deadline=None)
def test_what_is_dearer_to_reach_is_never_chosen_for_that(
    cost: int, more: int, price: int, up_s: float, time_h: float
) -> None:
    far = replace(FAR, start_cost=cost, price=price, up_s=up_s)
    asked = known(SPOT, far, SAFE, time_s=time_h * HOUR)
    dearer = replace(far, start_cost=cost + more)
    for policy in (plain.choose, expected.choose, careful.choose):
        if policy(asked).option != 1:
            assert policy(replace(asked, options=(SPOT, dearer, SAFE))).option != 1
