"""Measured series of spot capacity and prices, as run lengths: `VALUExCOUNT VALUExCOUNT …`.

One CSV row is one series; a value stands for COUNT ticks of `gap_seconds` each.
"""

from __future__ import annotations

from collections.abc import Mapping

from tradewind import csvfile
from tradewind.errors import InvalidValue


def text(cells: Mapping[str, str], name: str) -> str:
    found = (cells.get(name) or "").strip()
    if not found:
        raise InvalidValue(f"there is no {name}")
    return found


def gap_s(cells: Mapping[str, str], name: str) -> float:
    found = csvfile.number(cells, "gap_seconds")
    if not found:
        raise InvalidValue(f"gap_seconds of {name} is missing or 0")
    return found


def counts(cells: Mapping[str, str], name: str, nodes: float) -> list[tuple[int, int]]:
    """How many machines could be had, and for how many ticks."""
    found = []
    for piece in text(cells, "rle").split():
        value, x, times = piece.partition("x")
        # Digits of any script pass isdigit, but not together with isascii.
        if not (x and (value + times).isascii() and value.isdigit() and times.isdigit()):
            raise InvalidValue(f"rle of {name} has {piece!r}, which is not VALUExCOUNT")
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
        if not (x and times.isascii() and times.isdigit() and int(times)):
            raise InvalidValue(f"rle of {name} has {piece!r}, which is not PRICExCOUNT")
        price = csvfile.number({"price": value}, "price", most=1e6)
        if price is None:
            raise InvalidValue(f"rle of {name} has {piece!r}, which is not PRICExCOUNT")
        found.append((price, int(times)))
    _agrees(cells, name, sum(times for _, times in found))
    return found


def _agrees(cells: Mapping[str, str], name: str, ticks: int) -> None:
    said = csvfile.number(cells, "n_ticks")
    if said is not None and said != ticks:
        raise InvalidValue(f"rle of {name} has {ticks} ticks, and n_ticks is {said:.0f}")
