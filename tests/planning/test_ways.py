from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import tradewind
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.run import Facts
from tradewind.model.usage import GB
from tradewind.planning import ways

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def work(**limits: object) -> tradewind.Workload:
    return tradewind.Workload(
        name="w",
        train=tradewind.Train(model="llama-3.1-8b", steps=1000, sequence=2048, global_batch=64),
        limits=tradewind.Limits(within_s=200 * 3600, **limits),  # type: ignore[arg-type]
        run=tradewind.Job(command="python train.py", setup="pip install x"),
    )


def test_a_plan_becomes_ways_with_its_speed_and_prices() -> None:
    wanted = work()
    plans = tradewind.plan(wanted, now=NOW)
    best = plans.best
    assert best is not None
    facts = Facts(notice_s=7)
    spec = ways.spec(
        best, wanted, NOW, others=plans.plans[1:], facts=lambda name: facts, project="p"
    )
    assert spec.work == 1000.0
    assert (spec.predicted_cost, spec.predicted_hours) == (best.cost, best.hours)
    assert [way.market for way in spec.ways[: len(best.markets)]] == list(best.markets)
    for way in spec.ways[: len(best.markets)]:
        assert way.price == best.price_hour[way.market]
        assert (way.provider, way.instance_type) == (best.provider, best.instance_type)
        # So many steps at this rate take as long as the plan says.
        assert spec.work / way.rate == pytest.approx(best.work_hours * 3600)
        assert way.facts == facts
        assert way.layout == best.layout | {"precision": best.precision}
    assert spec.deadline_s == (NOW + timedelta(hours=200)).timestamp()
    assert spec.job == {"command": "python train.py", "setup": "pip install x"}
    assert {way.instance_type for way in spec.ways} >= {p.instance_type for p in plans.plans}


def test_measured_work_is_counted_in_seconds() -> None:
    wanted = tradewind.Workload(
        name="w",
        work=tradewind.Measured(accelerator="A100-80GB", count=1, hours=2.0),
        run=tradewind.Job(command="true"),
    )
    best = tradewind.plan(wanted, now=NOW).best
    assert best is not None
    spec = ways.spec(best, wanted, NOW)
    assert spec.work == pytest.approx(best.work_hours * 3600)
    assert spec.ways[0].rate == pytest.approx(1.0)
    assert spec.deadline_s is None


def test_without_a_command_there_is_nothing_to_run() -> None:
    wanted = replace(work(), run=None)
    best = tradewind.plan(wanted, now=NOW).best
    assert best is not None
    with pytest.raises(InvalidValue, match="what to run"):
        ways.spec(best, wanted, NOW)


def test_measured_on_something_unheard_of() -> None:
    wanted = tradewind.Workload(
        name="w", work=tradewind.Measured(accelerator="B4000", count=1, hours=2.0)
    )
    with pytest.raises(NotFound, match="B4000"):
        tradewind.plan(wanted, now=NOW)


def test_moving_data_to_a_place_is_part_of_starting_there() -> None:
    far = tradewind.Data(
        uri="s3://b/x", size_bytes=2_000_000_000_000, provider="aws", region="us-east-1"
    )
    wanted = replace(work(providers=("gcp",)), data=far)
    plans = tradewind.plan(wanted, now=NOW)
    moved = [plan for plan in plans.front if plan.costs.get("egress")]
    assert moved
    for plan in moved:
        spec = ways.spec(plan, wanted, NOW)
        assert {way.bring_once for way in spec.ways} == {plan.bring_once}
        assert plan.bring_once in {round(2e12 / GB * micros) for micros in (90_000, 20_000)}
        hours = plan.on_demand_hours + plan.spot_hours
        hours = max(hours, plan.checkpoint_every_s / 3600)  # the last one is always written
        cost = plan.bring_once + plan.save * hours
        cost += (plan.bring_once + plan.bring) * plan.interruptions
        assert plan.costs["egress"] == pytest.approx(cost, rel=0.001)
        assert all(way.save == plan.save and way.bring == plan.bring for way in spec.ways)
        assert spec.data_bytes == far.size_bytes
