"""Allowing more never costs more, and other laws that nobody should have to think about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.cases import and_long
from tests.catalog.small import NOW, REAL, small
from tests.planning import laws
from tests.planning.drawn import GPT2, PROVIDERS, dollars, offers
from tradewind.api.planned import plan
from tradewind.bench import asks
from tradewind.catalog.table import Row
from tradewind.model import Data, Limits, Train, Workload
from tradewind.model.plan import Plans
from tradewind.model.ratecard import RateCard
from tradewind.planning.planner import Planner
from tradewind.planning.rates import Rates
from tradewind.providers import charges

HOME = Data(uri="s3://b/x", size_bytes=10**11, provider="aws", region="us-east-1")


@st.composite
def asked(draw: st.DrawFn) -> Workload:
    limits = {
        name: draw(st.sampled_from(values))
        for name, values in laws.ALLOWED.items()
        if name != "budget" or draw(st.booleans())
    }
    train = replace(GPT2, tokens=draw(st.integers(10**8, 5 * 10**9)))
    return Workload(
        train=train, limits=Limits(**limits), data=draw(st.sampled_from([None, None, HOME]))
    )


def of(work: Workload, rows: list[Row], **more: Any) -> Plans:
    limits = replace(work.limits, **more)
    return plan(replace(work, limits=limits), catalog=small(*rows, judged=False), now=NOW)


def one_law(draw: Any, work: Workload, rows: list[Row]) -> None:
    """Two questions, of which the second allows more, or means the same."""
    found = of(work, rows)
    laws.in_order(found)
    law = draw(st.sampled_from([*laws.ALLOWED, "places", "offers", "order", "prices"]))
    if law in laws.ALLOWED:
        more = laws.wider(law, getattr(work.limits, law))
        for value in more[:2]:
            slack = laws.KEPT_LONGER if law == "within_s" else 0.0
            laws.no_dearer(found, of(work, rows, **{law: value}), slack)
    elif law == "places":
        there = sorted({one["region"] for one in rows})
        for name, names in (("regions", there), ("providers", PROVIDERS)):
            some = tuple(draw(st.sets(st.sampled_from(names), min_size=1)))
            laws.no_dearer(of(work, rows, **{name: some}), found)
    elif law == "offers":
        laws.no_dearer(
            of(work, draw(st.lists(st.sampled_from(rows), min_size=1, unique_by=id))), found
        )
    elif law == "order":
        other = of(work, draw(st.permutations(rows)))
        assert (other.plans, other.front) == (found.plans, found.front)
    else:
        twice_as_dear(work, rows, found)


def twice_as_dear(work: Workload, rows: list[Row], found: Plans) -> None:
    """Of machines, storage and traffic alike."""
    prices = ("on_demand", "spot")
    double = [row | {name: 2 * row[name] for name in prices if name in row} for row in rows]
    budget = work.limits.budget
    limits = replace(work.limits, budget=budget and dollars(2 * budget / 1e6))
    planner = Planner(replace(work, limits=limits), small(*double, judged=False), now=NOW)
    card = planner.rates.card
    rates = [replace(rate, value=rate.value and 2 * rate.value) for rate in card.rates]
    double_card = RateCard(rates)
    planner.rates = Rates(double_card, charges.usual(double_card))
    other = planner.plans(explain=False)
    assert len(other.plans) == len(found.plans)
    for one, two in zip(found.plans, other.plans, strict=True):
        same = ("provider", "region", "zone", "instance_type", "nodes", "markets", "hours")
        assert [getattr(one, name) for name in same] == [getattr(two, name) for name in same]
        assert two.cost == pytest.approx(2 * one.cost, rel=1e-9, abs=2)
        assert two.expected == pytest.approx(2 * one.expected, rel=1e-9, abs=2)


@pytest.mark.parametrize("cases", and_long([30], [10_000]))
def test_the_laws_hold_for_what_is_drawn(cases: int) -> None:
    # Without shrinking, which takes minutes: the seed that is printed makes the case again.
    @settings(max_examples=cases, deadline=None, phases=[Phase.generate], print_blob=True)
    @given(asked(), offers().filter(bool), st.data())
    def drawn(work: Workload, rows: list[Row], data: st.DataObject) -> None:
        one_law(data.draw, work, rows)

    drawn()


REAL_NOW = REAL.facts.made_at
ASKED = {work.name: work for work in asks.asks(REAL, 500, seed=1)}
OFTEN = ["lora", "resnet", "gpt3", *list(ASKED)[:3]]
H = 3600
BY_NAME = {
    "lora": Workload(
        train=Train(model="llama-3.1-8b", tokens=10**8, sequence=2048, global_batch=64, lora=16),
        limits=Limits(within_s=24 * H, providers=("aws",), markets=("spot",)),
    ),
    "resnet": Workload(
        train=Train(model="resnet-50", samples=25_000_000, global_batch=1024),
        limits=Limits(within_s=24 * H, providers=("aws",), markets=("spot",)),
    ),
    "gpt3": Workload(
        train=Train(model="gpt3-1.3b", tokens=5 * 10**9, sequence=2048, global_batch=512),
        limits=Limits(within_s=24 * H, confidence=0.8),
    ),
} | ASKED


@pytest.mark.parametrize("name", and_long(OFTEN, BY_NAME))
def test_the_laws_hold_for_what_is_sold(name: str) -> None:
    """A narrower question and wider ones, over the real catalog."""
    work = BY_NAME[name]
    within_s = work.limits.within_s
    found = plan(work, catalog=REAL, now=REAL_NOW)
    laws.in_order(found)
    wider: list[dict[str, Any]] = [
        {"providers": None, "markets": None}, {"confidence": 0.6}, {"max_nodes": 20}
    ]  # fmt: skip
    if within_s is not None:
        wider.append({"within_s": 2 * within_s})
    for more in wider if name not in OFTEN else wider[:1] + wider[3:]:
        limits = replace(work.limits, **more)
        laws.no_dearer(
            found,
            plan(replace(work, limits=limits), catalog=REAL, now=REAL_NOW, explain=False),
            laws.KEPT_LONGER if "within_s" in more else 0.0,
        )
