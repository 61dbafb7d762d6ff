"""Spot prices as EC2 tells them: the newest by type and zone, and how they went."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from statistics import median_low
from typing import Any

from msgspec import Struct

from tradewind.base.units import MICROS_PER_DOLLAR, Micros
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits import zones
from tradewind.providers.aws.troubles import explained

_LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
_MOST_PAGES = 200
_MOST_NAMES = 200
"""Values of one filter: EC2's own limit, and more types than any run has ways on."""
_DEAREST = 10_000
"""Dollars an hour. More is no price."""


class SpotPrice(Struct, frozen=True, kw_only=True):
    instance_type: str
    zone: str
    """Its id."""
    price: Micros
    """Micro-dollars an hour for one machine."""
    at_s: float
    """Since when, by EC2's clock, since 1970."""


def newest(
    account: Account, region: str, types: Collection[str], now: datetime
) -> dict[tuple[str, str], SpotPrice]:
    """By type and zone id. EC2 adds the price that held when the time asked for began, so an hour
    is enough to have one for every zone that has any."""
    found: dict[tuple[str, str], SpotPrice] = {}
    for each in _told(account, region, types, now - timedelta(hours=1)):
        key = each.instance_type, each.zone
        if key not in found or found[key].at_s <= each.at_s:
            found[key] = each
    return found


def of(
    told: Mapping[tuple[str, str], SpotPrice], instance_type: str, zones: Iterable[str]
) -> Micros | None:
    """Of one machine in any of these zones: the middle of what they ask."""
    found = [told[instance_type, zone].price for zone in zones if (instance_type, zone) in told]
    return median_low(found) if found else None


def history(
    account: Account, region: str, types: Collection[str], now: datetime, hours: float
) -> dict[tuple[str, str], list[SpotPrice]]:
    """The same over the last `hours`, oldest first; the first may be older."""
    return since(account, region, types, now - timedelta(hours=hours))


def since(
    account: Account, region: str, types: Collection[str], moment: datetime
) -> dict[tuple[str, str], list[SpotPrice]]:
    found: dict[tuple[str, str], list[SpotPrice]] = {}
    for each in _told(account, region, types, moment):
        found.setdefault((each.instance_type, each.zone), []).append(each)
    for prices in found.values():
        prices.sort(key=lambda price: price.at_s)
    return found


def _told(
    account: Account, region: str, types: Collection[str], since: datetime
) -> Iterator[SpotPrice]:
    if not types:
        return
    ids = {zone.name: zone.id for zone in zones.zones(account, region).values()}
    with explained(f"asking AWS for spot prices of {region}"):
        pages = (
            account.client("ec2", region)
            .get_paginator("describe_spot_price_history")
            .paginate(
                # By a filter: naming a type that there is not would fail for all.
                Filters=[{"Name": "instance-type", "Values": sorted(set(types))[:_MOST_NAMES]}],
                ProductDescriptions=["Linux/UNIX"],
                StartTime=since,
            )
        )
        for number, page in enumerate(pages):
            yield from filter(None, (_price(it, ids) for it in page["SpotPriceHistory"]))
            if number >= _MOST_PAGES:
                return


def _price(told: dict[str, Any], ids: dict[str, str]) -> SpotPrice | None:
    """None: of a local zone, of another system, or no price at all."""
    zone = told.get("AvailabilityZoneId") or ids.get(told.get("AvailabilityZone", ""))
    at = told.get("Timestamp")
    if not zone or not at or told.get("ProductDescription", _LINUX[0]) not in _LINUX:
        return None
    try:
        dollars = Decimal(told.get("SpotPrice", ""))
    except InvalidOperation:
        return None
    if not 0 < dollars < _DEAREST:
        return None
    return SpotPrice(
        instance_type=told["InstanceType"],
        zone=zone,
        price=Micros(max(round(dollars * MICROS_PER_DOLLAR), 1)),
        at_s=at.timestamp(),
    )
