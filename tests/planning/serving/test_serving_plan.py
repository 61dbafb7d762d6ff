from __future__ import annotations

from math import exp, log1p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.small import NOW, REAL, row, small
from tests.planning.serving.exhaustive import lightest
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.model import Limits, Workload
from tradewind.model.lengths import Lengths
from tradewind.model.serve import Serve
from tradewind.model.serveplan import ServingPlans
from tradewind.planning.serving import document, markets, traffic
from tradewind.planning.serving.planner import Planner, plan

DAY = (1, 1, 1, 1, 1, 2, 4, 8, 12, 14, 15, 15, 14, 15, 15, 14, 12, 10, 8, 7, 6, 5, 4, 3)


def serve(**changed: Any) -> Serve:
    usual: dict[str, Any] = {
        "model": "llama-3.1-8b", "rate": 12.0, "input": Lengths.lognormal(median=600, p95=3000),
        "output": Lengths.fixed(200), "ttft_s": 0.5, "tpot_s": 0.05,
    }  # fmt: skip
    return Serve(**(usual | changed))


def work(limits: Limits | None = None, **changed: Any) -> Workload:
    """By the middle of the estimate, unless limits say otherwise: the margin has its own tests."""
    chosen = limits or Limits(confidence=0.5)
    return Workload(name="chat", serve=serve(**changed), limits=chosen)


def found(catalog: Any = REAL, limits: Limits | None = None, **changed: Any) -> ServingPlans:
    return plan(work(limits, **changed), catalog=catalog, now=NOW, explain=False)


SMALL = (
    row("aws", "H100-SXM", 1, on_demand=4.0, spot=1.6),
    row("gcp", "L4", 1, on_demand=0.7, spot=0.25),
    row("azure", "A100-80GB", 2, on_demand=7.0, spot=2.0),
)
NOTHING_OR_ZERO: list[dict[str, Any]] = [{}, {"scale_to_zero": True, "warm": 0}]
PLAIN_OR_FP8: list[dict[str, Any]] = [{}, {"quantise": ("fp8",)}]
prices = st.tuples(st.floats(0.2, 9), st.one_of(st.none(), st.floats(0.05, 0.9)))


@settings(max_examples=6, deadline=None)
@given(
    offers=st.lists(
        st.tuples(st.sampled_from(["H100-SXM", "A100-80GB", "L40S"]), st.integers(1, 2), prices),
        min_size=1, max_size=3,
    ),
    rate=st.floats(0.1, 12),
    peak=st.sampled_from([1.0, 3.0]),
    availability=st.sampled_from([0.9, 0.999]),
    quiet=st.booleans(),
    tpot=st.sampled_from([0.015, 0.05]),
    commit=st.one_of(st.none(), st.floats(0.3, 0.95)),
)  # fmt: skip
def test_a_plan_is_the_best_of_all(
    offers: list[tuple[str, int, tuple[float, float | None]]],
    rate: float, peak: float, availability: float, quiet: bool, tpot: float, commit: float | None,
) -> None:  # fmt: skip
    rows = [
        row("aws", chip, count, on_demand=price, spot=None if share is None else price * share,
            reserved_1y=None if commit is None else price * commit, instance_type=f"t{n}")
        for n, (chip, count, (price, share)) in enumerate(offers)
    ]  # fmt: skip
    curve = tuple(peak if 8 <= hour < 20 else 0.0 if quiet and hour < 3 else 1.0
                  for hour in range(24))  # fmt: skip
    planner = Planner(
        work(Limits(confidence=0.5, commit="1y"),
             rate=rate, curve=curve, availability=availability, tpot_s=tpot, scale_to_zero=quiet,
             warm=0 if quiet else 1, input=Lengths.shares({300: 0.7, 6000: 0.3})),
        small(*rows), now=NOW,
    )  # fmt: skip
    best = planner.solved()
    least = lightest(planner)
    assert (best.weighed if best else np.inf) == pytest.approx(least, rel=1e-9)


def test_short_and_long_prompts_go_to_different_machines_where_that_is_cheaper() -> None:
    """Cheap machines are too slow for long prompts; with fast ones for those alone it costs less
    than fast ones for all."""
    rows = (
        row("gcp", "L4", 1, on_demand=0.2),
        row("aws", "H100-SXM", 1, on_demand=9.0),
    )
    shape: dict[str, Any] = {
        "rate": 100.0, "input": Lengths.shares({200: 0.97, 12_000: 0.03}),
        "ttft_s": 0.9, "ttft_share": 0.99, "tpot_s": 0.08, "quantise": ("fp8",),
    }  # fmt: skip
    plans = plan(work(**shape), catalog=small(*rows), now=NOW)
    assert plans.best is not None
    assert {pool.accelerator for pool in plans.best.pools} == {"L4", "H100-SXM"}
    assert plans.single is not None
    assert plans.best.cost < plans.single.cost


def test_which_requests_go_where_is_the_best_of_all_divisions() -> None:
    """With three sizes there are two lengths to divide at, and where one fast machine is not enough
    it is better to divide than to rent another: all of that as plain loops find it."""
    kinds = []
    for rate, price in ((8.0, 3.0), (30.0, 3.0), (30.0, 14.0)):
        rows = (
            row("gcp", "L4", 1, on_demand=0.2),
            row("aws", "H100-SXM", 1, on_demand=price),
        )
        shape: dict[str, Any] = {
            "rate": rate, "input": Lengths.shares({200: 0.8, 3000: 0.17, 12_000: 0.03}),
            "ttft_s": 0.9, "ttft_share": 0.99, "tpot_s": 0.08, "curve": (1.0,) * 12 + (2.0,) * 12,
        }  # fmt: skip
        planner = Planner(work(**shape), catalog=small(*rows), now=NOW)
        best = planner.solved()
        assert best is not None
        assert best.weighed == pytest.approx(lightest(planner), rel=1e-9)
        kinds.append(len({part.pool.entry for part in best.parts}))
    assert kinds == [1, 2, 2]


def test_more_traffic_or_tighter_targets_never_cost_less() -> None:
    catalog = small(*SMALL)
    costs = []
    for rate in (1.0, 5.0, 20.0, 80.0):
        best = found(catalog, rate=rate).best
        assert best is not None
        costs.append(best.cost)
    assert costs == sorted(costs)
    costs = []
    for tpot in (0.2, 0.05, 0.02, 0.012):
        best = found(catalog, tpot_s=tpot).best
        assert best is not None
        costs.append(best.cost)
    assert costs == sorted(costs)


def test_machines_follow_the_hours_and_keep_a_spare_on_spot() -> None:
    plans = found(small(*SMALL), rate=100.0, curve=DAY, availability=0.999)
    assert plans.best is not None
    for pool in plans.best.pools:
        for hour in pool.hours:
            assert hour.needed * pool.rate_per_machine >= hour.rate * (1 - 1e-9)
            assert hour.on_demand + hour.spot >= hour.needed + (1 if hour.spot else 0)
            assert hour.chance >= 0.999
        counts = [hour.needed for hour in pool.hours]
        assert counts[12] > counts[3]
        for name, value in pool.latency_ms.items():
            assert value is not None
            assert value <= 1e3 * plans.targets[name][0] * 1.001


def test_quiet_hours_may_have_no_replica_only_where_that_is_allowed() -> None:
    curve = (0.0,) * 12 + (1.0,) * 12
    kept, none = (found(small(*SMALL), curve=curve, **more).best for more in NOTHING_OR_ZERO)
    assert kept is not None
    assert none is not None
    assert kept.pools[0].hours[0].needed == 1
    assert none.pools[0].hours[0].needed == 0
    assert none.cost < kept.cost
    warm = found(small(*SMALL), curve=curve, warm=3).best
    assert warm is not None
    assert all(h.needed * warm.pools[0].replicas >= 3 for h in warm.pools[0].hours)


def test_quantised_weights_are_chosen_only_where_allowed_and_never_silently() -> None:
    plain, allowed = (found(small(SMALL[1]), **more).best for more in PLAIN_OR_FP8)
    assert plain is not None
    assert allowed is not None
    assert (plain.pools[0].weights, plain.pools[0].caveat) == ("bf16", "")
    assert allowed.pools[0].weights == "fp8"
    assert "evaluate your model" in allowed.pools[0].caveat
    assert allowed.cost < plain.cost


def test_own_machines_come_first_and_rented_ones_add_what_is_missing() -> None:
    own = row("own", "L40S", 1, on_demand=0.05, instance_type="desk", region="own", own=True)
    planner = Planner(work(rate=50.0), small(SMALL[0], own), now=NOW)
    planner.shelf.most_steady[planner.shelf.own] = 2
    planner.shelf.most_spot[planner.shelf.own] = 0
    plans = planner.plans(explain=False)
    assert plans.best is not None
    first, second = plans.best.pools
    assert (first.own, second.own) == (True, False)
    assert max(hour.on_demand for hour in first.hours) <= 2
    assert "own" in first.sizes


def test_residency_and_limits_are_kept() -> None:
    for limits, residency in ((Limits(regions=("eu-*",)), None), (Limits(), ("eu-*",))):
        best = found(limits=limits, residency=residency).best
        assert best is not None
        assert all(pool.region.startswith("eu-") for pool in best.pools)
    steady = found(limits=Limits(markets=("on_demand",), providers=("aws",))).best
    assert steady is not None
    assert all(hour.spot == 0 for pool in steady.pools for hour in pool.hours)


def test_a_target_that_nothing_meets_says_what_comes_nearest_and_what_would_do() -> None:
    plans = plan(work(tpot_s=0.001), catalog=small(*SMALL), now=NOW)
    assert plans.best is None
    assert plans.nearest is not None
    assert plans.nearest.accelerator == "H100-SXM"
    assert plans.nearest.reached_ms["tpot"] > 1
    assert any("tpot" in change for change in plans.nearest.would_do)
    poor = plan(work(Limits(budget=1_000_000)), catalog=small(*SMALL), now=NOW)  # type: ignore[arg-type]
    assert poor.nearest is not None
    assert any("instead of $1" in change for change in poor.nearest.would_do)


def test_what_targets_cost_what_else_there_is_and_why_others_lost() -> None:
    plans = plan(work(Limits(providers=("aws", "deepinfra")), growth=0.1), catalog=REAL, now=NOW)
    assert plans.best is not None
    for one in plans.targets_cost:
        if one.more is not None:
            assert (one.more >= 0) == ((one.seconds or 0) < one.instead_of) or one.more == 0
    apis = [one for one in plans.alternatives if one.kind == "api"]
    tokens = plans.requests_per_s * 3600 * 730
    cheapest_api = apis[0]
    assert cheapest_api.provider == "deepinfra"
    assert cheapest_api.cost == pytest.approx(
        tokens * (plans.input * 0.02 + plans.output * 0.04), rel=1e-6
    )
    assert [one.months for one in plans.growth] == [3, 6, 12]
    lost = {one.accelerator: one.reason for one in plans.losers}
    assert "never measured" in lost["T4"]
    made = document.to_json(plans)
    assert made["best"]["usd_a_month"] == pytest.approx(plans.best.cost / 1e6)
    assert made["best"]["pools"][0]["hours"][0]["needed"] >= 1


def test_serverless_is_cheaper_with_few_requests_and_the_crossover_says_where() -> None:
    rows = (row("aws", "L4", 1, on_demand=0.5),)
    shape: dict[str, Any] = {
        "rate": 0.002, "e2e_s": 200.0, "ttft_s": None, "tpot_s": None, "scale_to_zero": True,
        "warm": 0, "quantise": ("fp8",),
    }  # fmt: skip
    plans = plan(work(**shape), catalog=small(*rows), now=NOW)
    assert plans.best is not None
    served = next(one for one in plans.alternatives if one.kind == "serverless")
    assert served.cost < plans.best.cost
    assert served.crossover is not None
    assert served.crossover > 0.002


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"engine": "foo"}, "sglang"),
        ({"weights": "fp3"}, "mxfp4"),
        ({"quantise": ("fp3",)}, "mxfp4"),
        ({"cache": "fp3"}, "fp8"),
        ({"input": Lengths.fixed(200_000)}, "131,072"),
        ({"users": (("frankfort", 1.0),)}, "frankfurt"),
        ({"residency": ("XX",)}, "EU"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        found(small(*SMALL), **changed)
    assert says in f"{caught.value.message} {caught.value.hint}"


def test_a_trace_gives_rates_sizes_and_bursts(tmp_path: Path) -> None:
    path = tmp_path / "seen.csv"
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0, 7200, 7200))
    lines = [f"{t:.3f},{100 + n % 900},{50 + n % 100}" for n, t in enumerate(times)]
    path.write_text("t_s,input_tokens,output_tokens\n" + "\n".join(lines))
    asked = traffic.of(serve(trace=str(path), rate=None, input=None, output=None))
    assert len(asked.hours) == 2
    assert asked.mean == pytest.approx(1, rel=0.05)
    assert asked.mix.input == pytest.approx(549.5, rel=0.02)
    assert asked.cv == pytest.approx(1, abs=0.1)
    scaled = traffic.of(serve(trace=str(path), rate=30.0, input=None, output=None))
    assert scaled.mean == pytest.approx(30)
    path.write_text("t_s,input_tokens,output_tokens\n1,x,3\n2,2,3\n")
    with pytest.raises(BadFile, match=r"seen\.csv:2"):
        traffic.of(serve(trace=str(path), rate=None, input=None, output=None))
    path.write_text("when,what\n1,2\n")
    with pytest.raises(BadFile, match="no column t_s"):
        traffic.of(serve(trace=str(path), rate=None, input=None, output=None))


def test_spares_grow_with_the_promise() -> None:
    sparse, dense = (min(markets.enough(10, 0.02, 1e-5, share), key=lambda h: h.on_demand)
                     for share in (0.9, 0.9999))  # fmt: skip
    assert sparse.on_demand == dense.on_demand == 0
    assert 11 <= sparse.spot < dense.spot
    assert all(h.chance >= 0.9999 for h in markets.enough(10, 0.02, 1e-5, 0.9999))
    assert markets.enough(10, 1.0, 1.0, 0.9) == ()


@pytest.mark.parametrize(("need", "down"), [(7, 0.2), (61, 0.01), (3000, 0.004), (3000, 0.1)])
def test_spares_are_the_fewest_that_keep_the_promise(need: int, down: float) -> None:
    """Of thousands, too: by the binomial distribution, summed from the few that are down."""

    def chance(spot: int) -> float:
        share, total = exp(spot * log1p(-down)), 0.0
        for missing in range(spot - need + 1):
            total += share
            share *= (spot - missing) / (missing + 1) * down / (1 - down)
        return total

    held = markets.enough(need, down, 1.0, 0.999)[0]
    assert held.chance == pytest.approx(chance(held.spot), rel=1e-6)
    assert held.chance >= 0.999
    assert held.spot == need + 1 or chance(held.spot - 1) < 0.999
