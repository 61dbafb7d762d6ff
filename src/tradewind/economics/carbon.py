"""Energy and emissions of accelerators at work, by place: power draw × PUE × the grid's intensity.

The grid of a place is what its provider or its country publishes; where nobody does, it is taken
to be as dirty as nine of ten known ones are at most, and that is said. What making the machines
emitted, storage and networks are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tradewind.economics import facts

DRAW = (0.7, 0.85, 1.0)
"""Of an accelerator's rated power while it trains: low, likely, high. Assumed."""
UNRATED_W = 500.0
"""Of an accelerator whose power nobody publishes. Assumed."""


@dataclass(frozen=True, slots=True)
class Grid:
    g_per_kwh: float
    words: str
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Emitted:
    kwh: float
    kg: float
    kg_low: float
    kg_high: float
    grid: Grid


def grid(provider: str, region: str) -> Grid:
    unknown = "no grid is known there: as nine of ten known regions at most"
    return _grids().get((provider, region)) or Grid(_dirty(), "unknown", unknown)


@cache
def _grids() -> dict[tuple[str, str], Grid]:
    """By place, the first row that knows: a plan asks about every place there is."""
    found: dict[tuple[str, str], Grid] = {}
    for row in facts.table("electricity").where(kind="cloud_region"):
        grams = row.number("gco2_per_kwh")
        if grams is not None:
            words = f"{row['place']}, {row['year']}: {row['source']}"
            found.setdefault((row["provider"], row["region"]), Grid(grams, words, row["doubt"]))
    return found


@cache
def _dirty() -> float:
    known = sorted(
        row.number("gco2_per_kwh") or 0.0
        for row in facts.table("electricity").where(kind="cloud_region")
    )
    return known[int(0.9 * len(known))]


@cache
def pue() -> tuple[float, float, float]:
    """The best operator's, the median, and the industry's average of the facts."""
    rows = [
        value
        for row in facts.table("own").where(category="pue")
        if (value := row.number("typical")) is not None and value >= 1
    ]
    return min(rows), sorted(rows)[len(rows) // 2], max(rows)


@cache
def _host() -> tuple[float, float]:
    """What a server draws besides its accelerators' rated power, by that: the sum of the parts, and
    the maximum of the data sheet."""
    row = facts.table("own").one(category="server_power", item="DGX H100 / H200 maximum")
    rated = 8 * 700.0
    return ((row.number("low") or rated) / rated - 1, (row.number("high") or rated) / rated - 1)


@cache
def kilowatts(watts: float | None) -> tuple[float, float, float]:
    """Of one accelerator at work, with its share of machine and site: low, likely, high."""
    rated = (watts or UNRATED_W) / 1000
    least, most = _host()
    at_site = pue()
    return (
        rated * (DRAW[0] + least) * at_site[0],
        rated * (DRAW[1] + least) * at_site[1],
        rated * (DRAW[2] + most) * at_site[2],
    )


def emitted(provider: str, region: str, watts: float | None, accelerator_hours: float) -> Emitted:
    place = grid(provider, region)
    low, likely, high = (kw * accelerator_hours for kw in kilowatts(watts))
    grams = place.g_per_kwh
    return Emitted(likely, likely * grams / 1000, low * grams / 1000, high * grams / 1000, place)
