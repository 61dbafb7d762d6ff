"""What is kept back of a budget, and no more than that."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import (
    CLOUD_S,
    NOW,
    SPOT,
    WAY,
    a_beat,
    a_machine,
    a_seen,
    found,
    running,
    state_of,
    submitted,
)
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.money import at_most, hard_stop_s, needed, overtime, reserve
from tradewind.lifecycle.purchase import purchase, seconds_for
from tradewind.model.action import Record
from tradewind.model.event import Event, LegDraining, LegLimited, LegOver
from tradewind.model.run import Spec
from tradewind.model.timing import BEAT_S, DRAIN_S, SHUTDOWN_S, UNATTENDED_S
from tradewind.policy.base import Known, Option

HOUR = 3600


def test_the_reserve_is_no_more_than_the_rest_costs() -> None:
    """WAY costs 1,000 micro-dollars a second, starts in 300 s and does a unit of work a second."""
    long, short = (state_of(submitted(ways=(WAY,), work=work)) for work in (36_000.0, 600.0))
    assert needed(long, a_seen(), WAY) == reserve(long, WAY)
    least = needed(short, a_seen(), WAY)
    assert 1_000 * (300 + 600) < least < reserve(short, WAY)
    tiny = state_of(submitted(ways=(WAY,), work=1.0))
    # Whoever launches a machine that never comes up must have the time to see that.
    assert needed(tiny, a_seen(), WAY) >= 1_000 * WAY.facts.boot_timeout_s


def test_a_hard_stop_keeps_within_the_money_whoever_ends_the_machine() -> None:
    """WAY costs 1,000 micro-dollars a second. What does not end its own bill is paid until a
    controller ends it, and that time comes out of the money, too."""
    money = 10_000_000
    endless = replace(WAY, facts=replace(WAY.facts, ends="never"))
    by_itself, never = (hard_stop_s(way, money, None, 1e6) for way in (WAY, endless))
    assert by_itself - never == pytest.approx(0.99 * UNATTENDED_S, abs=2)
    assert 1_000 * (never + UNATTENDED_S + 2 * endless.facts.billing_lead_s) <= money


def test_a_hard_deadline_is_on_the_machine() -> None:
    """Whoever looks may be asleep then."""
    spec = Spec(name="n", work=36_000.0, ways=(WAY,), deadline_s=NOW + 2 * HOUR, hard=True)
    state, seen = state_of(submitted(spec)), a_seen()
    request = purchase(state, spec, seen, WAY, NOW, None, None, 36_000.0)
    assert request.hard_stop_s == 2 * HOUR + DRAIN_S + SHUTDOWN_S + BEAT_S
    soft = purchase(state, replace(spec, hard=False), seen, WAY, NOW, None, None, 36_000.0)
    assert soft.hard_stop_s > request.hard_stop_s


def limited(price: int, budget: int = 20_000_000, gone_s: int = 2 * HOUR) -> list[Event]:
    """Bought at $1.20 an hour, it costs `price` since an hour."""
    now_s = CLOUD_S + gone_s
    dearer = replace(a_machine(), prices=((CLOUD_S, SPOT.price), (CLOUD_S + HOUR, price)))
    state = running(found(dearer), way=SPOT, ways=(SPOT,), budget=budget, work=360_000.0)
    seen = a_seen(dearer, beats=(a_beat(step=100.0, rate=1.0),), clock_s=now_s)
    made = decide(state, seen, (SPOT,), NOW)
    return [action.event for action in made if isinstance(action, Record)]


@pytest.mark.parametrize("budget", [20_000_000, 1])
def test_no_budget_ends_machines_that_cost_nothing(budget: int) -> None:
    """One's own: of a cluster, behind SSH, this computer."""
    free = replace(WAY, price=0)
    seen = a_seen(a_machine(), beats=(a_beat(step=100.0, rate=1.0),), clock_s=CLOUD_S + HOUR)
    state = running(way=free, ways=(free,), budget=budget, work=360_000.0)
    made = [a.event for a in decide(state, seen, (free,), NOW) if isinstance(a, Record)]
    assert not [event for event in made if isinstance(event, (LegLimited, LegOver, LegDraining))]


def test_machines_that_have_come_to_cost_more_are_told_so() -> None:
    told = [event for event in limited(2_400_000) if isinstance(event, LegLimited)]
    assert not [event for event in limited(1_200_000) if isinstance(event, LegLimited)]
    [event] = told
    # An hour at $1.20, one at $2.40, and the rest of $20 at $2.40: 8.8 hours in all.
    assert 8.4 * HOUR < event.hard_stop_s < 8.8 * HOUR
    assert "whether anybody looks or not" in event.reason


def test_a_job_that_counts_no_steps_is_given_as_long_again() -> None:
    spec = Spec(name="by hours", work=3600.0, ways=(WAY,), steps=False)
    assert [overtime(spec, worked) for worked in (0, 1800, 3500, 7200)] == [3600, 1800, 900, 7200]


@pytest.mark.parametrize("worked_s", [0, 4 * HOUR])
def test_what_it_is_given_is_what_is_bought(worked_s: int) -> None:
    over = LegOver(leg=1, cause="hard_stop", reason="", saved=0.0)
    state = running(over, steps=False, work=3600.0)
    seen = a_seen(a_machine(), clock_s=CLOUD_S + 300 + worked_s)
    assert state.spec is not None
    option = Option("here", "on_demand", 1, 1.0, 300.0)
    known = Known(0.0, (option,))
    assert seconds_for(state, state.spec, seen, known, option) >= 300 + worked_s
    assert at_most(state, seen) > 0
