"""The ruler and the words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.pictures import canvas
from tradewind.pictures.chart import counted, money, short


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (2_990_000, "$2.99"), (100_000, "$0.10"), (85_000, "$0.085"), (70_000, "$0.07"),
        (4_200, "$0.0042"), (9_499, "$0.0095"), (5, "$0.000005"), (0, "$0.00"),
        (1_234_500_000, "$1,234"), (123_456_789, "$123.46"), (94_999, "$0.095"),
    ],
)  # fmt: skip
def test_money_is_short_and_true(micros: int, text: str) -> None:
    assert money(micros) == text


def test_short_and_counted() -> None:
    assert short("a name", 10) == "a name"
    assert short("a very\nlong name", 9) == "a very l…"
    assert counted(1, "row") == "1 row"
    assert counted(1200, "row") == "1,200 rows"


def test_spread_leaves_what_is_apart_where_it_is() -> None:
    assert canvas.spread([1.0, 2.0, 3.0], 0.5, 0, 4) == [1.0, 2.0, 3.0]
    assert canvas.spread([], 0.5, 0, 4) == []


def test_spread_parts_what_touches_around_its_middle() -> None:
    assert canvas.spread([2.0, 2.0, 2.0], 0.5, 0, 4) == [1.5, 2.0, 2.5]


@given(st.lists(st.floats(0, 10), max_size=40))
def test_spread_keeps_order_distance_and_bounds(wanted: list[float]) -> None:
    places = canvas.spread(sorted(wanted), 0.3, 0, 10)
    gap = min(0.3, 10 / max(1, len(wanted) - 1))
    assert len(places) == len(wanted)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(places))
    assert all(-1e-9 <= place <= 10 + 1e-9 for place in places)


@pytest.mark.parametrize(
    ("low", "high"), [(0.1, 30), (1, 3), (0.17, 1.2), (4.1, 4.8), (0.00002, 900)]
)
def test_ticks_are_inside_and_enough(low: float, high: float) -> None:
    ticks = canvas.dollar_ticks(low, high, log=True)
    assert 3 <= len(ticks) <= 15
    assert ticks == sorted(ticks)
    assert all(low <= tick <= high for tick in ticks)


def test_wrapped_lines_fit() -> None:
    text = "prices of the catalog " * 20
    lines = canvas.wrapped(text, 9, 4)
    assert " ".join(lines) == text.strip()
    assert all(canvas.text_width(line, 9) <= 4 for line in lines)


def test_every_colour_has_one_role() -> None:
    for side in (0, 1):
        colours = [tones[side] for tones in canvas.TONES.values()]
        assert len(set(colours)) == len(colours)
    assert "#000000" not in {light for light, _ in canvas.TONES.values()}  # SVG leaves black out
