"""Scaleway: the instance types of every zone, their prices in EUR, and whether they are in stock.

`GET /instance/v1/zones/{zone}/products/servers?per_page=100&page=1`, no key → `{"servers": {name:
{"hourly_price" (EUR), "gpu", "gpu_info": {"gpu_name", "gpu_memory" (bytes)}, "mig_profile",
"ncpus", "ram" (bytes), "end_of_service"}}}`, and `…/products/servers/availability` → `{"servers":
{name: {"availability": "available" | "scarce" | "shortage"}}}`. The number of all types comes in a
header only, so pages are asked for until one is short.

Our rows are by region: its zones are taken together, in stock if one of them is, and at the highest
price should they differ. USD are made with the European Central Bank's reference rate of the day,
`https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml` ($TRADEWIND_ECB_URL puts a mirror in
its place). Without that rate, or with an old one, there are no prices at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import InvalidValue, SourceFailed
from tradewind.units import Micros, micros_from_usd

_ZONES = tuple(f"{region}-{n}" for region in ("fr-par", "nl-ams", "pl-waw") for n in (1, 2, 3))
_ECB_URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
_RATE_DAY = re.compile(r"""\btime=['"](\d{4}-\d\d-\d\d)['"]""")
_RATE_USD = re.compile(r"""\bcurrency=['"]USD['"]\s+rate=['"](\d+(?:\.\d+)?)['"]""")
_OLDEST_RATE = timedelta(days=10)  # the bank rests on weekends and feasts, not for longer
_IN_STOCK = {"available": True, "scarce": True, "shortage": False}
_PER_PAGE = 100
_MOST_PAGES = 20
_GIB = 2**30


def fetch(context: Context) -> Iterator[Listing]:
    rate = _dollars_per_euro(context)
    found: dict[tuple[str, str], Listing] = {}
    for done, zone in enumerate(_ZONES, start=1):
        region = zone.rpartition("-")[0]
        stock = _stock(context, zone)
        for name, server in _servers(context, zone, "products/servers").items():
            listing = _listing(context, region, name, server, rate)
            if listing is None:
                continue
            listing = replace(listing, in_stock=stock.get(name))
            other = found.get((region, name))
            found[region, name] = _together(context, listing, other) if other else listing
        context.progress(done, len(_ZONES))
    if not found:
        raise SourceFailed(
            "Scaleway lists no machine with a GPU",
            hint="the source may have changed its format; the old prices stay in place",
        )
    yield from found.values()


def _listing(
    context: Context, region: str, name: str, server: Any, rate: Decimal
) -> Listing | None:
    where = f"servers.{name}"
    spec = need(server, dict, where)
    count = need(spec.get("gpu") or 0, int, f"{where}.gpu")
    if count <= 0:
        return None  # CPU-only: we have no row for one
    if spec.get("end_of_service") or spec.get("mig_profile"):
        context.skip("end of service" if spec.get("end_of_service") else "a slice of a GPU")
        return None
    known = context.known.get(name)
    accelerator = known.accelerator if known else _accelerator(context, spec, where)
    if not accelerator:
        return None
    price = _price(spec.get("hourly_price"), rate, f"{where}.hourly_price")
    if price <= 0:
        context.skip("price of zero")
        return None
    return Listing(
        region=region,
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=count,
        vcpus=need(spec.get("ncpus"), int, f"{where}.ncpus"),
        memory_gb=need(spec.get("ram"), int, f"{where}.ram") / _GIB,
        on_demand=price,
    )


def _accelerator(context: Context, spec: dict[str, Any], where: str) -> str | None:
    info = need(spec.get("gpu_info") or {}, dict, f"{where}.gpu_info")
    memory = need(info.get("gpu_memory") or 0, int, f"{where}.gpu_info.gpu_memory")
    accelerator = context.names.canonical(str(info.get("gpu_name")), memory / _GIB)
    if accelerator is None:
        context.skip(f"unknown accelerator {info.get('gpu_name')!r}")
    return accelerator


def _together(context: Context, one: Listing, other: Listing) -> Listing:
    """Two zones of a region as one."""
    if one.on_demand != other.on_demand:
        context.skip(f"the zones of {one.region} ask different prices for {one.instance_type}")
    dearer = max(one, other, key=lambda listing: listing.on_demand or 0)
    told = [listing.in_stock for listing in (one, other) if listing.in_stock is not None]
    return replace(dearer, in_stock=any(told) if told else None)


def _stock(context: Context, zone: str) -> dict[str, bool]:
    try:
        servers = _servers(context, zone, "products/servers/availability")
    except SourceFailed:
        context.skip(f"stock in {zone} not told")  # prices are worth having without it
        return {}
    told = {name: str(server.get("availability")) for name, server in servers.items()}
    return {name: _IN_STOCK[word] for name, word in told.items() if word in _IN_STOCK}


def _servers(context: Context, zone: str, path: str) -> dict[str, dict[str, Any]]:
    """Every instance type of a zone, by name."""
    found: dict[str, dict[str, Any]] = {}
    for page in range(1, _MOST_PAGES + 1):
        answer = context.http.get_json(
            f"{context.url}/instance/v1/zones/{zone}/{path}",
            query={"per_page": _PER_PAGE, "page": page},
        )
        where = f"{zone} {path}: servers"
        servers = need(need(answer, dict, "answer").get("servers"), dict, where)
        before = len(found)
        found |= {name: need(spec, dict, f"{where}.{name}") for name, spec in servers.items()}
        if len(servers) < _PER_PAGE:
            return found
        if len(found) == before:
            break  # the same page again
    raise SourceFailed(f"{zone} {path}: the pages do not end")


def _dollars_per_euro(context: Context) -> Decimal:
    url = context.env.get("TRADEWIND_ECB_URL") or _ECB_URL
    text = "".join(context.http.lines(url))
    day, rate = _RATE_DAY.search(text), _RATE_USD.search(text)
    if not day or not rate:
        raise SourceFailed(
            f"{url}: no reference rate of the US dollar in the answer",
            hint="Scaleway asks for EUR; its old prices stay in place",
        )
    dollars = Decimal(rate[1])
    try:
        age = context.today - date.fromisoformat(day[1])
    except ValueError:
        raise SourceFailed(f"{url}: {day[1]} is no date") from None
    if age > _OLDEST_RATE or not Decimal("0.5") < dollars < 2:
        raise SourceFailed(
            f"{url}: a rate of {dollars} USD of {day[1]} is not today's",
            hint="Scaleway asks for EUR; its old prices stay in place",
        )
    return dollars


def _price(euros: Any, rate: Decimal, where: str) -> Micros:
    try:
        return micros_from_usd(Decimal(str(need(euros, (int, float), where))) * rate)
    except InvalidValue:
        raise SourceFailed(f"{where}: {euros!r} is not a price") from None


SOURCE = Source(
    provider="scaleway",
    url="https://api.scaleway.com",
    fetch=fetch,
    describes="Scaleway instance API, EUR at the ECB reference rate of the day",
    markets=("on_demand",),
    complete=True,
)
