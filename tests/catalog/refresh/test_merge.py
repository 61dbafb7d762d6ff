from __future__ import annotations

from typing import Any

import pytest

from tests.catalog.small import REAL, TODAY, row
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import Listing, Source
from tradewind.catalog.refresh.merge import Change, merge
from tradewind.catalog.table import Row
from tradewind.model import Market


def source(*, complete: bool = False, markets: tuple[Market, ...] = ("on_demand",)) -> Source:
    return Source(
        provider="aws",
        url="http://x",
        fetch=lambda context: iter(()),
        describes="live list",
        markets=markets,
        complete=complete,
    )


def listing(**fields: Any) -> Listing:
    known: dict[str, Any] = {
        "region": "us-east-1",
        "instance_type": "p5",
        "accelerator": "H100-SXM",
        "accelerator_count": 8,
    }
    return Listing(**(known | fields))


def merged(rows: list[Row], *listings: Listing, **how: Any) -> tuple[list[Row], Change]:
    known = REAL.instance_types("aws")
    return merge(rows, listings, source(**how), REAL.accelerators, known, TODAY)


OLD = [
    row(instance_type="p5", zone="a", on_demand=55, spot=20, as_of="2026-01-01"),
    row(instance_type="p5", zone="b", on_demand=55, spot=25, as_of="2026-01-01"),
    row(instance_type="p5", region="eu-west-1", on_demand=60, as_of="2026-01-01"),
]


def test_a_wide_listing_renews_every_zone_and_leaves_other_markets() -> None:
    rows, change = merged(OLD, listing(on_demand=Micros(50_000_000)))
    assert [r["on_demand"] for r in rows] == [50_000_000, 50_000_000, 60_000_000]
    assert [r["on_demand_as_of"] for r in rows] == ["2026-11-15", "2026-11-15", "2026-01-01"]
    assert rows[0]["on_demand_source"] == "live list"
    assert (rows[0]["spot"], rows[0]["spot_as_of"]) == (20_000_000, "2026-01-01")
    assert change == Change(renewed=2, changed=2, added=0, delisted=0)
    assert OLD[0]["on_demand"] == 55_000_000  # what was given is untouched


def test_any_means_every_region_and_the_narrower_word_wins() -> None:
    rows, change = merged(
        OLD,
        listing(zone="b", on_demand=Micros(3)),
        listing(region="any", on_demand=Micros(1)),
        listing(on_demand=Micros(2)),
    )
    assert [r["on_demand"] for r in rows] == [2, 3, 1]
    assert change.renewed == 3


def test_new_things_are_added_with_what_is_known() -> None:
    rows, change = merged(OLD, listing(instance_type="p6", accelerator="B200", on_demand=Micros(9)))
    new = rows[-1]
    assert (new["provider"], new["zone"], new["accelerator_memory_gb"]) == ("aws", "", 180)
    assert change == Change(1, 1, 1, 0)


def test_a_new_row_takes_from_its_type_what_the_listing_does_not_tell() -> None:
    known = REAL.instance_types("aws")["p5.48xlarge"]
    told = {"instance_type": "p5.48xlarge", "region": "mars-1", "on_demand": Micros(9)}
    (bare,), _ = merged([], listing(**told))
    names = ("vcpus", "memory_gb", "local_nvme_gb", "network_gbps")
    assert [bare[name] for name in names] == [getattr(known, name) for name in names]
    assert None not in [bare[name] for name in names]
    assert bare["accelerator_memory_gb"] == REAL.accelerators["H100-SXM"].memory_gb
    (exact,), _ = merged([], listing(vcpus=1, accelerator_memory_gb=2, **told))
    assert (exact["vcpus"], exact["accelerator_memory_gb"]) == (1, 2)
    assert exact["memory_gb"] == known.memory_gb


def test_a_wide_listing_makes_no_row_beside_the_zones_of_a_narrow_one() -> None:
    rows, change = merged(
        [], listing(on_demand=Micros(9)), listing(zone="a", spot=Micros(3)), markets=("spot",)
    )
    assert [(r["zone"], r["on_demand"], r["spot"]) for r in rows] == [("a", 9, 3)]
    assert change.added == 1


def test_a_price_that_is_known_wider_than_it_is_sold_adds_nothing() -> None:
    rows, change = merged(OLD, listing(region="mars-1", on_demand=Micros(9), only_known=True))
    assert (len(rows), change.added, change.renewed) == (3, 0, 0)


def test_what_a_complete_list_leaves_out_is_gone() -> None:
    listed = listing(zone="a", on_demand=Micros(50_000_000))
    rows, change = merged(OLD, listed, complete=True)
    # Zone b keeps its spot price, of which this source does not speak; Ireland had nothing else.
    assert [(r["zone"], r["on_demand"]) for r in rows] == [("a", 50_000_000), ("b", None)]
    assert change.delisted == 1


def test_a_list_without_cpu_machines_says_nothing_of_them() -> None:
    cpu = row("aws", "", instance_type="m5", on_demand=0.1)
    gpu = listing(region="any", on_demand=Micros(5))
    rows, _ = merged([*OLD, cpu], gpu, complete=True)
    assert len(rows) == 4
    other = listing(instance_type="m6", accelerator="", accelerator_count=0, on_demand=Micros(5))
    rows, change = merged([*OLD, cpu], gpu, other, complete=True)
    assert change.delisted == 1
    assert "m5" not in {r["instance_type"] for r in rows}


def test_a_list_that_lacks_most_is_not_believed() -> None:
    many = [row(instance_type=f"t{n}", on_demand=5) for n in range(10)]
    few = [listing(instance_type=f"t{n}", on_demand=Micros(6)) for n in range(4)]
    rows, change = merged(many, *few, complete=True)
    assert (len(rows), change.delisted, change.unbelieved, change.renewed) == (10, 0, 6, 4)
    assert rows[9]["on_demand"] == 5_000_000
    most = [listing(instance_type=f"t{n}", on_demand=Micros(6)) for n in range(5)]
    rows, change = merged(many, *most, complete=True)
    assert (len(rows), change.delisted, change.unbelieved) == (5, 5, 0)


def test_what_had_no_price_before_is_not_called_delisted() -> None:
    rows, change = merged([*OLD, row(instance_type="p9")], complete=True)
    assert [r["instance_type"] for r in rows] == ["p5", "p5", "p9"]
    assert change.delisted == 1


def test_an_unchanged_price_counts_as_renewed_not_as_moved() -> None:
    _, change = merged(OLD, listing(on_demand=Micros(55_000_000)))
    assert (change.renewed, change.changed) == (2, 0)


@pytest.mark.parametrize("known", [96, None])
def test_hardware_is_filled_in_but_not_overwritten(known: float | None) -> None:
    rows, _ = merged([OLD[0] | {"vcpus": known}], listing(vcpus=192, on_demand=Micros(5)))
    assert rows[0]["vcpus"] == (known or 192)
