from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.base import units
from tradewind.base.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("$2,000", 2_000_000_000),
        ("2000", 2_000_000_000),
        ("$0.000164", 164),
        ("0.52", 520_000),
        ("$1.5k", 1_500_000_000),
        ("12 USD", 12_000_000),
        (" $.5 ", 500_000),
        ("$0", 0),
    ],
)
def test_money(text: str, micros: int) -> None:
    assert units.parse_money(text) == micros


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10B", 10**10),
        ("8,192", 8192),
        ("1.3b", 1_300_000_000),
        ("8_192", 8192),
        ("2T", 2 * 10**12),
    ],
)
def test_count(text: str, number: int) -> None:
    assert units.parse_count(text) == number


def test_count_with_its_noun() -> None:
    assert units.parse_count("4M tokens", noun="tokens") == 4_000_000
    assert units.parse_count("1 token", noun="tokens") == 1
    with pytest.raises(InvalidValue, match="a number of tokens"):
        units.parse_count("4M samples", noun="tokens")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("48h", 172_800),
        ("2d 6h", 194_400),
        ("2d6h", 194_400),
        ("1.5 hours", 5_400),
        ("90m", 5_400),
        ("1 week, 1 day", 691_200),
        ("30 sec", 30),
    ],
)
def test_duration(text: str, seconds: int) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("80GB", 80 * 10**9), ("80 GiB", 80 * 2**30), ("80G", 80 * 10**9), ("1.5tb", 15 * 10**11)],
)
def test_bytes(text: str, size: int) -> None:
    assert units.parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("400Gbps", 400 * 10**9),
        ("400gbps", 400 * 10**9),
        ("400Gb/s", 400 * 10**9),
        ("400GBps", 3200 * 10**9),
        ("12.5 GB/s", 100 * 10**9),
        ("100 Mbit/s", 10**8),
        ("1bps", 1),
    ],
)
def test_bandwidth(text: str, bits: int) -> None:
    assert units.parse_bandwidth(text) == bits


NONSENSE = [
    "",
    " ",
    "abc",
    "-5",
    "$-5",
    "nan",
    "inf",
    "1e9",
    "1,00",
    "5 apples",
    "1.2.3",
    "٣",
    "9" * 99,
]


@pytest.mark.parametrize("text", NONSENSE)
@pytest.mark.parametrize(
    "parse",
    [
        units.parse_money,
        units.parse_count,
        units.parse_duration,
        units.parse_bytes,
        units.parse_bandwidth,
    ],
)
def test_nonsense_is_refused_with_words(parse: Callable[[str], int], text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse(text)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [
        (units.parse_duration, "48", "no unit of time"),
        (units.parse_duration, "6h 2d", "large to small"),
        (units.parse_duration, "1h 1h", "large to small"),
        (units.parse_duration, "3 fortnights", "not a length of time"),
        (units.parse_bytes, "80", "no unit"),
        (units.parse_bytes, "80XB", "not a size"),
        (units.parse_bandwidth, "400", "no unit"),
        (units.parse_bandwidth, "400 gb/s", "bits or bytes"),
        (units.parse_bandwidth, "400GB", "not a bandwidth"),
        (units.parse_money, "1.00000099999999999999999999999", "finer than a millionth"),
        (units.parse_money, "$0.0000001", "finer than a millionth"),
        (units.parse_count, "1.5", "not a whole number"),
        (units.parse_money, "-1", "negative"),
    ],
)
def test_the_message_says_what_is_wrong(parse: Callable[[str], int], text: str, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        parse(text)


@given(st.integers(0, 10**18))
def test_money_round_trips(micros: int) -> None:
    assert units.parse_money(units.format_money(micros)) == micros


@given(st.integers(0, 10**10))
def test_duration_round_trips(seconds: int) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == seconds


@given(st.integers(0, 10**18))
def test_the_rest_round_trips(number: int) -> None:
    assert units.parse_count(units.format_count(number)) == number
    assert units.parse_bytes(units.format_bytes(number)) == number
    assert units.parse_bandwidth(units.format_bandwidth(number)) == number


@given(st.text(max_size=40))
def test_no_text_breaks_a_parser(text: str) -> None:
    for parse in (units.parse_money, units.parse_duration, units.parse_bytes, units.parse_count):
        with suppress(InvalidValue):
            assert parse(text) >= 0


def test_printing() -> None:
    assert units.format_money(2_000_000_000) == "$2,000.00"
    assert units.format_money(-1_500_000) == "-$1.50"
    assert units.format_money(164) == "$0.000164"
    assert units.format_money(1_234_567, digits=2) == "$1.23"
    assert units.format_money(0, digits=2) == "$0.00"
    assert units.format_money(10_000, digits=2) == "$0.01"
    assert units.format_money(9_949, digits=2) == "$0.0099"
    assert units.format_money(-3_627, digits=2) == "-$0.0036"
    assert units.format_money(70, digits=2) == "$0.000070"
    assert units.format_money(1, digits=2) == "$0.000001"
    assert units.format_count(10**10) == "10B"
    assert units.format_count(1_300_000_000) == "1.3B"
    assert units.format_count(1_234_567_891, digits=3) == "1.23B"
    assert units.format_duration(194_400) == "2d 6h"
    assert units.format_duration(194_461, parts=2) == "2d 6h"
    assert units.format_duration(0) == "0s"
    assert units.format_bytes(80 * 10**9) == "80GB"
    assert units.format_bandwidth(400 * 10**9) == "400Gbps"


def test_prices_from_data_are_rounded_to_the_micro() -> None:
    assert units.micros_from_usd("0.1234565") == 123_456
    assert units.micros_from_usd(30.09784) == 30_097_840
    for bad in ("nan", "inf", "", "free", "1e40", "1e16"):
        with pytest.raises(InvalidValue, match="not a price"):
            units.micros_from_usd(bad)


def test_names() -> None:
    assert units.format_names([]) == ""
    assert units.format_names(["a", "b", "c"]) == "a, b, c"
    assert units.format_names(["a", "b", "c", "d"]) == "a, b, c and 1 more"
    assert units.format_names(["a", "b", "c"], 1) == "a and 2 more"


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (1.0, ">99%"),
        (0.991, ">99%"),
        (0.99, "99%"),
        (0.929, "92%"),
        (0.7999, "79%"),
        (0.29, "29%"),
        (0.01, "1%"),
        (0.0099, "<1%"),
        (0.0, "<1%"),
    ],
)
def test_chances_are_never_told_greater_than_they_are(chance: float, words: str) -> None:
    from tradewind.web.words import chance as on_a_page

    assert units.format_chance(chance) == words
    assert on_a_page(chance) == words.replace(">", "over ").replace("<", "under ")


@pytest.mark.parametrize(
    ("value", "words"), [(0.0, "0"), (0.00461, "0.0046"), (0.000099, "0.000099"), (0.1, "0.10")]
)
def test_two_digits_that_count(value: float, words: str) -> None:
    assert units.format_two_digits(value) == words
