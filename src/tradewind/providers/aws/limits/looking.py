"""One look at an account for many ways: every region at once, each in a thread of its own.

A region that fails, or takes too long, is unknown: nothing is held against what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct

from tradewind.base.errors import TradewindError
from tradewind.model.run import Way
from tradewind.providers.asking import within
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits import prices, quotas, zones
from tradewind.providers.aws.limits.prices import SpotPrice
from tradewind.providers.aws.limits.quotas import Key, Quota
from tradewind.providers.aws.limits.zones import TypeFacts, Zone


class Sight(Struct, kw_only=True):
    """What was learned of one region; None: nothing."""

    region: str
    zones: dict[str, Zone] | None = None
    offering: dict[str, frozenset[str]] | None = None
    facts: dict[str, TypeFacts] | None = None
    quotas: dict[Key, Quota] | None = None
    prices: dict[tuple[str, str], SpotPrice] | None = None
    warnings: list[str] = []


def look(
    account: Account, ways: Sequence[Way], now: datetime, patience_s: float
) -> dict[str, Sight]:
    """By region."""
    of_region: dict[str, list[Way]] = {}
    for way in ways:
        of_region.setdefault(way.region, []).append(way)
    told = within(
        patience_s,
        {name: partial(_seen, account, name, some, now) for name, some in of_region.items()},
    )
    for region in of_region:
        if region not in told:
            warning = f"{region} has not answered within {patience_s:g} s"
            told[region] = Sight(region=region, warnings=[warning])
    return told


def _seen(account: Account, region: str, ways: Sequence[Way], now: datetime) -> Sight:
    types = sorted({way.instance_type for way in ways})
    spot = sorted({way.instance_type for way in ways if way.market == "spot"})
    sight = Sight(region=region)
    parts: Mapping[str, Callable[[], Any]] = {
        "zones": lambda: zones.zones(account, region),
        "offering": lambda: zones.offering(account, region, types),
        "facts": lambda: zones.facts(account, region, types),
        "quotas": lambda: quotas.quotas(
            account, region, [(way.instance_type, way.market) for way in ways]
        ),
        "prices": lambda: prices.newest(account, region, spot, now) if spot else {},
    }
    for name, ask in parts.items():
        try:
            setattr(sight, name, ask())
        except TradewindError as error:
            sight.warnings.append(f"{region}: {error.message}")
            if name == "zones":  # where even that fails, nothing else will be told
                return sight
    for quota in (sight.quotas or {}).values():
        if quota.limit is None:
            sight.warnings.append(f"{region}: {quota.name} is not known: {quota.trouble}")
    return sight
