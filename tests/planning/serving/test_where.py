"""Users in several places, residency, commitments, and what can be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.small import NOW, REAL, row, small
from tests.planning.serving.exhaustive import lightest_for_users
from tests.planning.serving.test_serving_plan import DAY, SMALL, found, work
from tradewind.catalog import places
from tradewind.model import Limits
from tradewind.model.areas import countries
from tradewind.planning.serving import document
from tradewind.planning.serving.planner import Planner, plan
from tradewind.planning.serving.search import Book, Rates, ask, sooner

FAR = (("frankfurt", 0.5), ("new-york", 0.3), ("tokyo", 0.2))
HERE = ("us-east-1", "eu-central-1", "ap-northeast-1", "nowhere")


@settings(max_examples=6, deadline=None)
@given(
    offers=st.lists(
        st.tuples(st.sampled_from(["H100-SXM", "L40S"]), st.sampled_from(HERE), st.floats(0.4, 6)),
        min_size=1, max_size=4,
    ),
    ttft=st.sampled_from([0.2, 0.35, 1.0]),
    rate=st.floats(1, 30),
)  # fmt: skip
def test_of_all_divisions_of_users_the_best_is_found(
    offers: list[tuple[str, str, float]], ttft: float, rate: float
) -> None:
    rows = [
        row("aws", chip, 1, on_demand=price, spot=price / 3, region=region, instance_type=f"t{n}")
        for n, (chip, region, price) in enumerate(offers)
    ]
    planner = Planner(work(rate=rate, ttft_s=ttft, users=FAR), small(*rows), now=NOW)
    best = planner.solved()
    least = lightest_for_users(planner)
    assert (best.weighed if best else float("inf")) == pytest.approx(least, rel=1e-9)


def spread() -> Any:
    return small(
        *(row("aws", "L40S", 1, on_demand=1.0, region=region, instance_type=f"in-{region}")
          for region in HERE)
    )  # fmt: skip


def test_users_far_apart_get_machines_near_them_where_the_target_asks_for_it() -> None:
    near, loose = (
        plan(work(ttft_s=ttft, users=FAR, rate=30.0), catalog=spread(), now=NOW)
        for ttft in (0.2, 5.0)
    )
    assert near.best is not None
    assert loose.best is not None
    assert len({pool.region for pool in near.best.pools}) == 3
    assert near.one_site is not None
    assert near.one_site.cost is None
    assert len({pool.region for pool in loose.best.pools}) == 1
    assert loose.best.cost <= near.best.cost
    for pool in near.best.pools:
        assert pool.latency_ms["ttft"] is not None
        assert pool.users[0].round_trip_ms <= pool.latency_ms["ttft"] <= 200.2
    assert any("1 regions are left out" in note for note in near.notes)
    made = document.to_json(near)
    assert made["best"]["pools"][0]["users"][0]["measured"] is True


def test_users_whom_no_machine_is_near_enough_to() -> None:
    catalog = small(row("aws", "H100-SXM", 1, on_demand=2.0))
    plans = plan(work(ttft_s=0.15, users=(("sydney", 1.0),)), catalog=catalog, now=NOW)
    assert plans.best is None
    assert plans.nearest is not None
    assert plans.nearest.reached_ms["ttft"] > 180
    assert any("users who are near" in change for change in plans.nearest.would_do)


@pytest.mark.parametrize("wanted", ["EU", "DE", "eu-*"])
def test_residency_by_country_by_union_and_by_region(wanted: str) -> None:
    best = found(residency=(wanted,)).best
    assert best is not None
    for pool in best.pools:
        lands = countries(wanted)
        country = places.country_of(pool.provider, pool.region)
        assert country in lands if lands else pool.region.startswith("eu-")


def test_a_commitment_competes_when_it_is_asked_for_and_for_the_hours_that_are_always_there() -> (
    None
):
    catalog = small(row("aws", "L40S", 1, on_demand=2.0, reserved_1y=1.2, reserved_3y=0.8))
    kept: dict[str | None, Any] = {}
    for commit in (None, "1y", "3y"):
        limits = Limits(confidence=0.5, commit=commit)
        kept[commit] = found(catalog, limits, rate=100.0, curve=DAY).best
    assert kept[None].pools[0].committed == 0
    assert kept[None].cost > kept["1y"].cost > kept["3y"].cost
    pool = kept["1y"].pools[0]
    assert pool.term == "1y"
    assert 0 < pool.committed < max(hour.needed for hour in pool.hours)
    for hour in pool.hours:
        assert pool.committed + hour.on_demand + hour.spot >= hour.needed
    assert pool.price_hour["committed"] == 1_200_000


def test_machines_that_are_hardly_to_be_had_lose_to_those_that_are() -> None:
    """A cent cheaper, and half as likely."""
    rows = (row("aws", "L40S", 1, on_demand=1.0), row("gcp", "L40S", 1, on_demand=0.99))
    for scarce, wins in (("gcp=20%", "aws"), ("aws=20%", "gcp")):
        limits = Limits(confidence=0.5, assume_capacity=(scarce,))
        best = found(small(*rows), limits).best
        assert best is not None
        assert best.pools[0].provider == wins
        assert best.had > 0.2


def test_pools_together_keep_to_the_number_of_machines() -> None:
    for most in (2, 4, 8):
        best = found(small(*SMALL), Limits(confidence=0.5, max_nodes=most), rate=60.0).best
        if best is None:
            continue
        for hour in range(24):
            assert most >= sum(
                pool.committed + pool.hours[hour].on_demand + pool.hours[hour].spot
                for pool in best.pools
            )


def test_every_alternative_has_a_crossover_or_is_cheaper_far_and_wide() -> None:
    plans = plan(work(Limits(providers=("aws", "gcp", "deepinfra"))), catalog=REAL, now=NOW)
    assert len(plans.alternatives) > 2
    assert any(one.crossover is not None for one in plans.alternatives[1:])


def test_rates_that_are_found_together_are_those_found_alone() -> None:
    planner = Planner(work(users=FAR), small(*SMALL), now=NOW)
    together, alone = Book(planner.layouts), Book(planner.layouts)
    every = np.arange(len(planner.layouts.layouts))

    def rates(book: Book) -> list[Rates]:
        mix, cv = planner.traffic.mix, planner.traffic.cv
        return [book.rates(mix, sooner(planner.serve.targets, s), cv) for s in (0.0, 0.1, 0.2)]

    ask([(one, every) for one in rates(together)])
    for one, other in zip(rates(together), rates(alone), strict=True):
        np.testing.assert_array_equal(one.known, other.all())
        assert other.known.max() > 0
