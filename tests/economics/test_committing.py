"""Commitments: the optimum is that of trying everything."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.base.errors import InvalidValue
from tradewind.economics import committing
from tradewind.economics.committing import Bought, Commitment, Hours, Kind, choose, cost, hours_of

A, B = Kind("a", 10.0), Kind("b", 4.0)
RATE = st.floats(0.2, 1.1)
SERIES = st.lists(st.integers(0, 3), min_size=4, max_size=4)


def everything(hours: Hours, offered: list[Commitment]) -> float:
    """The least over all numbers of reserved machines and all sums of plans at which anything
    changes: some hour's machines covered to the last, in the order in which they save most."""
    most = [
        range(
            int(
                max(
                    row[[k.name for k in hours.kinds].index(next(iter(c.rates)))]
                    for row in hours.wanted
                )
            )
            + 1
        )
        for c in offered
        if not c.plan
    ]
    plans = [c for c in offered if c.plan]
    assert len(plans) <= 1
    least = cost(hours, [])
    for numbers in product(*most):
        reserved = [
            Bought(c, n) for c, n in zip((c for c in offered if not c.plan), numbers, strict=True)
        ]
        sums = {0.0}
        for plan in plans:
            price = {kind.name: kind.on_demand for kind in hours.kinds}
            order = sorted(plan.rates, key=lambda name: plan.rates[name] / price[name])
            for row in hours.wanted:
                left = dict(zip(price, row, strict=True))
                for one in reserved:
                    name = next(iter(one.commitment.rates))
                    left[name] = max(left[name] - one.amount, 0)
                total = 0.0
                for name in order:
                    total += left[name] * plan.rates[name]
                    sums.add(total)
        for dollars in sums:
            bought = [*reserved, *(Bought(plan, dollars) for plan in plans)]
            least = min(least, cost(hours, bought))
    return least


@given(a=SERIES, b=SERIES, ra=RATE, rb=RATE, ra3=RATE)
@settings(max_examples=60, deadline=None)
def test_reservations_are_the_best_of_all(
    a: list[int], b: list[int], ra: float, rb: float, ra3: float
) -> None:
    if not any(a) and not any(b):
        return
    hours = hours_of([A, B], {"a": a, "b": b})
    offered = [
        Commitment("ra", "1y", {"a": 10 * ra}), Commitment("ra3", "3y", {"a": 10 * ra3}),
        Commitment("rb", "1y", {"b": 4 * rb}),
    ]  # fmt: skip
    found = choose(hours, offered)
    assert found.usd_hour == pytest.approx(everything(hours, offered))
    assert found.usd_hour <= found.on_demand_usd_hour + 1e-9
    program = committing._program(hours, offered)
    assert cost(hours, program) == pytest.approx(found.usd_hour)


@given(a=SERIES, b=SERIES, r=RATE, pa=RATE, pb=RATE)
@settings(max_examples=60, deadline=None)
def test_plans_over_several_types_are_the_best_of_all(
    a: list[int], b: list[int], r: float, pa: float, pb: float
) -> None:
    if not any(a) and not any(b):
        return
    hours = hours_of([A, B], {"a": a, "b": b})
    offered = [
        Commitment("reserve a", "1y", {"a": 10 * r}),
        Commitment("plan", "1y", {"a": 10 * pa, "b": 4 * pb}, plan=True),
    ]
    found = choose(hours, offered)
    assert found.usd_hour == pytest.approx(everything(hours, offered), rel=1e-6, abs=1e-6)


def test_two_plans_are_not_spent_twice() -> None:
    hours = hours_of([A, B], {"a": [2, 2, 0], "b": [1, 3, 3]})
    offered = [
        Commitment("one", "1y", {"a": 6.0, "b": 3.0}, plan=True),
        Commitment("two", "1y", {"b": 2.0}, plan=True),
    ]
    found = choose(hours, offered)
    alone = min(choose(hours, [offered[n]]).usd_hour for n in (0, 1))
    assert found.usd_hour <= alone + 1e-6


def test_a_reservation_pays_from_its_share_of_the_hours_on() -> None:
    """A broker's rule, 60 to 70 % before reserving: exactly the ratio of the two prices."""
    offer = [Commitment("r", "1y", {"a": 6.5})]
    for busy, wanted in ((64, 0), (66, 1)):
        hours = hours_of([A], {"a": [1] * busy + [0] * (100 - busy)})
        assert sum(b.amount for b in choose(hours, offer).bought) == wanted


def test_less_use_than_thought() -> None:
    hours = hours_of([A], {"a": [4] * 9 + [0]})
    offer = [Commitment("r", "1y", {"a": 6.0})]
    sure = choose(hours, offer)
    assert sum(b.amount for b in sure.bought) == 4
    assert sure.break_even == pytest.approx(6 / 9, abs=0.02)
    for factor, with_, without in sure.by_use:
        assert (with_ > without) == (factor < 2 / 3)
    careful = choose(hours, offer, less=0.5, chance=0.8)
    assert sum(b.amount for b in careful.bought) == 2


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"a": [1, -1], "b": [0, 0]}, "a: -1 machines"),
        ({"a": [0], "b": [0]}, "nothing is used"),
        ({"a": [1], "b": []}, "every hour"),
        ({"a": [1]}, "every hour"),
    ],
)
def test_impossible_hours_are_refused(wanted: dict[str, list[int]], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        hours_of([A, B], wanted)


@pytest.mark.parametrize("less", [-0.1, 1.5])
def test_impossible_chances_are_refused(less: float) -> None:
    with pytest.raises(InvalidValue, match="less"):
        choose(hours_of([A], {"a": [1]}), [], less=less, chance=0.5)
