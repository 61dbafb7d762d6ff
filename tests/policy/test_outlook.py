"""The planner's outlook: possible at every point, in order, and in step with what was learned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.policy import outlook, spot
from tradewind.policy.regimes import regimes


def hours(
    work_h: float,
    time_h: float,
    restart_h: float = 0.1,
    price: float = 0.3,
    machines: float = 1,
    seen: float = 0,
) -> tuple[float, float]:
    """On spot, and on demand."""
    asked = (work_h, time_h, restart_h, price, machines, seen)
    found = outlook.surface().hours(*(np.array([float(value)]) for value in asked))
    return float(found.spot[0]), float(found.on_demand[0])


def cost(*case: float, price: float) -> float:
    work_h, time_h, restart_h, machines, seen = case
    on_spot, on_demand = hours(work_h, time_h, restart_h, price, machines, seen)
    return price * on_spot + on_demand


cases = st.tuples(
    st.floats(0.01, 2000),  # work
    st.floats(-0.5, 6),  # room beyond it, as a share
    st.floats(0.001, 20),  # restart
    st.integers(1, 300),
    st.sampled_from([-1, 0, 1]),
)
prices = st.floats(0.001, 1.5)


@given(cases, prices)
def test_no_cheaper_than_spot_and_no_dearer_than_on_demand(
    case: tuple[float, ...], price: float
) -> None:
    work_h, room, restart_h, machines, seen = case
    time_h = work_h * (1 + room) + restart_h
    on_spot, on_demand = hours(work_h, time_h, restart_h, price, machines, seen)
    least, most = min(price, 1) * (work_h + restart_h), work_h + restart_h
    assert on_spot >= 0
    assert on_demand >= 0
    assert least * (1 - 1e-9) <= price * on_spot + on_demand <= most * (1 + 1e-9)
    assert on_spot + on_demand >= (work_h + restart_h) * 0.995
    if price >= 1 or room <= 0:
        assert on_spot == 0


@given(cases, prices, st.floats(0, 500))
def test_more_time_never_costs_more(case: tuple[float, ...], price: float, more_h: float) -> None:
    work_h, room, restart_h, machines, seen = case
    time_h = work_h * (1 + room) + restart_h
    early = cost(work_h, time_h, restart_h, machines, seen, price=price)
    late = cost(work_h, time_h + more_h, restart_h, machines, seen, price=price)
    assert late <= early * (1 + 1e-9)


@given(cases, prices, st.floats(0, 1))
def test_a_dearer_price_never_costs_less(
    case: tuple[float, ...], price: float, more: float
) -> None:
    work_h, room, restart_h, machines, seen = case
    given_case = (work_h, work_h * (1 + room) + restart_h, restart_h, machines, seen)
    cheap = cost(*given_case, price=price)
    assert cost(*given_case, price=price + more) >= cheap * (1 - 1e-4)


def test_what_was_seen_and_how_many_are_needed_tell() -> None:
    up, unseen, down = (cost(24, 36, 0.1, 1, seen, price=0.3) for seen in (1, 0, -1))
    assert up < 0.8 * down
    assert up < unseen < down
    gangs = [cost(24, 36, 0.1, machines, 0, price=0.3) for machines in (1, 2, 4, 16, 100)]
    assert gangs == sorted(gangs)
    assert gangs[0] < 0.9 * gangs[3]


def test_it_is_in_step_with_what_was_learned() -> None:
    data = outlook.packaged()
    assert data.learned == outlook.learned_digest(), (
        "what was learned has changed: "
        "tradewind calibrate --outlook --out src/tradewind/policy/data/outlook.json"
    )


def test_a_gang_is_a_belief_like_any_other() -> None:
    start = regimes().start(1)
    for machines in (1, 2, 8, 1000):
        found = spot.as_gang(start, machines)
        assert found.sum() == pytest.approx(start.sum())
        assert (found >= 0).all()
    held = [spot.of(machines).held_h for machines in (1, 2, 4, 8, 16)]
    there = [spot.of(machines).there for machines in (1, 2, 4, 8, 16)]
    assert held == sorted(held, reverse=True)
    assert there == sorted(there, reverse=True)
    # Away from the ends of the grid a gang of n is lost n^0.6 times as often.
    middle = np.zeros(25)
    middle[12] = 1.0
    more = np.log(regimes().factors) * spot.as_gang(middle, 2)[:, None]
    moved = more.sum(axis=0) - np.log(regimes().factors[12])
    assert moved == pytest.approx([-spot.GAP_GANG * np.log(2), spot.GANG * np.log(2)])


def test_spot_alone_takes_longest_where_nothing_can_be_had() -> None:
    held = np.array([1.0, 10.0, 100.0])
    taken = spot.waited_hours(held, np.ones(3))
    assert (taken >= 0.999 * held[:, None]).all()
    assert (np.diff(taken, axis=0) > 0).all()
    belief = {seen: spot.beliefs(np.ones(3), np.full(3, seen)) for seen in (-1.0, 0.0, 1.0)}
    mean = {seen: (belief[seen] * taken).sum(axis=1) for seen in belief}
    assert (mean[1.0] < mean[0.0]).all()
    assert (mean[0.0] < mean[-1.0]).all()
    # After long, all regimes are the same.
    assert taken[2].max() / taken[2].min() < taken[0].max() / taken[0].min()
