"""Where regions are, and how long a packet takes from one city to another and back. Pure, but for
its tables.

`data/metros.csv`: a city a row, its country, where it is to a tenth of a degree, and the regions
there, as `provider/region` with globs; which region is in which city is what providers say of
themselves, from memory. `data/round_trips.csv`: between two cities, medians over clouds that
measured (tools/build_latency.py). Where nobody measured, distance says it: `NEAR_MS`, and as many
milliseconds a kilometre as eight of ten measured pairs stay below.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from math import asin, cos, radians, sin, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.model.areas import AREAS, countries

if TYPE_CHECKING:
    from tradewind.model import Limits

_DATA = Path(__file__).parent / "data"
METROS, ROUND_TRIPS = _DATA / "metros.csv", _DATA / "round_trips.csv"
NEAR_MS = 3.0
"""Within a city, from door to door of two clouds."""
MS_A_KM = 0.0212
_EARTH_KM = 6371.0
# A region that is a country, or names one: `DE`, `France/FR/EU`, `CA/NA`.
_COUNTRY = re.compile(r"(?:[^/]+/)?([A-Z]{2})/(?:NA|SA|EU|AS|AF|OC)|([A-Z]{2})")
# And one that begins with its name: `us-east-2`, `CANADA-1`. `eu` and `ap` are no countries.
_NAMED = {"us": "US", "usa": "US", "canada": "CA", "korea": "KR", "norway": "NO"}


class Metro(NamedTuple):
    name: str
    country: str
    lat: float
    lon: float
    regions: tuple[str, ...]


class RoundTrip(NamedTuple):
    seconds: float
    measured: bool


@cache
def metros() -> dict[str, Metro]:
    found = {}
    for line, row in csvfile.rows(METROS):
        try:
            lat, lon = float(row["lat"]), float(row["lon"])
        except ValueError:
            raise BadFile(f"{METROS}:{line}: lat and lon are numbers") from None
        found[row["metro"]] = Metro(
            row["metro"], row["country"], lat, lon, tuple(row["regions"].split())
        )
    return found


def named(text: str) -> str:
    """The city of `Frankfurt`, `new york` or `aws/eu-central-1`."""
    name = text.strip().lower().replace(" ", "-").replace("_", "-")
    if name in metros():
        return name
    provider, slash, region = text.strip().partition("/")
    found = metro_of(provider, region) if slash else None
    if found is None:
        from difflib import get_close_matches

        near = get_close_matches(name, metros(), n=3)
        listed = ", ".join(near or metros())
        raise InvalidValue(f"{text!r} is no city that we know", hint=f"for example {listed}, "
                           "or a cloud's region: aws/eu-central-1")  # fmt: skip
    return found


@cache
def metro_of(provider: str, region: str) -> str | None:
    """None where it is not known; a region that is called like a city is there."""
    place = f"{provider}/{region}".lower()
    if region.lower() in metros():
        return region.lower()
    for metro in metros().values():
        if any(fnmatchcase(place, glob) for glob in metro.regions):
            return metro.name
    return None


@cache
def country_of(provider: str, region: str) -> str:
    """Two letters; empty where it is not known."""
    metro = metro_of(provider, region)
    if metro is not None:
        return metros()[metro].country
    found = _COUNTRY.fullmatch(region)
    if found and not (found[2] and countries(found[2]) != {found[2]}):
        return found[1] or found[2]
    return _NAMED.get(re.split("[-_]", region.lower())[0], "")


def allows(limits: Limits, provider: str, region: str) -> bool:
    return limits.allows(provider, region, country_of(provider, region))


@cache
def known_countries() -> tuple[str, ...]:
    return tuple(sorted({metro.country for metro in metros().values()} | AREAS["EU"]))


def round_trip(one: str, other: str) -> RoundTrip:
    known = _round_trips().get((min(one, other), max(one, other)))
    if known is not None:
        return RoundTrip(known, True)
    return RoundTrip((NEAR_MS + MS_A_KM * distance_km(one, other)) / 1e3, False)


@cache
def _round_trips() -> dict[tuple[str, str], float]:
    found = {}
    for line, row in csvfile.rows(ROUND_TRIPS):
        ms = csvfile.number(row, "rtt_ms", most=2000)
        if ms is None or not {row["metro_a"], row["metro_b"]} <= set(metros()):
            raise BadFile(f"{ROUND_TRIPS}:{line}: two cities and rtt_ms")
        found[row["metro_a"], row["metro_b"]] = ms / 1e3
    return found


def distance_km(one: str, other: str) -> float:
    a, b = metros()[one], metros()[other]
    up, over = radians(b.lat - a.lat), radians(b.lon - a.lon)
    half = sin(up / 2) ** 2 + cos(radians(a.lat)) * cos(radians(b.lat)) * sin(over / 2) ** 2
    return 2 * _EARTH_KM * asin(sqrt(half))
