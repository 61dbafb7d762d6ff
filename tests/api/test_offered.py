"""Machines of an account's own beside the catalog's: our names, prices, and how sure they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tradewind import catalog as catalogs
from tradewind import workload
from tradewind.api import offered
from tradewind.catalog import Catalog
from tradewind.catalog.table import Row
from tradewind.planning.planner import Planner
from tradewind.providers.offered import Like, Offered

NOW = datetime(2026, 11, 18, tzinfo=UTC)
P5 = Like(provider="aws", region="us-east-1", instance_type="p5.48xlarge")


def machine(**more: object) -> Offered:
    usual: dict[str, object] = {
        "region": "prod",
        "instance_type": "p5.48xlarge",
        "accelerator": "NVIDIA-H100-80GB-HBM3",
        "count": 8.0,
        "machines": 4,
        "free": 4,
        "like": P5,
    }
    return Offered(**(usual | more))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def plain() -> Catalog:
    return catalogs.load(account=False)


def rows(made: offered.Joined) -> list[Row]:
    return list(made.catalog.table.rows())[len(made.catalog.table) - made.offers :]


def joined(catalog: Catalog, *several: Offered) -> offered.Joined:
    return offered.joined(catalog, {"kubernetes": several}, NOW)


def listed(catalog: Catalog, market: str = "on_demand") -> list[int]:
    table = catalog.table
    return [
        table.prices[market].micros[row] or 0
        for row in range(len(table))
        if table.columns["instance_type"][row] == "p5.48xlarge"
        and table.columns["provider"][row] == "aws"
        and table.columns["region"][row] == "us-east-1"
        and table.prices[market].micros[row] is not None
        and not table.prices[market].mark[row]
    ]


def test_it_costs_what_its_type_costs_in_the_catalog(plain: Catalog) -> None:
    (row,) = rows(joined(plain, machine()))
    assert (row["provider"], row["region"], row["accelerator"]) == (
        "kubernetes",
        "prod",
        "H100-SXM",
    )
    prices = listed(plain)
    assert min(prices) <= row["on_demand"] <= max(prices)
    assert "p5.48xlarge at aws us-east-1" in row["on_demand_source"]
    assert row["network_gbps"] == 3200
    half = machine(
        instance_type="p5.48xlarge-4of8", count=4.0, like=replace_share(0.5), fee_share=0.125
    )
    (part,) = rows(joined(plain, half))
    assert part["on_demand"] == round(row["on_demand"] / 2 + 100_000 * 0.125)
    assert "with its share of $0.10 an hour" in part["on_demand_source"]
    assert len(plain.table) == len(catalogs.load(account=False).table)  # it is as it was


def replace_share(share: float) -> Like:
    return Like(provider="aws", region="us-east-1", instance_type="p5.48xlarge", share=share)


def test_both_markets_of_a_type_are_one_offer(plain: Catalog) -> None:
    made = joined(plain, machine(), machine(market="spot", machines=9))
    (row,) = rows(made)
    assert row["spot"] < row["on_demand"]
    assert made.catalog.account is not None
    assert [each["machines"] for each in made.catalog.account.offers] == [9]


def test_whose_type_it_is_need_not_be_told_where_only_one_has_it(plain: Catalog) -> None:
    unnamed = Like(region="us-east-1", instance_type="p5.48xlarge")
    assert rows(joined(plain, machine(like=unnamed))) == rows(joined(plain, machine()))
    elsewhere = joined(plain, machine(like=Like(provider="aws", instance_type="p5.48xlarge")))
    assert rows(elsewhere)[0]["on_demand"] > 0
    assert "that of aws's others is assumed" in elsewhere.warnings[0]


def test_without_a_price_it_is_free_and_that_is_said(plain: Catalog) -> None:
    made = joined(plain, machine(instance_type="dgx-8", like=Like()))
    (row,) = rows(made)
    assert (row["on_demand"], row["network_gbps"]) == (0, offered.ASSUMED_GBPS)
    price, network = made.warnings
    assert "no price is known for dgx-8 in prod: it counts as $0" in price
    assert "name: dgx-8, provider: kubernetes, region: prod" in price
    assert "10 Gbit/s is assumed" in network


def account(tmp_path: Path, text: str) -> Catalog:
    (tmp_path / "account.yaml").write_text(text)
    return catalogs.load(folder=tmp_path, now=NOW)


def test_the_account_file_tells_prices_of_own_machines(tmp_path: Path) -> None:
    mine = account(
        tmp_path,
        """offers:
- {name: dgx, provider: kubernetes, region: prod, accelerator: "h100-sxm:8", on_demand: $12}
- {name: desk, accelerator: t4:1, on_demand: $0.1}
""",
    )
    whole = machine(instance_type="dgx", like=Like(instance_type="dgx"))
    half = machine(instance_type="dgx-4of8", count=4.0, like=Like(instance_type="dgx", share=0.5))
    desk = machine(instance_type="desk", accelerator="Tesla-T4", count=1.0, like=Like())
    made = joined(mine, whole, half, desk)
    assert [row["on_demand"] for row in rows(made)] == [12_000_000, 6_000_000, 100_000]
    assert all("account.yaml line" in row["on_demand_source"] for row in rows(made))
    found = made.catalog.offers(instance_type="dgx", provider="kubernetes")
    assert len(found) == 1  # and not once more as the account file has it
    assert not [words for words in made.warnings if "no price" in words]


def test_which_accelerator_it_is(plain: Catalog) -> None:
    def named(**more: object) -> str:
        (row,) = rows(joined(plain, machine(instance_type="x", like=Like(), **more)))
        return str(row["accelerator"])

    assert named(accelerator="a100", memory_gb=80.0) == "A100-80GB"
    assert named(accelerator="a100", memory_gb=40.0) == "A100-40GB"
    assert named(accelerator="nvidia-h100-80gb") == "H100-SXM"
    unknown = joined(plain, machine(instance_type="x", like=Like(), accelerator="Warp-9"))
    assert (unknown.offers, unknown.catalog) == (0, plain)
    assert "no accelerator is called 'Warp-9'" in unknown.warnings[0]
    silent = joined(plain, machine(instance_type="x", like=Like(), accelerator=""))
    assert "no label of its says" in silent.warnings[0]


def test_what_is_free_is_likelier_to_be_had_than_what_is_in_use(plain: Catalog) -> None:
    work = workload.load("examples/tiny-gpt/work.yaml", now=NOW)
    here = replace(
        work, limits=replace(work.limits, providers=("kubernetes",), markets=("on_demand",))
    )

    def chance(free: int | None) -> float:
        made = joined(plain, machine(free=free))
        best = Planner(here, made.catalog, now=NOW).plans().best
        assert best is not None
        assert (best.provider, best.region) == ("kubernetes", "prod")
        return best.had

    assert chance(4) > chance(None) > chance(0)


def test_no_more_machines_are_planned_than_there_are(plain: Catalog) -> None:
    work = workload.load("examples/tiny-gpt/work.yaml", now=NOW)
    here = replace(
        work, limits=replace(work.limits, providers=("kubernetes",), markets=("on_demand",))
    )
    made = joined(plain, machine(machines=2, free=2))
    found = Planner(here, made.catalog, now=NOW).search().found
    assert int(found.nodes.max()) <= 2


@pytest.mark.filterwarnings("error")
def test_machines_that_cost_nothing_are_planned_with_on_both_markets(plain: Catalog) -> None:
    work = workload.load("examples/tiny-gpt/work.yaml", now=NOW)
    here = replace(work, limits=replace(work.limits, providers=("kubernetes",), markets=None))
    own = machine(instance_type="dgx", like=Like())
    made = joined(plain, own, machine(instance_type="dgx", like=Like(), market="spot"))
    best = Planner(here, made.catalog, now=NOW).plans().best
    assert best is not None
    assert (best.instance_type, set(best.price_hour.values())) == ("dgx", {0})
