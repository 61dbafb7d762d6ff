"""What finishing takes on both markets: possible, in order, and never dearer for more time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tradewind.planning import finish
from tradewind.planning.finish import Course, Situation

HOUR = 3600.0


def situation(**given: Any) -> Situation:
    whole: dict[str, Any] = {
        "work_s": 24 * HOUR, "width": 0.2, "fits": 1.0, "machines": 1.0, "devices": 8.0,
        "startup_s": 400.0, "again_s": 300.0, "notice_s": 120.0, "seen": 0.0, "price": 0.3,
    } | given  # fmt: skip
    whole.setdefault("gang", whole["machines"])
    columns = {name: np.array([float(value)]) for name, value in whole.items()}
    return Situation(**columns, state_bytes=2e10, every_s=None, deadline_s=np.inf)


situations = st.builds(
    situation,
    work_s=st.floats(600, 5e6),
    width=st.floats(0, 0.6),
    machines=st.sampled_from([1, 2, 8, 64]),
    startup_s=st.floats(5, 50_000),
    again_s=st.floats(5, 20_000),
    notice_s=st.sampled_from([0.0, 30.0, 120.0]),
    seen=st.sampled_from([-1, 0, 1]),
    price=st.floats(0.02, 1.4),
)


def by(situation: Situation, deadline_s: float) -> Course:
    return finish.on_both(replace(situation, deadline_s=deadline_s))


def cost(situation: Situation, course: Course) -> float:
    """In hours on demand."""
    return float((situation.price * course.spot + course.on_demand)[0])


@given(situations, st.floats(0.5, 8))
def test_no_cheaper_than_spot_and_no_dearer_than_on_demand(case: Situation, times: float) -> None:
    deadline_s = times * float(case.work_s[0])
    found = by(case, deadline_s)
    spot_h = min(float(case.price[0]), 1.0) * float(case.work_s[0]) / HOUR
    on_demand_h = float(finish.on_demand(case).on_demand[0])
    assert spot_h * (1 - 1e-9) <= cost(case, found) <= on_demand_h * (1 + 1e-9)
    assert found.interruptions[0] >= 0
    assert found.spot[0] >= 0
    assert found.on_demand[0] >= 0
    # In time where on-demand would be, with a start to spare.
    spare_s = case.startup_s + case.again_s + 2 * HOUR
    if deadline_s >= 1.3 * case.work_s[0] + spare_s[0] * case.machines[0]:
        assert found.hours[0] * HOUR <= deadline_s
    assert found.hours[0] * HOUR >= case.work_s[0]


@given(situations, st.floats(0.5, 8), st.floats(1, 3))
def test_more_time_never_costs_more(case: Situation, times: float, more: float) -> None:
    deadline_s = times * float(case.work_s[0])
    early, late = by(case, deadline_s), by(case, more * deadline_s)
    assert cost(case, late) <= cost(case, early) * (1 + 1e-9)
    assert late.chance[0] >= early.chance[0]


def test_spot_alone_is_sure_only_where_capacity_is_seen() -> None:
    chances = []
    for seen in (1, 0, -1):
        case = replace(situation(seen=seen), deadline_s=72 * HOUR)
        alone, both = finish.on_spot(case), finish.on_both(case)
        assert alone.chance[0] < both.chance[0]
        assert alone.on_demand[0] == 0
        chances.append(float(alone.chance[0]))
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.8
    assert chances[2] < 0.7


def test_a_minute_on_spot_is_not_said_to_take_half_a_day() -> None:
    """Some zones have nothing for days: that makes it unsure, and not slow."""
    short = replace(situation(work_s=60.0), deadline_s=2 * HOUR)
    course = finish.on_spot(short)
    assert course.hours[0] < 0.5
    assert 0.7 < course.chance[0] < 0.95
