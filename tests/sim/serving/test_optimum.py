"""The least cost, against every course that there is."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.services.replay import Replicas
from tradewind.sim.serving import optimum


def every_course(need: list[int], kind: Replicas) -> float:
    """By trying all numbers of replicas in each second; those of the first are there already, or
    begin to come up with the trace."""
    most = max(need)

    @cache
    def least(second: int, have: int) -> float:
        if second == len(need):
            return 0.0
        found = float("inf")
        for count in range(need[second], most + 1):
            more = max(count - have, 0) * min(kind.cold_s, second)
            fewer = max(have - count, 0) * kind.drain_s
            found = min(found, more + fewer + count + least(second + 1, count))
        return found

    return min(least(0, have) for have in range(need[0], most + 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(0, 4))
def test_level_by_level_is_the_optimum(need: list[int], cold: int) -> None:
    kind = Replicas(cold, 0.0, 0)
    assert optimum.seconds(np.array(need, float), kind) == every_course(need, kind)


@settings(deadline=None)
@given(st.lists(st.floats(0, 4), min_size=1, max_size=30), st.floats(0, 2))
def test_what_is_needed_lets_nothing_be_late(load: list[float], slack: float) -> None:
    asked, kind = np.array(load), Replicas(0, slack, 0)
    behind = 0.0
    for arrives, count in zip(load, optimum.needed(asked, kind).tolist(), strict=True):
        behind = max(behind + arrives - count, 0.0)
        assert behind <= slack * count + 1e-6


def test_a_burst_needs_less_where_it_may_wait() -> None:
    load = np.array([0.0, 3.0, 0.0, 0.2])
    assert optimum.needed(load, Replicas(0, 0.0, 0)).max() == 3
    assert optimum.needed(load, Replicas(0, 2.0, 0)).max() == 1
