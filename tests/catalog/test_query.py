from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.small import REAL, TODAY, row, small
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.catalog.query import FRESH_WITHIN_DAYS, SORTS
from tradewind.catalog.table import Row
from tradewind.model import MARKETS

CATALOG = small(
    row("aws", "H100-SXM", 8, on_demand=55, spot=20, zone="use1-az1"),
    row("aws", "H100-SXM", 8, on_demand=58, spot=9, region="eu-west-2"),
    row("gcp", "H100-SXM", 1, on_demand=11, region="europe-west4"),
    row("lambda", "A100-80GB", 8, on_demand=14, region="us-west-1"),
    row("aws", "A10", 0.5, on_demand=0.8, region="us-west-2"),
    row("aws", "", on_demand=0.4, instance_type="m5.large"),
    row("azure", "A100-80GB", 8, on_demand=27, as_of="2024-01-01"),
)


def places(**filters: Any) -> list[tuple[str, str]]:
    found = CATALOG.offers(**filters, today=TODAY)
    return list(zip(found.values("provider"), found.values("region"), strict=True))


def test_cheapest_per_accelerator_first_and_cpu_machines_last() -> None:
    assert places() == [
        ("aws", "eu-west-2"),  # 9 / 8
        ("aws", "us-west-2"),  # 0.8 / 0.5
        ("lambda", "us-west-1"),  # 14 / 8
        ("aws", "us-east-1"),  # 20 / 8
        ("gcp", "europe-west4"),
        ("aws", "us-east-1"),  # no accelerator
    ]


def test_filters() -> None:
    assert places(accelerator="h100:8", market="on_demand") == [
        ("aws", "us-east-1"),
        ("aws", "eu-west-2"),
    ]
    assert places(accelerator="h100", count=1) == [("gcp", "europe-west4")]
    assert places(region="EU-*") == [("aws", "eu-west-2")]
    assert places(region=["eu*", "us-west-1"], provider=["gcp", "lambda"]) == [
        ("lambda", "us-west-1"),
        ("gcp", "europe-west4"),
    ]
    assert places(provider="amazon", zone="use1-*") == [("aws", "us-east-1")]
    assert places(instance_type="m5.*") == [("aws", "us-east-1")]
    assert places(accelerator="none") == [("aws", "us-east-1")]
    assert places(accelerator="a10", memory_at_least="24GB") == []  # half an A10 has 12
    assert places(accelerator="a10", memory_at_least="12GB") == [("aws", "us-west-2")]
    assert len(places(memory_at_least=80)) == 4
    assert places(max_price="$9", accelerator="h100") == [("aws", "eu-west-2")]
    assert places(max_price=8.99, accelerator="h100") == []


def test_the_price_is_the_cheapest_of_the_wanted_markets() -> None:
    found = CATALOG.offers("h100:8", today=TODAY)
    assert [(p.market, p.micros_hour) for _, p in found.priced()] == [
        ("spot", 9_000_000),
        ("spot", 20_000_000),
    ]
    on_demand = CATALOG.offers("h100:8", market="on-demand", today=TODAY)  # type: ignore[arg-type]
    assert [p.micros_hour for _, p in on_demand.priced()] == [55_000_000, 58_000_000]


def test_stale_prices_are_left_out_and_counted() -> None:
    assert places(provider="azure") == []
    found = CATALOG.offers(provider="azure", today=TODAY)
    assert found.left_out == {"stale": 1}
    assert found.doubtful[0][1] == "stale: the price is of 2024-01-01"
    assert len(CATALOG.offers(provider="azure", fresh_within="2000d", today=TODAY)) == 1
    assert len(CATALOG.offers(provider="azure", include_marked=True, today=TODAY)) == 1
    assert len(CATALOG.offers(fresh_within=timedelta(days=10), today=TODAY)) == 0


def test_what_is_shown_in_spite_of_its_age_says_so() -> None:
    found = CATALOG.offers(provider="azure", include_marked=True, today=TODAY)
    assert found.price(0).mark == "stale: the price is of 2024-01-01"
    assert found[0].prices[0].mark == "stale: the price is of 2024-01-01"
    assert repr(found) == "<Selection of 1 offers, 1 matched>"


def test_every_doubt_is_told_also_beside_a_good_price() -> None:
    catalog = small(row(on_demand=55, spot=60), row("azure", on_demand=50, as_of="2024-01-01"))
    found = catalog.offers(today=TODAY)
    assert [(r, g, reason.split(":")[0]) for r, g, reason in found.every_doubt()] == [
        (1, "on_demand", "stale"),
        (0, "spot", "spot-dear"),
    ]


def test_the_age_limit_is_inclusive_and_the_future_is_doubted() -> None:
    def offered(age_days: int) -> dict[str, int]:
        day = (TODAY - timedelta(days=age_days)).isoformat()
        found = small(row(on_demand=55, as_of=day)).offers(today=TODAY)
        return dict(found.left_out) or {"offered": len(found)}

    assert offered(FRESH_WITHIN_DAYS) == {"offered": 1}
    assert offered(FRESH_WITHIN_DAYS + 1) == {"stale": 1}
    assert offered(-1) == {"offered": 1}  # tomorrow, somewhere
    assert offered(-2) == {"future": 1}


def test_a_doubtful_price_does_not_hide_a_good_one() -> None:
    found = small(row(on_demand=55, spot=60)).offers(today=TODAY)
    assert [p.market for _, p in found.priced()] == ["on_demand"]
    assert not found.left_out


def test_sorts() -> None:
    for sort, units in {
        "hour": 1.0,
        "accelerator-hour": 8.0,
        "pflop-hour": 8 * 0.9894,
        "gb-hour": 640.0,
    }.items():
        found = CATALOG.offers("h100:8", market="on_demand", sort=sort, today=TODAY)
        assert found.measures[0] == pytest.approx(55_000_000 / units)


@pytest.mark.parametrize(
    ("filters", "error", "words"),
    [
        ({"provider": "awz"}, NotFound, "no provider is called 'awz'"),
        ({"accelerator": "h1000"}, NotFound, "no accelerator"),
        ({"market": "futures"}, InvalidValue, "no market"),
        ({"sort": "beauty"}, InvalidValue, "cannot sort"),
        ({"accelerator": "h100:8", "count": 4}, InvalidValue, "the count says 4"),
        ({"accelerator": ["h100:8", "a100:4"]}, InvalidValue, "different counts"),
        ({"memory_at_least": "80"}, InvalidValue, "no unit"),
        ({"max_price": "cheap"}, InvalidValue, "not an amount"),
        ({"max_price": float("nan")}, InvalidValue, "cannot be"),
        ({"fresh_within": "soon"}, InvalidValue, "not a length of time"),
        ({"fresh_within": 30}, InvalidValue, "fresh_within is 30"),
        ({"count": -1}, InvalidValue, "count is -1"),
        ({"accelerator": []}, InvalidValue, "no accelerator is named"),
    ],
)
def test_bad_filters(filters: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        CATALOG.offers(**filters, today=TODAY)


def test_slices_are_selections() -> None:
    found = CATALOG.offers(today=TODAY)
    assert len(found[:2]) == 2
    assert found[1:][0] == found[1]
    assert found[-1].accelerator == ""
    assert [o.provider for o in found[:2]] == ["aws", "aws"]


# -- against a search that is too simple to be wrong ----------------------------------------------

rows_strategy = st.lists(
    st.builds(
        lambda provider, accelerator, count, region, on_demand, spot, day: row(
            provider, accelerator, count, region=region, on_demand=on_demand, spot=spot, as_of=day
        ),
        st.sampled_from(["aws", "gcp", "vast"]),
        st.sampled_from(["H100-SXM", "A10", ""]),
        st.sampled_from([0.5, 1, 8]),
        st.sampled_from(["us-1", "eu-1", "eu-2"]),
        st.none() | st.floats(0, 200),
        st.none() | st.floats(0, 200),
        st.sampled_from(["2026-11-01", "2024-01-01", ""]),
    ),
    max_size=12,
)


@given(
    rows_strategy,
    st.sampled_from([None, "h100", "a10", "none"]),
    st.sampled_from([None, "eu-*", "us-1"]),
    st.sampled_from([None, *MARKETS]),
    st.none() | st.floats(0, 200),
    st.booleans(),
    st.sampled_from(SORTS),
)
def test_equals_exhaustive_search(
    rows: list[Row],
    accelerator: str | None,
    region: str | None,
    market: Any,
    max_price: float | None,
    include_marked: bool,
    sort: str,
) -> None:
    catalog = small(*rows)
    found = catalog.offers(
        accelerator,
        region=region,
        market=market,
        max_price=max_price,
        include_marked=include_marked,
        sort=sort,
        today=TODAY,
    )
    expected = []
    for number in range(len(rows)):
        offer = catalog.table.offer(number)
        if accelerator == "none" and offer.accelerator:
            continue
        if accelerator in ("h100", "a10") and not offer.accelerator.lower().startswith(accelerator):
            continue
        if region and not offer.region.startswith(region.rstrip("*")):
            continue
        prices = [
            p.micros_hour
            for p in offer.prices
            if p.market in ([market] if market else ["on_demand", "spot"])
            and (include_marked or (not p.mark and p.as_of and (TODAY - p.as_of).days <= 180))
        ]
        if prices and (max_price is None or min(prices) <= round(max_price * 1e6)):
            expected.append((number, min(prices)))
    got = [
        (r, catalog.table.prices[g].micros[r])
        for r, g in zip(found.rows, found.groups, strict=True)
    ]
    assert sorted(got) == sorted(expected)
    measures = [m for m in found.measures if m is not None]
    assert measures == sorted(measures)


def test_the_real_catalog_holds_what_it_should() -> None:
    assert len(REAL.table) > 8_879
    assert len(REAL.accelerators) == 81
    assert len(REAL.providers) == 27
    assert len(REAL.facts.instances) == 920
    assert len(REAL.rates) == 206
    anchor = REAL.offers(
        instance_type="p4d.24xlarge",
        region="us-east-1",
        market="on_demand",
        today=date(2026, 11, 1),
    )
    assert {p.micros_hour for _, p in anchor.priced()} == {21_957_642}
    for number in range(len(REAL.table)):
        for price in REAL.table.offer(number).prices:
            assert price.source
            assert price.as_of
