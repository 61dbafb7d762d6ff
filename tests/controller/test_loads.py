"""What a service's load is taken for: where others' services scaled down, or up without end."""

from __future__ import annotations

import pytest

from tradewind.controller.loads import Loads
from tradewind.services.replay import GIVE_UP_S, PERIOD_S
from tradewind.services.seen import FrontSeen

AT_ONCE = 4


def seen(loads: Loads, front: FrontSeen | None, begin: float, seconds: int) -> float:
    for second in range(seconds):
        loads.add(front, AT_ONCE, begin + second)
    return begin + seconds


def test_an_answer_longer_than_any_window_counts_as_long_as_it_lasts() -> None:
    loads = Loads()
    seen(loads, FrontSeen(current=2, total=2), 1e9, 600)  # nothing new comes, nothing ends
    assert loads.load[1:] == (0.5,) * len(loads.load[1:])


def test_figures_that_are_gone_are_not_silence() -> None:
    loads = Loads()
    now = seen(loads, FrontSeen(current=6, total=6), 1e9, 60)
    seen(loads, None, now, 600)
    assert set(loads.load) == {1.5}


def test_what_waits_while_replicas_come_up_does_not_order_many_times_what_is_needed() -> None:
    """Of ten requests a second that take four seconds each (10 replicas), half find no room."""
    loads, now = Loads(), 1e9
    total = 0
    for _ in range(120):
        total += 10
        loads.add(FrontSeen(current=40, total=total), AT_ONCE, now)
        now += 1
    assert loads.load[-1] == pytest.approx(10, rel=0.05)
    for second in range(180):
        total += 10
        waiting = 5 * second
        loads.add(FrontSeen(current=20 + waiting, queued=waiting, total=total), AT_ONCE, now)
        now += 1
    backlog = 5 * 180 * 4 / AT_ONCE  # replica-seconds
    assert loads.load[-1] == pytest.approx(10 + backlog / GIVE_UP_S, rel=0.1)
    assert loads.load[-1] < 20


def test_the_first_request_at_zero_replicas_is_load() -> None:
    loads = Loads()
    seen(loads, FrontSeen(), 1e9, 300)
    assert not any(loads.load)
    seen(loads, FrontSeen(held=1, total=1), 1e9 + 300, PERIOD_S)
    assert loads.load[-1] > 0
