from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger.making import HOUR_S, NOON_S, moment, run_cost
from tests.lifecycle.builders import WAY
from tradewind.api import chargefile
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.ledger.chargeback import Shared, charged
from tradewind.ledger.report import NONE
from tradewind.ledger.shares import shares

HOUR = WAY.price
"""Micro-dollars of one machine's hour."""


def runs() -> list[Any]:
    """nlp has 3 hours, vision 1, infra 2, and nobody 1."""
    hours = {"nlp": 3, "vision": 1, "infra": 2, "": 1}
    return [
        run_cost(f"r{n}", NOON_S - 10 * HOUR_S, (WAY, many * HOUR_S), project=project)
        for n, (project, many) in enumerate(hours.items())
    ]


def test_what_is_shared_is_split_by_what_each_project_costs() -> None:
    made = charged(runs(), [Shared(name="platform", of=("infra", NONE))], NOON_S)
    assert [(each.project, each.own, each.parts) for each in made.charges] == [
        ("nlp", 3 * HOUR, (3 * HOUR * 3 // 4,)),
        ("vision", HOUR, (3 * HOUR // 4,)),
    ]
    assert made.total == 7 * HOUR


def test_in_equal_parts_and_in_told_ones() -> None:
    rules = [
        Shared(name="a", of=("infra",), split="even"),
        Shared(name="b", of=(NONE,), split={"nlp": 0.25, "robots": 0.75}),
    ]
    made = charged(runs(), rules, NOON_S)
    parts = {each.project: each.parts for each in made.charges}
    assert parts["nlp"] == (HOUR, HOUR // 4)
    assert parts["vision"] == (HOUR, 0)
    assert parts["robots"] == (0, HOUR - HOUR // 4)  # it ran nothing, and bears its part
    assert made.total == 7 * HOUR


def test_an_amount_a_month_is_charged_for_the_part_of_the_month_that_is_asked_for() -> None:
    rule = Shared(name="support", month=30_000_000)
    since, until = moment("2026-11-15T00:00"), moment("2026-11-16T00:00")
    made = charged(runs(), [rule], until, since, until)
    assert sum(each.parts[0] for each in made.charges) == 1_000_000  # one of thirty days


def test_what_nobody_is_there_to_bear_is_told() -> None:
    only = [run_cost("r", NOON_S - HOUR_S, (WAY, HOUR_S), project="infra")]
    made = charged(only, [Shared(name="platform", of=("infra",))], NOON_S)
    assert made.charges == ()
    assert made.left == (("platform", HOUR),)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 50_000)), min_size=1, max_size=8),
    st.sets(st.sampled_from("abcd"), max_size=3),
    st.sampled_from(["cost", "hours", "even"]),
)
def test_all_charges_are_all_that_was_spent(
    stays: list[tuple[str, int]], of: set[str], split: str
) -> None:
    costs = [
        run_cost(f"r{n}", NOON_S - 100_000, (WAY, seconds), project=project)
        for n, (project, seconds) in enumerate(stays)
    ]
    made = charged(costs, [Shared(name="s", of=tuple(sorted(of)), split=split)], NOON_S)
    assert made.total == sum(cost.micros for cost in costs)


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ([Shared(name="a", of=("x",)), Shared(name="b", of=("x",))], "both have project 'x'"),
        ([Shared(name="a", of=("x",), split={"x": 1.0})], "gives a part to 'x'"),
        ([Shared(name="a", month=1, split={"x": 0.5})], "add up to 50.0000%"),
        ([Shared(name="a", month=1), Shared(name="a", month=2)], "two shared costs are called 'a'"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(rules: list[Shared], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        charged([], rules, NOON_S)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}", "shared is missing"),
        ("shared: [{of: [a]}]", "c line 1: shared[1]: name is missing"),
        ("shared: [{name: a}]", "say what is shared"),
        ("shared: [{name: a, of: [b], split: half}]", "'half' is not how it can be split"),
        ("shared: [{name: a, of: [b], split: {c: 60%}}]", "add up to 60.0000%"),
        ("shared: [{name: a, of: [b], split: {c: lots}}]", "'lots' is not a share"),
        ("shared: [{name: a, month: -5}]", "is negative"),
        ("shared: [{name: a, of: [b], by: x}]", "there is no such field"),
    ],
)
def test_a_wrong_file_is_told_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadFile) as caught:
        chargefile.read(text, "c")
    assert complaint in caught.value.message


def test_what_is_read() -> None:
    text = """
        shared:
        - {name: p, of: [infra, (none)], split: hours}
        - name: s
          month: $2,000
          split: {a: 60%, b: 0.4}
    """
    assert chargefile.read(text, "c") == [
        Shared(name="p", of=("infra", NONE), split="hours"),
        Shared(name="s", month=2_000_000_000, split={"a": 0.6, "b": 0.4}),
    ]


@pytest.mark.parametrize("micros", [-10, -1, 0, 1, 10])
def test_parts_add_up_of_whatever_amount(micros: int) -> None:
    assert sum(shares(micros, {"a": 1, "b": 1, "c": 1}).values()) == micros
