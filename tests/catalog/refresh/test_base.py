"""How sources read: one judgement of every oddity."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from types import NoneType
from typing import Any

import pytest

from tests.catalog.refresh.asking import context
from tests.local_http import LocalHttp
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import (
    NUMBER,
    as_amount,
    as_gpu_count,
    as_price,
    as_size,
    each,
    need,
)


@pytest.mark.parametrize(
    ("value", "how", "micros"),
    [
        (1.25, {}, 1_250_000),
        (2, {}, 2_000_000),
        (0.0000004, {}, None),  # less than a micro-dollar is nothing
        (0, {}, None),
        (-1, {}, None),
        (None, {"kind": (*NUMBER, NoneType)}, None),
        (" 1.25 ", {"kind": str}, 1_250_000),
        (551_221.0, {"hours": 8760}, 62_924_772),
        (2.8665, {"rate": Decimal("1.1699")}, 3_353_518),
    ],
)
def test_a_price(value: Any, how: dict[str, Any], micros: int | None) -> None:
    assert as_price(value, "here", **how) == micros


@pytest.mark.parametrize(
    ("value", "how", "says"),
    [
        (None, {}, "here: expected int/float, got None"),
        (True, {}, "here: expected int/float, got True"),
        (True, {"kind": (*NUMBER, NoneType)}, "here: expected int/float/NoneType, got True"),
        ("1.25", {}, "here: expected int/float, got '1.25'"),
        ("soon", {"kind": str}, "here: 'soon' is not a price"),
        ("1e999999", {"kind": str, "rate": Decimal(20)}, "here: '1e999999' is not a price"),
        (float("nan"), {}, "here: nan is not a price"),
        (float("inf"), {}, "here: inf is not a price"),
    ],
)
def test_what_is_no_price(value: Any, how: dict[str, Any], says: str) -> None:
    with pytest.raises(SourceFailed) as caught:
        as_price(value, "here", **how)
    assert caught.value.message == says


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e12, "8", True, None])
def test_what_is_no_size(value: Any) -> None:
    with pytest.raises(SourceFailed, match="here: "):
        as_size(value, "here")
    assert as_amount(value) is None


def test_sizes_and_counts() -> None:
    assert (as_size(0, "here"), as_size(1.5, "here")) == (0, 1.5)
    assert (as_amount(0), as_amount(1.5)) == (None, 1.5)
    assert (as_gpu_count(0, "here"), as_gpu_count(64, "here")) == (0, 64)
    for odd in (-1, 65, 8.0, "8", True):
        with pytest.raises(SourceFailed, match="here: "):
            as_gpu_count(odd, "here")


def test_a_flag_is_no_number_and_a_number_no_flag() -> None:
    assert need(True, bool, "here") is True
    for value, kind in ((True, int), (1, bool), (False, NUMBER)):
        with pytest.raises(SourceFailed, match="here: expected"):
            need(value, kind, "here")


def test_one_odd_entry_costs_nothing_else_but_all_of_them_are_a_failure(server: LocalHttp) -> None:
    asked = context("aws", server)

    def positive(entry: Any) -> Iterator[int]:
        if need(entry, int, "list[]") > 0:
            yield entry

    assert list(each(asked, [1, "x", 0, 2], positive, called="number")) == [1, 2]
    assert asked.skipped == {"malformed number": 1}
    assert list(each(asked, [0, -1], positive)) == []  # nothing for us, and nothing wrong
    with pytest.raises(SourceFailed, match=r"list\[\]: expected int, got 'y'"):
        list(each(asked, [0, "x", "y"], positive))


def test_trouble_with_the_list_itself_is_not_an_odd_entry(server: LocalHttp) -> None:
    asked = context("aws", server)

    def pages() -> Iterator[int]:
        yield 1
        raise SourceFailed("the second page is missing")

    with pytest.raises(SourceFailed, match="second page"):
        list(each(asked, pages(), lambda entry: [entry]))
    assert not asked.skipped
