"""Policies that fail, and what a run does then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.lifecycle.builders import NOW, SPOT, WAY, a_beat, a_seen, running, state_of, submitted
from tradewind.lifecycle import forecast
from tradewind.lifecycle.decide import decide
from tradewind.model.action import Record
from tradewind.model.event import Event, LegDraining, LegRequested, Warned
from tradewind.model.run import Way
from tradewind.policy import safety
from tradewind.policy.base import Choice, Known


def fails(known: Known) -> Choice:
    raise ZeroDivisionError("by no slack")


BROKEN: list[Callable[[Known], Any]] = [
    fails,
    lambda known: None,
    lambda known: Choice(7, "the seventh of two"),
    lambda known: Choice(-1, "the last"),
    lambda known: Choice(True, "yes"),
    lambda known: 0,
]


def recorded(state: Any, seen: Any, policy: Any) -> list[Event]:
    found = decide(state, seen, state.spec.ways, NOW, policy)
    return [action.event for action in found if isinstance(action, Record)]


@pytest.mark.parametrize("policy", BROKEN)
def test_on_demand_is_bought_instead_and_that_is_said(policy: Any) -> None:
    state = state_of(submitted(ways=(SPOT, WAY), deadline_s=NOW + 36_000))
    warned, asked = recorded(state, a_seen(), policy)
    assert isinstance(warned, Warned)
    assert (warned.about, warned.level) == ("policy", 1)
    assert "cannot be used" in warned.reason
    assert isinstance(asked, LegRequested)
    assert asked.request.way == WAY
    assert "cannot be used" in asked.reason
    again = state_of(submitted(ways=(SPOT, WAY), deadline_s=NOW + 36_000), warned)
    assert len(recorded(again, a_seen(), policy)) == 1


def test_where_there_is_only_spot_the_plain_rule_chooses() -> None:
    _, asked = recorded(state_of(submitted(ways=(SPOT,))), a_seen(), fails)
    assert isinstance(asked, LegRequested)


def test_machines_that_work_are_not_left_for_a_policy_that_fails() -> None:
    state = running(way=SPOT, ways=(SPOT, WAY), deadline_s=NOW + 36_000)
    seen = a_seen(beats=(a_beat(rate=1.0, step=10.0),), ago_s=10_000.0)
    found = recorded(state, seen, fails)
    assert not any(isinstance(event, LegDraining) for event in found)
    [warned] = [event for event in found if isinstance(event, Warned)]
    assert (warned.about, warned.level) == ("policy", 1)
    assert "ZeroDivisionError: by no slack" in warned.reason


def test_the_net_holds_while_a_policy_fails() -> None:
    """What may be taken is left while safe machines still make it; what is safe never is."""
    seen = a_seen(beats=(a_beat(rate=1.0, step=10.0),), ago_s=10_000.0)

    def leaving(way: Way, left_s: float) -> list[LegRequested]:
        state = running(way=way, ways=(SPOT, WAY), deadline_s=NOW + left_s)
        found = recorded(state, seen, fails)
        return [event for event in found if isinstance(event, LegRequested)]

    state = running(way=SPOT, ways=(SPOT, WAY), deadline_s=NOW + 1.0)
    assert state.spec
    question = forecast.known(state, state.spec, seen, (SPOT, WAY), NOW, None)
    least_s = safety.rescue_s(question, question.work)
    [moved] = leaving(SPOT, least_s + 60)
    assert (moved.request.relieves, "cannot be used" in moved.reason) == (1, True)
    assert not leaving(WAY, least_s + 60)
    assert not leaving(SPOT, least_s - 60)  # that would be late all the same
