"""Prime Intellect, a broker: the offers that its clouds have in stock, page by page.

`GET /api/v1/availability/gpus?page=1&page_size=100`, Bearer key → `{"items": [{"cloudId",
"gpuType": "H100_80GB", "socket": "SXM5", "provider", "country": "FI", "dataCenter": "FIN-02",
"gpuCount", "vcpu": {"defaultCount"}, "memory": {"defaultCount"} (GB), "prices": {"onDemand",
"communityPrice", "currency"}, "security", "isSpot", "prepaidTime", "stockStatus"}],
"totalCount"}`. We count the pages ourselves, up to `totalCount`. Clusters (`/multi-node`) are not
asked: their prices are for several machines.

Traps: the price is of the whole machine without the disk. A spot machine is an offer of its own
with `isSpot`; one with `prepaidTime` is bought ahead. The API now and then answers with an empty
list that is not true, so an empty list is a failure. What is sold out is not listed, hence not
`complete`.

Names as in the catalog: `datacrunch__8xH100_80GB__176__1480`, region the country, zone the data
centre. RunPod's machines are left out: their CPU and memory, and so the name, change by the hour,
and RunPod is asked itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from types import NoneType
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import (
    NUMBER,
    Context,
    Listing,
    Source,
    as_gpu_count,
    as_price,
    as_size,
    each,
    need,
)

_PAGE = 100  # the most that is given
_MOST_PAGES = 50
_STOCKED = {
    "available": True, "high": True, "medium": True, "low": True,
    "unavailable": False, "out of stock": False, "out_of_stock": False,
}  # fmt: skip


def fetch(context: Context) -> Iterator[Listing]:
    best: dict[tuple[str, str, str, str], Listing] = {}
    for listing in each(context, _items(context), lambda item: _listings(context, item)):
        place = listing.instance_type, listing.region, listing.zone, listing.stock_market
        best[place] = _cheaper(best.get(place), listing)
    yield from best.values()


def _items(context: Context) -> Iterator[Any]:
    done = 0
    for page in range(1, _MOST_PAGES + 1):
        answer = need(
            context.http.get_json(
                f"{context.url}/api/v1/availability/gpus",
                query={"page": page, "page_size": _PAGE},
                headers=context.bearer("PRIME_API_KEY"),
            ),
            dict,
            "answer",
        )
        items = need(answer.get("items"), list, "answer.items")
        total = need(answer.get("totalCount"), int, "answer.totalCount")
        yield from items
        done += len(items)
        context.progress(done, total)
        if done >= total:
            return
        if not items:  # offers were taken while we read; a loop would not end
            context.skip("fewer offers than announced")
            return
    raise SourceFailed(f"the offers of Prime Intellect do not end (after {_MOST_PAGES} pages)")


def _listings(context: Context, item: Any) -> Iterator[Listing]:
    """One, or none where the offer is not for us."""
    cloud = need(need(item, dict, "items[]").get("provider"), str, "items[].provider")
    gpu = need(item.get("gpuType"), str, "items[].gpuType")
    count = as_gpu_count(item.get("gpuCount"), f"{cloud}.{gpu}.gpuCount")
    if cloud == "runpod" or gpu == "CPU_NODE" or not count:
        return context.skip("RunPod resold" if cloud == "runpod" else "CPU-only machine")
    where = f"{cloud}.{count}x{gpu}"
    country, centre = item.get("country"), item.get("dataCenter")
    price = _price(context, item, where)
    if price is None:
        return None
    if not (isinstance(country, str) and country and isinstance(centre, str) and centre):
        return context.skip("no place named")
    vcpus, memory_gb = _default(item, "vcpu", where), _default(item, "memory", where)
    name = f"{cloud}__{count}x{gpu}__{vcpus:g}__{memory_gb:g}"
    name += "__NVLINK" if "nvlink" in str(item.get("cloudId")).lower() else ""
    name += "__COMMUNITY" if item.get("security") == "community_cloud" else ""
    known = context.known.get(name)
    accelerator = known.accelerator if known else _accelerator(context, gpu, item.get("socket"))
    if not accelerator:
        return context.skip(f"unknown accelerator {gpu!r}")
    spot = item.get("isSpot") is True
    yield Listing(
        region=country,
        zone=centre,
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=count,
        vcpus=vcpus,
        memory_gb=memory_gb,
        on_demand=None if spot else price,
        spot=price if spot else None,
        in_stock=_STOCKED.get(str(item.get("stockStatus")).lower()),
        stock_market="spot" if spot else "on_demand",
    )


def _price(context: Context, item: dict[str, Any], where: str) -> Micros | None:
    prices = need(item.get("prices"), dict, f"{where}.prices")
    community = item.get("security") == "community_cloud"
    if prices.get("currency") != "USD":
        context.skip(f"price in {prices.get('currency')}")
    elif item.get("prepaidTime"):
        context.skip("sold ahead only")
    else:
        told = prices.get("communityPrice" if community else "onDemand")
        price = as_price(told, f"{where}.prices", kind=(*NUMBER, NoneType))
        if price is None:
            context.skip("no price")
        return price
    return None


def _default(item: dict[str, Any], part: str, where: str) -> float:
    block = need(item.get(part), dict, f"{where}.{part}")
    number = as_size(block.get("defaultCount"), f"{where}.{part}.defaultCount")
    if not number:
        raise SourceFailed(f"{where}.{part}.defaultCount: a machine has some")
    return number


def _accelerator(context: Context, gpu: str, socket: Any) -> str | None:
    """`gpuType` ends in the memory of one GPU; the socket tells PCIe from SXM."""
    memory = re.search(r"_(\d+)GB$", gpu)
    chip, memory_gb = (gpu[: memory.start()], float(memory[1])) if memory else (gpu, None)
    return context.names.canonical(f"{chip} {socket}", memory_gb) or context.names.canonical(
        chip, memory_gb
    )


def _cheaper(old: Listing | None, new: Listing) -> Listing:
    """Two offers of one name in one place: the cheaper price, and stock if either has some."""
    if old is None:
        return new
    prices = [price for price in (old.on_demand, old.spot) if price]
    first, second = (old, new) if min(prices) <= (new.on_demand or new.spot or 0) else (new, old)
    return replace(first, in_stock=first.in_stock or second.in_stock)


SOURCE = Source(
    provider="primeintellect",
    url="https://api.primeintellect.ai",
    fetch=fetch,
    describes="Prime Intellect API v1 availability (reseller)",
    markets=("on_demand", "spot"),
    credentials=("PRIME_API_KEY",),
    key_needs="it needs the permission Availability: Read",
)
