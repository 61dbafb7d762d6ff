from __future__ import annotations

from itertools import combinations

import pytest

from tests.catalog.small import REAL
from tradewind.base.errors import InvalidValue
from tradewind.catalog import places
from tradewind.model.areas import countries


def test_regions_are_in_cities_and_cities_in_countries() -> None:
    assert places.metro_of("aws", "eu-central-1") == places.metro_of("gcp", "europe-west3")
    assert places.metro_of("vast", "any") is None
    assert places.metro_of("own", "frankfurt") == "frankfurt"
    assert places.country_of("azure", "westeurope") == "NL"
    assert places.country_of("vast", "The Netherlands/NL/EU") == "NL"
    assert places.country_of("vast", "CA/NA") == "CA"
    assert places.country_of("runpod", "DE") == "DE"
    assert places.country_of("runpod", "any-community") == ""
    assert "CH" not in countries("EU")
    assert "DE" in countries("eu")
    assert not countries("us-east-1")


def test_no_region_is_in_two_cities_and_most_offers_have_one() -> None:
    globs = [glob for metro in places.metros().values() for glob in metro.regions]
    assert len(globs) == len(set(globs))
    columns = REAL.table.columns
    provider, region = columns["provider"], columns["region"]
    offers = list(zip(provider.codes, region.codes, strict=True))
    placed = sum(
        places.metro_of(provider.values[one], region.values[other]) is not None
        for one, other in offers
    )
    assert placed / len(offers) > 0.85


def test_round_trips_are_measured_or_by_distance_and_never_faster_than_light() -> None:
    near, far = places.round_trip("frankfurt", "paris"), places.round_trip("frankfurt", "sydney")
    assert near.measured
    assert near.seconds < 0.02 < 0.2 < far.seconds < 0.35
    assert places.round_trip("sydney", "frankfurt") == far
    assert not places.round_trip("nairobi", "lagos").measured
    for one, other in combinations(places.metros(), 2):
        km = places.distance_km(one, other)
        assert places.round_trip(one, other).seconds >= (km - 150) / 100_000


def test_by_distance_is_rarely_less_than_what_was_measured() -> None:
    pairs = [
        (one, other)
        for one, other in combinations(places.metros(), 2)
        if places.round_trip(one, other).measured and places.distance_km(one, other) > 300
    ]
    below = sum(
        places.NEAR_MS + places.MS_A_KM * places.distance_km(*pair)
        >= 1e3 * places.round_trip(*pair).seconds
        for pair in pairs
    )
    assert 0.75 < below / len(pairs) < 0.85


def test_names_are_cities_or_regions() -> None:
    assert places.named("New York") == "new-york"
    assert places.named("aws/eu-central-1") == "frankfurt"
    with pytest.raises(InvalidValue) as caught:
        places.named("frankfort")
    assert "frankfurt" in (caught.value.hint or "")
