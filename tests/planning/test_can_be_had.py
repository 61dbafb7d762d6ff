"""Plans can be carried out: no training is spread over strangers' machines."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.catalog.small import NOW, REAL, row, small
from tradewind.api.planned import plan
from tradewind.base.units import parse_duration
from tradewind.catalog import capacity, clusters
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.observations import decode, encode, observed
from tradewind.model import Limits, Observation, Train, Workload
from tradewind.model.plan import Plan
from tradewind.planning.planner import Planner
from tradewind.planning.words import old_prices

_1B = Train(model="gpt3-1.3b", tokens=26 * 10**9, sequence=2048, global_batch=512)
_7B = Train(model="llama-2-7b", tokens=20 * 10**9, sequence=4096, global_batch=1024)
_13B = Train(model="llama-2-13b", tokens=20 * 10**9, sequence=4096, global_batch=1024)
_70B = Train(model="llama-3.1-70b", tokens=10 * 10**9, sequence=8192, global_batch=512)
PRETRAININGS = {
    "1B": (_1B, "3d"),
    "7B": (_7B, "7d"),
    "13B": (_13B, "14d"),
    "70B": (_70B, "21d"),
}
STRANGERS = {"broker", "marketplace"}


def kind_of(one: Plan) -> str:
    return capacity.priors().kind(one.provider, one.instance_type)


@pytest.mark.parametrize("name", PRETRAININGS)
@pytest.mark.parametrize("max_nodes", [None, 64])
def test_no_training_is_spread_over_strangers(name: str, max_nodes: int | None) -> None:
    train, deadline = PRETRAININGS[name]
    limits = Limits(within_s=parse_duration(deadline), max_nodes=max_nodes)
    now = REAL.facts.made_at
    found = plan(Workload(train=train, limits=limits), catalog=REAL, now=now, closer=True, top=16)
    assert found.best is not None
    spread = [p for p in (*found.plans, *found.front, *found.others) if p.nodes > 1]
    assert spread, "some do need several machines"
    for one in spread:
        assert kind_of(one) not in STRANGERS, one
        assert clusters.link(one.provider, one.instance_type, None).gbps or one.network
        assert one.network
    assert found.best.had >= 0.02, "the first answer is no gang that is hardly ever there"


def test_large_gangs_are_doubted() -> None:
    """Sixteen machines of eight H200 are not to be had by asking."""
    priors = capacity.priors()
    one = priors.doubts["hyperscaler", "on_demand"] * priors.scarcity("H200")
    assert capacity.chance(one * priors.size(8, 16)) < 0.05
    assert capacity.chance(one * priors.size(1, 1)) > 0.5


def test_every_provider_is_in_the_table_of_networks() -> None:
    assert set(REAL.providers) <= set(clusters.rules())
    for rules in clusters.rules().values():
        assert all(rule.source for rule in rules)
        assert rules[-1].types == ("*",), "whatever is new has an answer too"


def test_why_says_that_several_were_not_considered() -> None:
    catalog = small(row("runpod", "H100-SXM", 8, on_demand=20, instance_type="pod"))
    planner = Planner(Workload(train=_1B), catalog, now=NOW)
    link = planner.links([("runpod", "pod")])["runpod", "pod"]
    assert link.gbps == 0
    assert "100 Mbit/s" in link.words
    assert all(one.nodes == 1 for one in planner.ways("runpod", "pod"))


def test_machines_of_one_s_own_are_together_where_the_account_says_how() -> None:
    work = Workload(train=_1B, limits=Limits(max_nodes=2))
    for network, most in ((None, 1), (5, 1), (100, 2)):
        mine = row("own", "H100-SXM", 8, on_demand=1, instance_type="lab", own=True)
        catalog = small(mine | {"network_gbps": network})
        ways = Planner(work, catalog, now=NOW).ways("own", "lab")
        assert max(one.nodes for one in ways) == most
        assert all(one.had == 1 for one in ways)


def test_a_stated_network_bounds_the_estimate() -> None:
    hours = {}
    for network in (25, 400, 3200):
        catalog = small(
            row("aws", "H100-SXM", 8, on_demand=60, instance_type="p", network_gbps=network)
        )
        work = Workload(train=_13B, limits=Limits(max_nodes=4))
        ways = Planner(work, catalog, now=NOW).ways("aws", "p")
        hours[network] = next(one.work_hours for one in ways if one.nodes == 4)
    assert hours[25] > 1.02 * hours[400] > 1.02 * hours[3200]


def test_what_is_hardly_had_must_be_cheaper_for_it() -> None:
    catalog = small(
        row("aws", "A100-80GB", 8, on_demand=20.0, instance_type="sure"),
        row("seeweb", "H200", 8, on_demand=42.0, instance_type="scarce"),
    )
    work = Workload(train=_1B, limits=Limits(max_nodes=1))
    first = plan(work, catalog=catalog, now=NOW)
    trusting = Limits(max_nodes=1, assume_capacity=("100%",))
    second = plan(Workload(train=_1B, limits=trusting), catalog=catalog, now=NOW)
    assert first.best is not None
    assert second.best is not None
    assert second.best.instance_type == "scarce"
    assert second.best.had_by == "assumed by you"
    assert first.best.instance_type == "sure"
    assert first.best.cost > second.best.cost
    (lost,) = first.losers
    assert lost.kind == "capacity"
    assert "likely to be available" in lost.why


def test_numbers_of_machines_that_are_no_powers_of_two() -> None:
    catalog = small(row("aws", "H100-SXM", 8, on_demand=60, instance_type="p5", network_gbps=3200))
    train = Train(model="gpt3-1.3b", tokens=26 * 10**9, sequence=2048, global_batch=480)
    ways = Planner(Workload(train=train), catalog, now=NOW).ways("aws", "p5")
    assert {3, 5, 6, 10, 12, 15} <= {one.nodes for one in ways}
    hours = {one.nodes: one.work_hours for one in ways}
    assert hours[5] > hours[6] > hours[10]


def test_commitments_compete_when_asked() -> None:
    catalog = small(
        row("gcp", "H100-SXM", 8, on_demand=60, reserved_1y=40, reserved_3y=25, instance_type="a3")
    )
    found = {}
    for commit in (None, "1y", "3y"):
        limits = Limits(max_nodes=1, commit=commit)
        best = plan(Workload(train=_1B, limits=limits), catalog=catalog, now=NOW).best
        assert best is not None
        found[commit] = best.commit, best.price_hour
    assert found == {
        None: ("", {"on_demand": 60_000_000}),
        "1y": ("1y", {"reserved": 40_000_000}),
        "3y": ("3y", {"reserved": 25_000_000}),
    }


def test_old_prices_are_said_to_be_old() -> None:
    for as_of, old in (("2026-11-01", False), ("2026-10-16", False), ("2026-10-15", True)):
        catalog = small(row("aws", "H100-SXM", 8, on_demand=60, as_of=as_of))
        words = old_prices(plan(Workload(train=_1B), catalog=catalog, now=NOW))
        assert bool(words) == old
        assert not old or "`tradewind catalog refresh`" in words


def test_a_refusal_of_late_sends_the_plan_elsewhere() -> None:
    rows = [
        row("aws", "H100-SXM", 8, on_demand=price, instance_type="p5", region="r", zone=zone)
        for zone, price in (("a", 50.0), ("b", 51.0))
    ]
    made = small(*rows)
    work = Workload(train=_1B, limits=Limits(max_nodes=1))
    for available, zone in ((True, "a"), (False, "b")):
        seen = observed(
            Observation(
                provider="aws", region="r", zone="a", instance_type="p5", market="on_demand",
                available=available, seen_at=NOW, expires_at=NOW, source="run",
            )
        )  # fmt: skip
        catalog = Catalog(made.facts, made.table, "t", None, decode(encode([seen]), NOW))
        best = plan(work, catalog=catalog, now=NOW).best
        assert best is not None
        assert best.zone == zone
        assert best.had_by == (
            "prior" if zone == "b" else "seen 1 time there, the last on 2026-11-15 12:00"
        )
    forgotten = plan(work, catalog=catalog, now=NOW + timedelta(days=8)).best
    assert forgotten is not None
    assert forgotten.zone == "a"
