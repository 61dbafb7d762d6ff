"""The plan is the cheapest there is, keeps every limit, and says why the others lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from tests.catalog.small import NOW, REAL, facts, row, small
from tests.planning.drawn import GPT2, catalogs, dollars, workloads
from tests.planning.exhaustive import cheapest, every_way, expected, keeping
from tradewind.api.planned import plan
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.catalog import account
from tradewind.catalog.catalog import Catalog
from tradewind.model import Data, Limits, Measured, Workload
from tradewind.planning import finish
from tradewind.planning.planner import Planner
from tradewind.planning.rightsize import instead_of


@settings(max_examples=60, deadline=None)
@given(workloads(), catalogs())
def test_the_answer_is_that_of_trying_everything(workload: Workload, catalog: Catalog) -> None:
    found = plan(workload, catalog=catalog, now=NOW)
    ways = every_way(workload, catalog, NOW)
    best = cheapest(workload, ways, NOW)
    assert (found.best is None) == (best is None)
    if found.best is None or best is None:
        return
    assert found.best.cost / 1e6 == pytest.approx(best.cost, rel=1e-6, abs=1e-5)
    assert found.best.hours == pytest.approx(best.hours, rel=1e-6)
    assert found.best.had == pytest.approx(best.had, rel=1e-6)
    assert found.best.weighed == pytest.approx(min(p.weighed for p in found.plans))
    least = expected(keeping(workload, ways, NOW))
    assert found.best.expected / 1e6 == pytest.approx(least, rel=1e-6, abs=1e-5)
    assert found.best.expected <= min(p.expected for p in found.plans) + 1


@settings(max_examples=60, deadline=None)
@given(workloads(), catalogs())
def test_no_plan_breaks_a_limit(workload: Workload, catalog: Catalog) -> None:
    found = plan(workload, catalog=catalog, now=NOW)
    limits = workload.limits
    for one in found.plans:
        assert limits.allows(one.provider, one.region)
        assert one.nodes <= (limits.max_nodes or 16)
        if not one.commit:
            assert limits.markets is None or set(one.markets) <= set(limits.markets)
        assert one.commit <= (limits.commit or "")
        assert 0 < one.had <= 1
        assert one.nodes == 1 or one.network
        assert one.nodes == 1 or one.provider not in ("lambda", "vast", "nobody")
        if limits.budget is not None:
            assert one.cost <= limits.budget
            assert one.within_budget >= limits.sure
        if found.deadline_hours is not None:
            assert one.hours <= found.deadline_hours
            assert one.chance >= limits.sure
        assert one.cost == pytest.approx(sum(one.costs.values()), abs=5)
        assert 0 <= one.hours_low <= one.hours <= one.hours_high * 1.0001
        assert one.cost_low <= one.cost <= one.cost_high
        assert one.memory_gb <= one.capacity_gb
    costs, hours = [p.cost for p in found.front], [p.hours for p in found.front]
    assert hours == sorted(hours)
    assert costs == sorted(costs, reverse=True)
    named = {(p.provider, p.instance_type) for p in found.plans[:1]}
    lost = {(loser.provider, loser.instance_type) for loser in found.losers}
    assert not named & lost
    assert all(loser.why for loser in found.losers)
    if found.best is None:
        for way in found.relaxations:
            assert way.why


@settings(max_examples=30, deadline=None)
@given(workloads(), catalogs())
def test_plans_for_later_deadlines_are_those_of_trying_everything(
    workload: Workload, catalog: Catalog
) -> None:
    found = plan(workload, catalog=catalog, now=NOW)
    for later in found.later:
        limits = replace(workload.limits, within_s=round(later.deadline_hours * 3600))
        if abs(later.deadline_hours * 3600 - (limits.within_s or 0)) > 1e-6 or limits.within_s == 0:
            continue  # a deadline in the file is a whole number of seconds
        alone = plan(replace(workload, limits=limits), catalog=catalog, now=NOW, explain=False)
        assert (alone.best is None) == (later.plan is None)
        if alone.best is not None and later.plan is not None:
            assert later.plan.weighed == pytest.approx(alone.best.weighed)
            assert later.plan.expected == pytest.approx(alone.best.expected, abs=2)


TABLE = small(
    row("aws", "H100-SXM", 8, on_demand=60, spot=20, instance_type="p5", network_gbps=3200),
    row("aws", "A100-80GB", 8, on_demand=27, spot=9, instance_type="p4de", network_gbps=400),
    row("lambda", "A100-40GB", 8, on_demand=12, instance_type="a100", region="us-west-1"),
    row("gcp", "T4", 1, on_demand=0.35, spot=0.12, instance_type="t4"),
    row("azure", "A100-80GB", 4, on_demand=14, instance_type="nc", as_of="2025-01-01"),
)


def of(**limits: Any) -> Workload:
    return Workload(train=replace(GPT2, tokens=20_000_000_000), limits=Limits(**limits))


def why(found: Any, name: str) -> tuple[str, str]:
    return next((x.kind, x.why) for x in found.losers if x.instance_type == name)


def test_losers_are_told_why() -> None:
    found = plan(of(within_s=4 * 86_400, budget=dollars(3000)), catalog=TABLE, now=NOW)
    assert found.best is not None
    assert why(found, "nc")[0] == "price"
    assert "stale" in why(found, "nc")[1]
    assert why(found, "t4")[0] in ("memory", "time")
    narrow = plan(of(regions=("us-west-*",)), catalog=TABLE, now=NOW)
    assert why(narrow, "p5") == ("limits", "not in the places that you allow")
    chip = plan(of(accelerators=("A100*",)), catalog=TABLE, now=NOW)
    assert "not among the accelerators" in why(chip, "p5")[1]


def test_a_longer_deadline_never_costs_more() -> None:
    costs = []
    for hours in (12, 24, 48, 96, 200):
        found = plan(of(within_s=hours * 3600), catalog=TABLE, now=NOW)
        if found.best is not None:
            costs.append(found.best.cost)
    assert len(costs) > 2
    assert costs == sorted(costs, reverse=True)


def test_a_tight_deadline_is_kept_with_on_demand_hours() -> None:
    catalog = small(row("aws", "A100-80GB", 8, on_demand=27, spot=5, instance_type="p4de"))
    loose = plan(of(max_nodes=1), catalog=catalog, now=NOW).best
    assert loose is not None
    assert loose.markets == ("spot",)
    tight = plan(
        of(max_nodes=1, within_s=round(1.25 * loose.work_hours * 3600)), catalog=catalog, now=NOW
    ).best
    assert tight is not None
    assert tight.markets == ("spot", "on_demand")
    assert 0 < tight.on_demand_hours < tight.hours
    assert loose.cost < tight.cost
    # Machines on demand are paid for while they start, too.
    undone = tight.work_hours - tight.spot_hours
    assert tight.on_demand_hours >= undone + tight.startup_hours


def test_data_from_afar_is_copied_once_and_kept() -> None:
    catalog = small(row("aws", "A100-80GB", 8, spot=5, instance_type="p4de", region="eu-west-1"))
    costs = {}
    for region in ("eu-west-1", "us-east-1"):
        data = Data(uri="s3://b/x", size_bytes=10**12, provider="aws", region=region)
        best = plan(Workload(train=GPT2, data=data), catalog=catalog, now=NOW).best
        assert best is not None
        costs[region] = best
    near, far = costs["eu-west-1"], costs["us-east-1"]
    assert far.interruptions > 1
    assert far.costs["storage"] > near.costs["storage"]
    # Only the first start waits for data that is far away, each later one for a checkpoint.
    first = far.startup_hours - near.startup_hours
    later = far.interruptions * far.checkpoint_bytes / finish.FAR_RATE / 3600
    assert far.hours - near.hours == pytest.approx(first + later, rel=0.05)
    assert far.spot_hours - near.spot_hours == pytest.approx(first + later, rel=0.05)


def test_a_reservation_that_ends_too_soon_is_not_counted_on() -> None:
    public = facts(row("aws", "H100-SXM", 8, on_demand=60, instance_type="p5"))
    best = {}
    for until in ("2026-11-15", "2027-11-15", "2026-11-14"):
        text = "reservations:\n  - {match: {type: p5}, machines: 1, price: $1, until: %s}\n"
        held = account.read(text % until, "account.yaml", REAL.names, ["aws"])
        table = held.applied(public.offers, NOW.date())
        found = plan(of(max_nodes=1), catalog=Catalog(public, table, "test", held), now=NOW)
        assert found.best is not None
        best[until] = found.best.markets, any("may end" in note for note in found.notes)
    assert best == {
        "2026-11-15": (("on_demand",), True),
        "2027-11-15": (("reserved",), False),
        "2026-11-14": (("on_demand",), False),
    }


def test_a_deadline_of_a_moment_gives_way_to_one_that_can_be_kept() -> None:
    found = plan(of(within_s=1), catalog=TABLE, now=NOW)
    assert found.best is None
    assert "deadline" in {change.limit for change in found.relaxations}


def test_what_would_have_to_give() -> None:
    found = plan(of(within_s=3600, budget=dollars(50)), catalog=TABLE, now=NOW)
    assert found.best is None
    limits = {one.limit for one in found.relaxations}
    assert limits <= {"deadline", "budget", "deadline and budget", "max_nodes"}
    found = plan(of(within_s=10 * 86_400, budget=dollars(1)), catalog=TABLE, now=NOW)
    budget = next(one for one in found.relaxations if one.limit == "budget")
    assert "× the budget" in budget.why


def test_a_budget_is_kept_as_surely_as_is_wanted() -> None:
    """Not only as expected: what may cost twice as much is worth less to who has no more."""
    free = plan(of(within_s=10 * 86_400), catalog=TABLE, now=NOW).best
    assert free is not None
    budget = round(1.02 * free.cost)
    assert free.cost < budget < free.cost_high
    tight = plan(of(within_s=10 * 86_400, budget=dollars(budget / 1e6)), catalog=TABLE, now=NOW)
    assert tight.best is None or tight.best.within_budget >= 0.9
    why = {loser.instance_type: loser.why for loser in tight.losers}
    assert "likely to stay within the budget" in why[free.instance_type]
    known = of(within_s=10 * 86_400, budget=dollars(budget / 1e6), confidence=0.5)
    bold = plan(known, catalog=TABLE, now=NOW)
    assert bold.best is not None
    assert (bold.best.instance_type, bold.best.cost) == (free.instance_type, free.cost)
    assert 0.5 < bold.best.within_budget < 0.9
    # And what it takes to be as sure is told.
    if tight.best is None:
        [more] = [one for one in tight.relaxations if one.limit == "budget"]
        times = float(more.why.split()[1].removesuffix("×"))
        enough = of(within_s=10 * 86_400, budget=dollars(times * budget / 1e6))
        assert plan(enough, catalog=TABLE, now=NOW).best is not None
    found = plan(of(within_s=3600, max_nodes=1), catalog=TABLE, now=NOW)
    deadline = next(one for one in found.relaxations if one.limit == "deadline")
    assert "instead of 1h" in deadline.why
    assert deadline.plan.hours > 1
    assert deadline.plan.chance >= 0.8
    deadlines = [
        one.deadline_hours for one in plan(of(within_s=360_000), catalog=TABLE, now=NOW).later
    ]
    assert deadlines == [75, 125, 175]
    found = plan(of(regions=("mars-*",)), catalog=TABLE, now=NOW)
    assert [one.limit for one in found.relaxations] == ["regions"]


def test_right_sizing() -> None:
    planner = Planner(of(), TABLE, now=NOW)
    base, better = instead_of(planner, "P5")
    assert base.instance_type == "p5"
    assert base.markets == ("on_demand",)
    for one in better:
        assert one.cost < base.cost
        assert one.hours <= base.hours * 1.01
    with pytest.raises(NotFound, match="nobody offers"):
        instead_of(planner, "p6")
    with pytest.raises(NotFound, match="cannot be done on"):
        instead_of(planner, "t4", 1)


def test_work_by_measurement_is_carried_to_other_chips() -> None:
    work = Measured(
        accelerator="A100-80GB", count=8, hours=100, scales=True, memory_bytes=30 * 2**30
    )
    found = plan(Workload(work=work), catalog=TABLE, now=NOW, closer=True)
    by_type = {
        p.instance_type: p for p in found.others if p.nodes == 1 and p.markets == ("on_demand",)
    }
    assert by_type["p4de"].work_hours == pytest.approx(100)
    assert by_type["p5"].work_hours < 60
    assert by_type["a100"].work_hours > 100
    assert why(found, "t4") == ("memory", "does not fit by 16 GB: it needs 32 GB an accelerator")


def test_deadlines_that_are_past() -> None:
    with pytest.raises(InvalidValue, match="is past"):
        plan(of(deadline=NOW - timedelta(hours=1)), catalog=TABLE, now=NOW)


def test_one_s_own_machines_compete() -> None:
    own = row("own", "RTX4090", 4, on_demand=0.4, instance_type="desk", region="own", own=True)
    catalog = small(row("aws", "H100-SXM", 8, on_demand=60, instance_type="p5"), own)
    found = plan(Workload(train=GPT2), catalog=catalog, now=NOW)
    assert found.best is not None
    assert found.best.instance_type == "desk"
    assert found.best.own


def test_an_area_means_residency() -> None:
    """A region that is called `eu` may be anywhere; what is in the EU is so by its country."""
    catalog = small(
        row("coreweave", "H100-SXM", 8, on_demand=1, region="eu", instance_type="a"),
        row("aws", "H100-SXM", 8, on_demand=60, region="eu-west-2", instance_type="b"),
        row("aws", "H100-SXM", 8, on_demand=70, region="eu-central-1", instance_type="c"),
        row("gcp", "H100-SXM", 8, on_demand=80, region="europe-west4", instance_type="d"),
        row("gcp", "H100-SXM", 8, on_demand=40, region="us-central1", instance_type="e"),
    )
    work = Workload(train=GPT2, limits=Limits(regions=("EU",)))
    found = plan(work, catalog=catalog, now=NOW)
    assert {one.region for one in found.plans} == {"eu-central-1", "europe-west4"}
    assert any("EU is 2 regions of 2 providers, in DE, NL" in note for note in found.notes)
    us = plan(replace(work, limits=Limits(regions=("us",))), catalog=catalog, now=NOW)
    assert {one.region for one in us.plans} == {"us-central1"}


def test_a_region_that_nobody_has_is_an_error() -> None:
    catalog = small(row("aws", "H100-SXM", 8, on_demand=60, region="eu-west-1"))
    work = Workload(train=GPT2, limits=Limits(regions=("eu-wst-1",)))
    with pytest.raises(InvalidValue, match="no region is called 'eu-wst-1'") as caught:
        plan(work, catalog=catalog, now=NOW)
    assert "eu-west-1" in (caught.value.hint or "")


def test_what_no_run_can_drive_competes_only_where_it_is_named() -> None:
    """The images of runs at AWS have no driver for a V100; what azure's can do nobody has tried."""
    catalog = small(
        row("aws", "V100-16GB", 8, on_demand=1, instance_type="p3.16xlarge"),
        row("aws", "Trainium1", 16, on_demand=1, instance_type="trn1.32xlarge"),
        row("azure", "V100-16GB", 8, on_demand=8, instance_type="nd40"),
        row("aws", "A100-80GB", 8, on_demand=9, instance_type="p4de"),
    )
    work = Workload(train=GPT2, limits=Limits(confidence=0.5))
    found = plan(work, catalog=catalog, now=NOW)
    assert {one.instance_type for one in found.plans} == {"nd40", "p4de"}
    assert {one.instance_type: one.not_ours for one in found.plans} == {
        "p4de": "", "nd40": "runs cannot rent at azure",
    }  # fmt: skip
    lost = {loser.instance_type: loser for loser in found.losers}
    assert "begins with the T4" in lost["p3.16xlarge"].why
    assert lost["trn1.32xlarge"].kind == "chip"
    named = replace(work, limits=replace(work.limits, accelerators=("V100*",)))
    best = plan(named, catalog=catalog, now=NOW).best
    assert best is not None
    assert best.instance_type == "p3.16xlarge"
    assert "begins with the T4" in best.not_ours
