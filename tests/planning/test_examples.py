"""The examples come out as their pages say, loosely: prices and estimates move."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

import tradewind
from tradewind import workload
from tradewind.base.units import usd
from tradewind.catalog import files
from tradewind.model.plan import Plans

EXAMPLES = Path(__file__).parents[2] / "examples"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


@cache
def planned(name: str) -> Plans:
    catalog = tradewind.catalog.load(files.PACKAGED, account=False)
    known = workload.known_names(catalog)
    work = workload.load(EXAMPLES / name / "work.yaml", now=NOW, known=known)
    return tradewind.plan(work, catalog=catalog, now=NOW)


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/work.yaml")))
def test_every_example_has_a_plan_and_a_page(name: str) -> None:
    plans = planned(name)
    assert plans.best is not None
    assert plans.best == plans.plans[0]
    assert plans.best.cost_low <= plans.best.cost <= plans.best.cost_high
    page = (EXAMPLES / name / "README.md").read_text()
    assert f"tradewind plan examples/{name}/work.yaml" in page


def test_pretraining_within_three_days() -> None:
    plans = planned("pretrain-1.3b")
    best = plans.best
    assert best is not None
    assert best.hours <= 72
    assert best.chance >= 0.9
    assert usd(best.cost) < 600
    assert best.nodes <= 4
    assert best.had >= 0.5
    # Renting faster machines on demand is quicker and dearer.
    assert plans.front[0].hours < best.hours
    assert plans.front[0].cost > best.cost


def test_lora_overnight_on_one_gpu() -> None:
    best = planned("lora-8b-overnight").best
    assert best is not None
    assert best.accelerators == 1
    assert usd(best.cost) < 10
    assert best.hours < 10


def test_resnet_for_less_than_thirty_dollars() -> None:
    plans = planned("resnet50-imagenet")
    assert plans.best is not None
    assert plans.deadline_hours is None
    assert all(usd(plan.cost) <= 30 and plan.markets == ("spot",) for plan in plans.plans)


def test_data_stays_in_the_union() -> None:
    plans = planned("continue-70b-eu")
    limits = plans.workload.limits
    assert plans.best is not None
    everything = [*plans.plans, *plans.front, *plans.others]
    assert everything
    assert all(limits.allows(plan.provider, plan.region) for plan in everything)
    assert not any(plan.region in ("eu-west-2", "europe-west2") for plan in everything)
    assert usd(plans.best.cost) < 40_000


def test_four_cards_under_the_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = EXAMPLES / "own-4090s"
    monkeypatch.setenv("TRADEWIND_HOME", str(folder))
    catalog = tradewind.catalog.load()
    known = workload.known_names(catalog)
    work = workload.load(folder / "work.yaml", now=NOW, known=known)
    plans = tradewind.plan(work, catalog=catalog, now=NOW, closer=True)
    own = [plan for plan in plans.others if plan.own]
    assert len(own) == 1
    assert own[0].nodes == 1
    # They would make it, as measured: 180,000 steps of 1.15 s.
    assert own[0].hours == pytest.approx(57.5, rel=0.05)
    assert usd(own[0].cost) == pytest.approx(57.7, rel=0.05)
    assert plans.best is not None
    assert plans.best.cost <= own[0].cost
