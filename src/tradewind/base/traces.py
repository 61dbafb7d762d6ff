"""Measured series of spot capacity and prices, as run lengths: `VALUExCOUNT VALUExCOUNT …`.

One CSV row is one series; a value stands for COUNT ticks of `gap_seconds` each.
"""

from __future__ import annotations

from collections.abc import Mapping

from tradewind.base import csvfile
from tradewind.base.errors import InvalidValue

MOST_TICKS = 10_000_000
"""Of one series: sixteen weeks of seconds. More is a mistake, and would not fit the memory."""
LONGEST_GAP_S = 86400
_DIGITS = 18
"""Longer numbers are no counts, and Python refuses the longest of them."""


def text(cells: Mapping[str, str], name: str) -> str:
    found = (cells.get(name) or "").strip()
    if not found:
        raise InvalidValue(f"there is no {name}")
    return found


def gap_s(cells: Mapping[str, str], name: str) -> float:
    found = csvfile.number(cells, "gap_seconds")
    if not found:
        raise InvalidValue(f"gap_seconds of {name} is missing or 0")
    if found > LONGEST_GAP_S:
        raise InvalidValue(f"gap_seconds of {name} is {found:g}, which is more than a day")
    return found


def counts(cells: Mapping[str, str], name: str, nodes: float) -> list[tuple[int, int]]:
    """How many machines could be had, and for how many ticks."""
    found = []
    for piece in text(cells, "rle").split():
        value, x, times = piece.partition("x")
        if not (x and _is_count(value) and _is_count(times)):
            raise InvalidValue(f"rle of {name} has {piece[:40]!r}, which is not VALUExCOUNT")
        if int(value) > nodes or int(times) == 0:
            raise InvalidValue(f"rle of {name} has {piece!r} where {nodes:.0f} were tried")
        found.append((int(value), int(times)))
    _agrees(cells, name, sum(times for _, times in found))
    return found


def prices(cells: Mapping[str, str], name: str) -> list[tuple[float, int]]:
    """Dollars an hour, and for how many ticks."""
    found = []
    for piece in text(cells, "rle").split():
        value, x, times = piece.partition("x")
        if not (x and _is_count(times) and int(times)):
            raise InvalidValue(f"rle of {name} has {piece[:40]!r}, which is not PRICExCOUNT")
        price = csvfile.number({"price": value}, "price", most=1e6)
        if price is None:
            raise InvalidValue(f"rle of {name} has {piece[:40]!r}, which is not PRICExCOUNT")
        found.append((price, int(times)))
    _agrees(cells, name, sum(times for _, times in found))
    return found


def _is_count(text: str) -> bool:
    # Digits of any script pass isdigit, but not together with isascii.
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS


def _agrees(cells: Mapping[str, str], name: str, ticks: int) -> None:
    if ticks > MOST_TICKS:
        raise InvalidValue(f"rle of {name} has {ticks:,} ticks; at most {MOST_TICKS:,} can be read")
    said = csvfile.number(cells, "n_ticks")
    if said is not None and said != ticks:
        raise InvalidValue(f"rle of {name} has {ticks} ticks, and n_ticks is {said:.0f}")
