"""Machines that are named: exactly those, cheapest first, and nothing foretold of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tradewind import catalog as catalogs
from tradewind import workload
from tradewind.base.errors import BadWorkload, InvalidValue, NotFound
from tradewind.catalog import account
from tradewind.model.plan import Plans
from tradewind.model.run import Spec
from tradewind.planning import document, exact, ways
from tradewind.planning.planner import plan
from tradewind.workload import reader

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
KNOWN = workload.known_names(catalogs.load())
DAY_S = 24 * 3600


def plans(text: str) -> Plans:
    work = reader.read(text, "work.yaml", known=KNOWN, now=NOW)
    return plan(work, catalog=catalogs.load(), now=NOW)


def spec(text: str) -> Spec:
    found = plans(text)
    assert found.best is not None
    return ways.spec(found.best, found.workload, NOW, others=found.plans[1:])


@pytest.mark.parametrize("gpus", ["H100:8", "8xH100", "H100*8", "8×H100", "h100 : 8"])
def test_exactly_so_many_however_it_is_spelt(gpus: str) -> None:
    found = plans(f"{{gpus: '{gpus}', nodes: 2, run: {{command: a}}}}").plans
    assert {(each.accelerator_count, each.nodes) for each in found} == {(8, 2)}
    assert {each.accelerator.split("-")[0] for each in found} == {"H100"}


def test_exactly_that_type() -> None:
    found = plans("{type: P5.48xlarge, run: {command: a}}").plans
    assert {(each.provider, each.instance_type) for each in found} == {("aws", "p5.48xlarge")}


def test_a_machine_without_accelerators_is_as_large_as_asked() -> None:
    found = plans("{cpus: 8, ram: 32GB, disk: 200GB, run: {command: a}}")
    table = catalogs.load().table.columns
    sizes = {
        table["instance_type"][row]: (table["vcpus"][row], table["memory_gb"][row])
        for row in range(len(catalogs.load().table))
    }
    assert {each.accelerator_count for each in found.plans} == {0}
    assert all(sizes[each.instance_type] >= (8, 32) for each in found.plans)
    assert spec("{cpus: 8, disk: 200GB, run: {command: a}}").disk_bytes == 200 * 10**9


def test_the_cheapest_is_first_and_spot_has_something_to_fall_back_on() -> None:
    found = plans("{gpus: L4, limits: {providers: [aws, gcp]}, run: {command: a}}")
    offers = catalogs.load().offers(
        accelerator="L4", count=1, provider=["aws", "gcp"], today=NOW.date()
    )
    best = found.best
    assert best is not None
    assert min(best.price_hour.values()) == offers.price(0).micros_hour
    assert {market for each in found.plans for market in each.markets} == {"spot", "on_demand"}
    only = plans("{gpus: L4, limits: {markets: [on_demand]}, run: {command: a}}")
    assert {each.markets for each in only.plans} == {("on_demand",)}


def test_limits_hold_for_machines_that_are_named() -> None:
    with pytest.raises(NotFound, match="outside your limits"):
        plans("{type: p5.48xlarge, limits: {providers: [gcp]}, run: {command: a}}")


def test_what_nobody_knows_is_not_foretold_and_stops_by_itself() -> None:
    made = spec("{gpus: H100:8, run: {command: a}}")
    assert (made.untold, made.predicted_cost, made.predicted_hours) == (True, None, None)
    assert (made.max_duration_s, made.idle_s, made.idle_stop) == (DAY_S, 1800, True)
    assert made.checkpoint_stall_s is not None


@pytest.mark.parametrize(
    ("more", "longest_s", "work_s"),
    [
        ("limits: {deadline: 6h}, run: {command: a}", 6 * 3600, 3 * 3600),
        ("limits: {deadline: 6h}, run: {command: a, max_duration: 2h}", 2 * 3600, 2 * 3600),
        ("run: {command: a, max_duration: 3d}", 3 * DAY_S, 3 * DAY_S),
    ],
)
def test_it_stops_when_it_is_told_to_else_at_its_deadline(
    more: str, longest_s: int, work_s: int
) -> None:
    made = spec(f"{{gpus: L4, {more}}}")
    assert (made.max_duration_s, made.work) == (longest_s, work_s)


def test_who_says_what_happens_when_idle_is_believed() -> None:
    assert not spec("{gpus: L4, run: {command: a, on_idle: report}}").idle_stop
    measured = "{work: {on: 1xL4, hours: 1}, run: {command: a}}"
    assert not spec(measured).idle_stop
    assert not spec(measured).untold


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{gpus: L4:3, run: {command: a}}", "nobody sells a machine with 3× L4"),
        ("{cpus: 8000, run: {command: a}}", "nobody sells"),
        ("{type: p5.48xlarg, run: {command: a}}", "no instance type is called"),
        ("{gpus: A100:8, type: p5.48xlarge, run: {command: a}}", "p5.48xlarge has 8× H100-SXM"),
    ],
)
def test_what_is_not_sold_is_said(text: str, words: str) -> None:
    with pytest.raises(NotFound, match=words) as caught:
        plans(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{nodes: 2, run: {command: a}}", "nodes: of which machines"),
        ("{gpus: L4, work: {on: 1xL4, hours: 1}}", "those name the machines"),
        ("{gpus: '8', run: {command: a}}", "not the name of an accelerator"),
        ("{gpus: L4, run: {command: a, retries: -1}}", "run.retries: '-1'"),
        ("{gpus: L4, run: {command: a, retry_on: [SIGFOO]}}", "neither an exit code nor a signal"),
    ],
)
def test_what_cannot_be_meant(text: str, words: str) -> None:
    with pytest.raises(BadWorkload, match=words):
        plans(text)


@pytest.mark.parametrize("limit", ["max_nodes: 2", "accelerators: [L4]", "confidence: 95%"])
def test_limits_of_a_choice_that_is_made_are_not_silently_left_out(limit: str) -> None:
    with pytest.raises(InvalidValue, match=limit.partition(":")[0]):
        plans(f"{{gpus: L4, limits: {{{limit}}}, run: {{command: a}}}}")


def test_what_weighs_has_nothing_to_weigh() -> None:
    from tradewind.planning.planner import Planner

    work = reader.read("{gpus: L4, run: {command: a}}", "work.yaml", known=KNOWN)
    with pytest.raises(InvalidValue, match="names its machines"):
        Planner(work, catalogs.load(), now=NOW)


def test_a_saved_plan_of_named_machines_can_be_read_again() -> None:
    found = plans("{gpus: H100:8, nodes: 2, run: {command: a, retry_on: [75]}}")
    assert found.best is not None
    text = document.save(found.best, found.workload, made_at=NOW)
    saved = document.read(text, "plan.json")
    assert (saved.plan, saved.workload) == (found.best, found.workload)


def test_a_quota_bounds_how_many_machines_there_may_be() -> None:
    catalog = catalogs.load()
    text = "{quotas: [{match: {provider: aws, accelerator: L4}, accelerators: 3}]}"
    mine = account.read(text, "account.yaml", catalog.names, catalog.providers)
    work = "{gpus: L4, nodes: %d, limits: {providers: [aws]}, run: {command: a}}"
    for nodes, may in ((3, True), (4, False)):
        asked = reader.read(work % nodes, "work.yaml", known=KNOWN, now=NOW)
        given = replace(catalog, account=mine)
        if may:
            assert exact.plans(asked, catalog=given, now=NOW).best
        else:
            with pytest.raises(NotFound, match="over your quota"):
                exact.plans(asked, catalog=given, now=NOW)
