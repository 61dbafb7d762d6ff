"""Scaleway: the instance types of every zone, their prices in EUR, and whether they are in stock.

`GET /instance/v1/zones/{zone}/products/servers?per_page=100&page=1`, no key → `{"servers": {name:
{"hourly_price" (EUR), "gpu", "gpu_info": {"gpu_name", "gpu_memory" (bytes)}, "mig_profile",
"ncpus", "ram" (bytes), "end_of_service"}}}`, and `…/products/servers/availability` → `{"servers":
{name: {"availability": "available" | "scarce" | "shortage"}}}`. The number of all types comes in a
header only, so pages are asked for until one is short.

Our rows are by region: its zones are taken together, in stock if one of them is, and at the highest
price should they differ. ecb.py makes dollars of its euros; without a rate there are no prices.
CPU-only types are left out: we have no row for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import Context, Listing, Source, as_price, need
from tradewind.catalog.refresh.ecb import dollars_per_euro

_ZONES = tuple(f"{region}-{n}" for region in ("fr-par", "nl-ams", "pl-waw") for n in (1, 2, 3))
_IN_STOCK = {"available": True, "scarce": True, "shortage": False}
_PER_PAGE = 100
_MOST_PAGES = 20
_GIB = 2**30


def fetch(context: Context) -> Iterator[Listing]:
    rate = dollars_per_euro(context)
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
    yield from found.values()


def _listing(
    context: Context, region: str, name: str, server: Any, rate: Decimal
) -> Listing | None:
    where = f"servers.{name}"
    spec = need(server, dict, where)
    count = need(spec.get("gpu") or 0, int, f"{where}.gpu")
    if count <= 0:
        return None
    if spec.get("end_of_service") or spec.get("mig_profile"):
        context.skip("end of service" if spec.get("end_of_service") else "a slice of a GPU")
        return None
    known = context.known.get(name)
    accelerator = known.accelerator if known else _accelerator(context, spec, where)
    if not accelerator:
        return None
    price = as_price(spec.get("hourly_price"), f"{where}.hourly_price", rate=rate)
    if price is None:
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


SOURCE = Source(
    provider="scaleway",
    url="https://api.scaleway.com",
    fetch=fetch,
    describes="Scaleway instance API, EUR at the ECB reference rate of the day",
    markets=("on_demand",),
    complete=True,
)
