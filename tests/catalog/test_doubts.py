"""Prices are not trusted blindly."""

from __future__ import annotations

import pytest

from tests.catalog.small import TODAY, row, small
from tradewind.catalog import doubts
from tradewind.catalog.table import Row

# What several honest providers ask for an H100: dear clouds and cheap ones.
HONEST = [
    row(provider, "H100-SXM", 8, on_demand=8 * price, spot=8 * price * 0.4)
    for provider, price in {"aws": 6.9, "gcp": 11, "lambda": 4, "crusoe": 3.9, "vast": 1.9}.items()
]


def marks(*rows: Row) -> dict[str, str]:
    """Price group → kind of doubt, of the first row, among the honest ones."""
    catalog = small(*rows, *HONEST)
    prices = catalog.table.offer(0).prices
    return {p.market: doubts.kind(p.mark) for p in prices if p.mark}


def test_honest_prices_bear_no_mark() -> None:
    assert marks(*HONEST) == {}
    assert len(small(*HONEST).offers(today=TODAY)) == len(HONEST)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        # What a peer recommended from its own catalog.
        (row("peer", "A100-80GB", 8, on_demand=0.08), {"on_demand": "low"}),
        (row("peer", "H100-SXM", 8, on_demand=55, spot=0.0), {"spot": "zero"}),
        (row("peer", "H100-SXM", 8, on_demand=-3), {"on_demand": "zero"}),
        (row("peer", "H100-SXM", 8, on_demand=8 * 0.5), {"on_demand": "low"}),
        (row("peer", "H100-SXM", 8, on_demand=8 * 700), {"on_demand": "high"}),
        (row("peer", "H100-SXM", 8, on_demand=30, spot=30), {"spot": "spot-dear"}),
        (row("peer", "H100-SXM", 8, on_demand=30, spot=31), {"spot": "spot-dear"}),
        (row("peer", "H100-SXM", 8, on_demand=30, spot=8 * 0.15), {"spot": "low"}),
        (row("peer", "H100-SXM", 8, on_demand=30, as_of=""), {"on_demand": "undated"}),
        (
            row(
                "gcp", "H100-SXM", 8, on_demand=90, source="[on-demand column = DWS calendar price]"
            ),
            {"on_demand": "placeholder"},
        ),
        (
            row("m", "H100-SXM", 8, spot=8, source="x (auction reserve price)"),
            {"spot": "placeholder"},
        ),
        (row("aws", "H100-SXM", 8, on_demand=55, retired=True), {"on_demand": "retired"}),
    ],
)
def test_doubtful_prices_are_marked_and_not_chosen(bad: Row, expected: dict[str, str]) -> None:
    assert marks(bad) == expected
    catalog = small(bad, *HONEST)
    market = next(iter(expected))
    chosen = catalog.offers(market=market, today=TODAY)  # type: ignore[arg-type]
    assert 0 not in chosen.rows
    assert chosen.left_out == {expected[market]: 1}
    shown = catalog.offers(market=market, include_marked=True, today=TODAY)  # type: ignore[arg-type]
    assert 0 in shown.rows


def test_a_low_price_that_others_ask_too_is_believed() -> None:
    low = [row(p, "H100-SXM", 8, on_demand=8 * 0.7) for p in ("a", "b", "c")]
    assert marks(low[0]) == {"on_demand": "low"}
    assert marks(*low) == {}


def test_many_rows_of_one_provider_do_not_outvote_the_others() -> None:
    many = [row("huge", "H100-SXM", 8, on_demand=8 * 30, region=f"r{i}") for i in range(200)]
    assert marks(row("small", "H100-SXM", 8, on_demand=8 * 1.9), *many) == {}


def test_a_big_host_excuses_a_dear_accelerator() -> None:
    cheap = [row(p, "T4", 1, on_demand=0.5, vcpus=4) for p in ("a", "b", "c")]
    assert marks(row("d", "T4", 1, on_demand=6.7, vcpus=96), *cheap) == {}
    assert marks(row("d", "T4", 1, on_demand=6.7, vcpus=4), *cheap) == {"on_demand": "high"}


def test_a_row_without_any_price_is_named() -> None:
    found = small(row("aws"), *HONEST).offers(today=TODAY)
    assert found.left_out == {"missing": 1}
    assert found.doubtful[0] == (0, "missing: no price on any market")


def test_judging_again_forgets_the_first_judgement() -> None:
    bare = row("aws")
    doubts.judge([bare, *HONEST], {})
    assert bare["on_demand_mark"].startswith("missing")
    bare |= {"spot": 16_000_000, "spot_as_of": "2026-11-01", "spot_source": "x"}
    doubts.judge([bare, *HONEST], {})
    assert "on_demand_mark" not in bare


def test_own_machines_are_theirs_to_price() -> None:
    assert marks(row("own", "H100-SXM", 8, on_demand=0, own=True)) == {}


def test_reasons_are_sentences_with_the_figures() -> None:
    catalog = small(row("peer", "H100-SXM", 8, on_demand=4), *HONEST)
    price = catalog.table.offer(0).on_demand
    assert price is not None
    assert price.mark == "low: $0.500 per H100-SXM-hour is 1/8 of the median of 6 providers ($3.95)"


def test_posted_spot_is_noted_not_marked() -> None:
    rows = [
        row("azure", "A10", 1, on_demand=p, spot=p * 0.185, region=f"r{p}") for p in range(2, 12)
    ]
    catalog = small(*rows)
    assert doubts.posted_spot(catalog.table) == [
        "azure: 10 of 10 spot prices are 18.5% of on-demand to the digit: a posted price, "
        "no promise of capacity"
    ]
    assert len(catalog.offers(market="spot", today=TODAY)) == 10
