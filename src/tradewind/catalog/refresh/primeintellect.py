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
from typing import Any

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import InvalidValue, SourceFailed
from tradewind.units import Micros, micros_from_usd

_PAGE = 100  # the most that is given
_MOST_PAGES = 50
_MOST_GPUS = 64
_STOCKED = {
    "available": True, "high": True, "medium": True, "low": True,
    "unavailable": False, "out of stock": False, "out_of_stock": False,
}  # fmt: skip


def fetch(context: Context) -> Iterator[Listing]:
    best: dict[tuple[str, str, str, str], Listing] = {}
    problem: SourceFailed | None = None
    for item in _items(context):
        try:
            listing = _listing(context, item)
        except SourceFailed as error:  # one odd entry does not cost us the rest
            problem = error
            context.skip("malformed entry")
            continue
        if listing:
            place = listing.instance_type, listing.region, listing.zone, listing.stock_market
            best[place] = _cheaper(best.get(place), listing)
    if not best:
        raise problem or SourceFailed(
            "Prime Intellect lists no GPU that we know", hint="it may be a passing fault; try again"
        )
    yield from best.values()


def _items(context: Context) -> Iterator[Any]:
    done = 0
    for page in range(1, _MOST_PAGES + 1):
        answer = need(_ask(context, page), dict, "answer")
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


def _listing(context: Context, item: Any) -> Listing | None:
    cloud = need(need(item, dict, "items[]").get("provider"), str, "items[].provider")
    gpu = need(item.get("gpuType"), str, "items[].gpuType")
    count = need(item.get("gpuCount"), int, f"{cloud}.{gpu}.gpuCount")
    if count > _MOST_GPUS:
        raise SourceFailed(f"{cloud}.{gpu}: {str(count)[:20]} GPUs cannot be")
    if cloud == "runpod" or gpu == "CPU_NODE" or count <= 0:
        context.skip("RunPod resold" if cloud == "runpod" else "CPU-only machine")
        return None
    where = f"{cloud}.{count}x{gpu}"
    country, centre = item.get("country"), item.get("dataCenter")
    price = _price(context, item, where)
    if price is None:
        return None
    if not (isinstance(country, str) and country and isinstance(centre, str) and centre):
        context.skip("no place named")
        return None
    vcpus, memory_gb = _default(item, "vcpu", where), _default(item, "memory", where)
    name = f"{cloud}__{count}x{gpu}__{vcpus:g}__{memory_gb:g}"
    name += "__NVLINK" if "nvlink" in str(item.get("cloudId")).lower() else ""
    name += "__COMMUNITY" if item.get("security") == "community_cloud" else ""
    known = context.known.get(name)
    accelerator = known.accelerator if known else _accelerator(context, gpu, item.get("socket"))
    if not accelerator:
        context.skip(f"unknown accelerator {gpu!r}")
        return None
    spot = item.get("isSpot") is True
    return Listing(
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
    amount = prices.get("communityPrice" if community else "onDemand")
    if prices.get("currency") != "USD":
        context.skip(f"price in {prices.get('currency')}")
    elif item.get("prepaidTime"):
        context.skip("sold ahead only")
    elif not amount:
        context.skip("no price")
    else:
        try:
            price = micros_from_usd(need(amount, (int, float), f"{where}.prices"))
        except InvalidValue as error:
            raise SourceFailed(f"{where}.prices: {error.message}") from None
        if price > 0:
            return price
        context.skip("no price")
    return None


def _default(item: dict[str, Any], part: str, where: str) -> float:
    block = need(item.get(part), dict, f"{where}.{part}")
    number: float = need(block.get("defaultCount"), (int, float), f"{where}.{part}.defaultCount")
    if not 0 < number < 1e9:
        raise SourceFailed(f"{where}.{part}.defaultCount: {number} is no size")
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


def _ask(context: Context, page: int) -> Any:
    try:
        return context.http.get_json(
            f"{context.url}/api/v1/availability/gpus",
            query={"page": page, "page_size": _PAGE},
            headers={"authorization": f"Bearer {context.env['PRIME_API_KEY'].strip()}"},
        )
    except SourceFailed as error:
        if "HTTP 401" in error.message or "HTTP 403" in error.message:
            raise SourceFailed(
                error.message,
                hint="check PRIME_API_KEY; it needs the permission Availability: Read",
            ) from None
        raise


SOURCE = Source(
    provider="primeintellect",
    url="https://api.primeintellect.ai",
    fetch=fetch,
    describes="Prime Intellect API v1 availability (reseller)",
    markets=("on_demand", "spot"),
    credentials=("PRIME_API_KEY",),
)
