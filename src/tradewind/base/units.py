"""Amounts as people write them, and as we keep them.

    money      integer micro-dollars   `$2,000`  `0.52`  `$1.2k`
    count      integer                 `10B`  `4M tokens`  `8,192`
    duration   integer seconds         `48h`  `2d 6h`  `90m`
    bytes      integer bytes           `80GB`  `1.5TiB`
    bandwidth  integer bits/second     `400Gbps`  `12.5 GB/s`

`parse_*` take text and refuse anything that is not plainly an amount of that kind; what they return
is exact. `format_*` print the shortest exact form, or with `digits=` one rounded for tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import NewType

from tradewind.base.errors import InvalidValue

Micros = NewType("Micros", int)
"""Micro-dollars. Money that is added up is always this."""

MICROS_PER_DOLLAR = 1_000_000

_NUMBER = r"([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+(?:_[0-9]+)*)?(\.[0-9]+)?"
_COUNT_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_BYTE_UNITS = {"b": 1} | {
    f"{letter}{suffix}": (1024 if suffix.startswith("i") else 1000) ** power
    for power, letter in enumerate("kmgtp", start=1)
    for suffix in ("", "b", "i", "ib")
}
# A small b is bits and a capital B bytes; `gb/s` might be either and is refused.
_RATE = re.compile(rf"{_NUMBER}\s*([kmgtKMGT]?)(bps|Bps|b/s|B/s|bits?/s|bytes?/s)")
_RATE_STEP = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION_WORDS = {
    word: unit
    for unit, words in {
        "w": "w week weeks",
        "d": "d day days",
        "h": "h hr hrs hour hours",
        "m": "m min mins minute minutes",
        "s": "s sec secs second seconds",
    }.items()
    for word in words.split()
}
_LARGEST = 10**24  # beyond any amount that means something here
_DEAREST = 10**9  # dollars an hour


# -- money ---------------------------------------------------------------------------------------


def parse_money(text: str) -> Micros:
    """`$2,000`, `2000`, `$0.000164`, `$1.5k`, `12 USD` → micro-dollars, exactly."""
    body = _clean(text, "an amount of money", "$2,000 or 0.52")
    body = re.sub(r"^(?:us)?\$\s*|^usd\s*|\s*(?:usd|dollars?)$", "", body, count=1)
    micros = _scaled(body, _COUNT_UNITS, MICROS_PER_DOLLAR, text, "an amount of money", "$2,000")
    # Looked at as text: arithmetic would already have rounded a very long fraction.
    fraction = re.search(r"\.([0-9]+)", body)
    if micros != micros.to_integral_value() or (fraction and len(fraction[1].rstrip("0")) > 12):
        raise InvalidValue(f"{text!r} is finer than a millionth of a dollar")
    return Micros(int(micros))


def micros_from_usd(usd: float | str | Decimal) -> Micros:
    """A price from a data source, rounded to the micro-dollar; NaN and words are refused."""
    try:
        amount = Decimal(str(usd).strip())
    except InvalidOperation:
        raise InvalidValue(f"{usd!r} is not a price") from None
    if not amount.is_finite() or abs(amount) > _DEAREST:
        raise InvalidValue(f"{usd!r} is not a price")
    return Micros(int((amount * MICROS_PER_DOLLAR).to_integral_value(ROUND_HALF_EVEN)))


def usd(micros: int) -> float:
    """Micro-dollars as a float of dollars, for output and for ratios, not for sums."""
    return micros / MICROS_PER_DOLLAR


def format_money(micros: int, *, digits: int | None = None) -> str:
    """`$2,000.00`, `$0.000164`; at least cents. With `digits`, that many decimals, but never a
    nought for what is more: `$0.0036`."""
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if digits is not None:
        if 0 < micros < MICROS_PER_DOLLAR // 10**digits:
            digits = 7 - len(str(micros)) + (micros >= 10)  # two that count
        return f"{sign}${Decimal(micros) / MICROS_PER_DOLLAR:,.{digits}f}"
    whole, fraction = divmod(micros, MICROS_PER_DOLLAR)
    decimals = f"{fraction:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}${whole:,}.{decimals}"


def format_two_digits(value: float) -> str:
    """`0.0046`, `0.10`: of what is less than one, two digits that count."""
    if value <= 0:
        return "0"
    return f"{value:.{max(1 - math.floor(math.log10(value)), 1)}f}"


# -- chances -------------------------------------------------------------------------------------


def format_chance(chance: float) -> str:
    """`86%`, never a promise: nearly certain is `>99%`, and none is told greater than it is, or 80%
    would stand for what misses a limit of 80%."""
    if chance > 0.99:
        return ">99%"
    return f"{math.floor(100 * chance + 1e-9)}%" if chance >= 0.01 else "<1%"


# -- counts --------------------------------------------------------------------------------------


def parse_count(text: str, *, noun: str = "") -> int:
    """`10B`, `4M tokens` (with `noun="tokens"`), `8,192` → an integer."""
    kind = f"a number of {noun}" if noun else "a number"
    body = _clean(text, kind, "10B or 8,192")
    if noun:
        body = re.sub(rf"\s*{re.escape(noun.rstrip('s'))}s?$", "", body)
    number = _scaled(body, _COUNT_UNITS, 1, text, kind, "10B or 8,192")
    if number != number.to_integral_value():
        raise InvalidValue(f"{text!r} is not a whole number")
    return int(number)


def format_count(number: int, *, digits: int | None = None) -> str:
    return _short(number, [(10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")], "", digits)


# -- durations -----------------------------------------------------------------------------------


def parse_duration(text: str) -> int:
    """`48h`, `2d 6h`, `1.5 hours`, `90m` → seconds. Larger units come first, each at most once."""
    example = "48h or 2d 6h"
    body = _clean(text, "a length of time", example)
    if not re.search(r"[a-z]", body):
        raise InvalidValue(
            f"{text!r} has no unit of time", hint=f"write {body}h, {body}m or {body}d"
        )
    parts = re.findall(rf"\s*{_NUMBER}\s*([a-z]+)\s*,?", body)
    if re.sub(rf"\s*{_NUMBER}\s*[a-z]+\s*,?", "", body):
        raise _not_a("a length of time", text, example)
    total, smallest = Decimal(0), None
    for whole, fraction, word in parts:
        unit = _DURATION_WORDS.get(word)
        if unit is None or not (whole or fraction):
            raise _not_a("a length of time", text, example)
        if smallest is not None and _SECONDS[unit] >= smallest:
            raise InvalidValue(
                f"{text!r} is not a length of time: units go from large to small, each once",
                hint=f"for example {example}",
            )
        smallest = _SECONDS[unit]
        total += Decimal(re.sub("[,_]", "", whole + fraction)) * smallest
    if total > _LARGEST:
        raise _not_a("a length of time", text, example)
    return int(total.to_integral_value(ROUND_HALF_EVEN))


def format_duration(seconds: int, *, parts: int | None = None) -> str:
    """`2d 6h`; with `parts=2` only the two largest units, rounded down."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    words = []
    for unit in "dhms":
        amount, seconds = divmod(seconds, _SECONDS[unit])
        if amount:
            words.append(f"{amount}{unit}")
    return sign + (" ".join(words[:parts]) or "0s")


# -- bytes and bits ------------------------------------------------------------------------------


def format_hours(hours: float) -> str:
    """`2d 19h`, `5h 40m`, `12s`: the two largest units, rounded."""
    if hours >= 24 * 365 * 10:
        return "decades"
    seconds = hours * 3600
    unit = 3600 if seconds >= 86_400 else 60 if seconds >= 60 else 1
    return format_duration(int(seconds / unit + 0.5) * unit, parts=2)


def parse_bytes(text: str) -> int:
    """`80GB` (decimal), `80GiB` (binary), `80G` → bytes. A bare number is refused."""
    return _sized(text, _BYTE_UNITS, "a size", "80GB or 1.5TiB")


def format_bytes(size: int, *, digits: int | None = None) -> str:
    steps = [(10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")]
    return _short(size, steps, "B", digits)


def parse_bandwidth(text: str) -> int:
    """`400Gbps`, `12.5 GB/s` → bits per second."""
    example = "400Gbps or 12.5GB/s"
    _clean(text, "a bandwidth", example)
    found = _RATE.fullmatch(text.strip())
    if not found or not (found[1] or found[2]):
        if re.fullmatch(_NUMBER, text.strip()):
            raise InvalidValue(f"{text!r} has no unit", hint=f"write a bandwidth like {example}")
        raise _not_a("a bandwidth", text, example)
    if found[4] == "b/s" and found[3].islower():
        raise InvalidValue(
            f"{text!r} might be bits or bytes", hint="write Gbps for bits, GB/s for bytes"
        )
    number = Decimal(re.sub("[,_]", "", (found[1] or "") + (found[2] or "")))
    number *= _RATE_STEP[found[3].lower()] * (8 if found[4][0] == "B" or "byte" in found[4] else 1)
    if number > _LARGEST:
        raise _not_a("a bandwidth", text, example)
    return int(number.to_integral_value(ROUND_HALF_EVEN))


def format_bandwidth(bits: int, *, digits: int | None = None) -> str:
    steps = [(10**12, "Tbps"), (10**9, "Gbps"), (10**6, "Mbps"), (10**3, "kbps")]
    return _short(bits, steps, "bps", digits)


# -- shared --------------------------------------------------------------------------------------


def format_names(names: Sequence[str], most: int = 3) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _clean(text: str, kind: str, example: str) -> str:
    body = text.strip().lower()
    if not body or len(body) > 64:
        raise _not_a(kind, text, example)
    if body.startswith("-"):
        raise InvalidValue(f"{text!r} is negative", hint=f"write {kind}, for example {example}")
    return body


def _scaled(
    body: str, units: dict[str, int], scale: int, text: str, kind: str, example: str
) -> Decimal:
    found = re.fullmatch(rf"{_NUMBER}\s*([a-z/]*)", body)
    if not found or not (found[1] or found[2]) or found[3] not in units:
        raise _not_a(kind, text, example)
    number = Decimal(re.sub("[,_]", "", (found[1] or "") + (found[2] or "")))
    number *= units[found[3]] * scale
    if number > _LARGEST:
        raise _not_a(kind, text, example)
    return number


def _sized(text: str, units: dict[str, int], kind: str, example: str) -> int:
    body = _clean(text, kind, example)
    if re.fullmatch(_NUMBER, body):
        raise InvalidValue(f"{text!r} has no unit", hint=f"write {kind} like {example}")
    return int(_scaled(body, units, 1, text, kind, example).to_integral_value(ROUND_HALF_EVEN))


def _short(number: int, steps: list[tuple[int, str]], rest: str, digits: int | None) -> str:
    """Largest unit that prints `number`; exactly, unless `digits` significant digits were asked."""
    sign, number = ("-", -number) if number < 0 else ("", number)
    for size, unit in steps:
        if number < size:
            continue
        value = Decimal(number) / size
        if digits is not None:
            places = max(0, digits - 1 - value.adjusted())
            return f"{sign}{_trim(f'{value:.{places}f}')}{unit}"
        if value * 1000 == int(value * 1000):
            return f"{sign}{_trim(f'{value:.3f}')}{unit}"
    return f"{sign}{number}{rest}"


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _not_a(kind: str, text: str, example: str) -> InvalidValue:
    shown = text if len(text) <= 40 else text[:40] + "…"
    return InvalidValue(f"{shown!r} is not {kind}", hint=f"for example {example}")
