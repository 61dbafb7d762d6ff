"""Prices of what is charged for beside machines: each dated, and none of them zero by accident."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tradewind.base import clock
from tradewind.base.errors import BadFile, NotFound
from tradewind.catalog import ratecard
from tradewind.model.rate import Rate
from tradewind.model.ratecard import Found, RateCard

HEADER = "category,provider,item,value,unit,region,as_of,source,evidence,note\n"


def rate(category: str, provider: str, region: str, value: float) -> Rate:
    return Rate(
        category=category, provider=provider, item="", value=value, unit="USD/GB", region=region,
        as_of="2026-01-01", source="here", evidence="seen", note="",
    )  # fmt: skip


CARD = RateCard(
    [
        rate("egress_inter_region", "moon", "a-*", 0.05),
        rate("egress_inter_region", "moon", "a-1/a-2", 0.01),
        rate("egress_inter_region", "moon", "b-*/b-*", 0.02),
        rate("egress_internet", "moon", "*", 0.09),
        rate("egress_internet", "mars", "*", 0.0),
        rate("egress_internet", "*", "*", 0.08),
    ]
)


@pytest.mark.parametrize(
    ("start", "end", "usd", "assumed"),
    [
        (("moon", "a-1"), ("moon", "a-2"), 0.01, False),
        (("moon", "a-1"), ("moon", "b-2"), 0.05, False),
        (("moon", "b-1"), ("moon", "b-2"), 0.02, False),
        (("moon", "b-1"), ("moon", "a-1"), 0.05, True),  # as the dearest that leaves a region
        (("moon", "a-1"), ("mars", "a-1"), 0.09, False),
        (("mars", "a"), ("mars", "b"), 0.0, False),  # which it says itself
        (("venus", "a"), ("venus", "b"), 0.08, True),
    ],
)
def test_traffic_costs_what_the_place_that_it_leaves_asks(
    start: tuple[str, str], end: tuple[str, str], usd: float, assumed: bool
) -> None:
    found = CARD.traffic(start, end)
    assert found is not None
    assert (found.usd, bool(found.assumed)) == (usd, assumed)
    if assumed:
        assert start[0] in found.assumed
        assert f"${usd:g}/GB" in found.assumed


def test_within_a_region_nothing_is_moved_for_money() -> None:
    assert CARD.traffic(("venus", "a"), ("venus", "a")) is None


def test_what_nobody_knows_is_no_zero() -> None:
    with pytest.raises(NotFound, match="a machine's disk at moon") as caught:
        CARD.find("block_storage", "moon", "a-1")
    assert caught.value.hint is not None
    assert "tradewind catalog rates --category block_storage" in caught.value.hint


def disk(item: str, region: str, value: float) -> Rate:
    return replace(rate("block_storage", "moon", region, value), item=item)


def test_disks_cost_by_their_kind() -> None:
    card = RateCard(
        [
            disk("slow", "a", 0.1),
            disk("fast", "a", 0.3),
            disk("slow", "b", 0.2),
            disk("vast", "*", 1),
        ]
    )
    assert card.find("block_storage", "moon", "a").usd == 0.1
    assert card.find("block_storage", "moon", "a", item="fast").usd == 0.3
    assert card.find("block_storage", "moon", "z", item="vast") == Found(card.rates[3])
    elsewhere = card.find("block_storage", "moon", "b", item="fast")
    assert elsewhere.usd == 0.3
    assert "a machine's disk (fast) at moon in b" in elsewhere.assumed
    with pytest.raises(NotFound, match=r"a machine's disk \(odd\) at moon"):
        card.find("block_storage", "moon", "a", item="odd")


def test_every_rate_of_the_package_is_dated_and_has_a_source() -> None:
    card = ratecard.card()
    assert len(card.rates) > 100
    for each in card.rates:
        assert date.fromisoformat(each.as_of) <= clock.today(), each
        assert each.source, each


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("egress,aws,,1,USD/GB,*,2026-01-01,x,seen,", "no category is called 'egress'"),
        ("egress_internet,aws,,1,USD/TB,*,2026-01-01,x,seen,", "is in USD/GB, not in 'USD/TB'"),
        ("egress_internet,aws,,,USD/GB,*,2026-01-01,x,seen,", "a rate has a value"),
        ("egress_internet,aws,,1,USD/GB,*,2026-01-01,,seen,", "a rate has a value"),
        ("egress_internet,aws,,1,USD/GB,*,yesterday,x,seen,", "yesterday"),
        ("egress_internet,aws,,-1,USD/GB,*,2026-01-01,x,seen,", "value is -1"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_line(tmp_path: Path, row: str, what: str) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(HEADER + row + "\n")
    with pytest.raises(BadFile, match=f"line 2: .*{what}"):
        ratecard.read(path)


def test_a_price_is_there_once(tmp_path: Path) -> None:
    row = "egress_internet,aws,,1,USD/GB,*,2026-01-01,x,seen,\n"
    path = tmp_path / "rates.csv"
    path.write_text(HEADER + 2 * row)
    with pytest.raises(BadFile, match="line 3: the same as in line 2"):
        ratecard.read(path)
