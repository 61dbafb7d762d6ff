"""Azure: the public Retail Prices API, one row for each meter.

`GET /api/retail/prices?$filter=…`, no key, up to 1,000 rows a page → `{"Items": [{"armSkuName",
"armRegionName", "skuName", "meterName", "productName", "retailPrice", "currencyCode",
"unitOfMeasure", "type", "reservationTerm", "isPrimaryMeterRegion", "effectiveStartDate",
"effectiveEndDate"}], "NextPageLink"}`.

Two questions cover what we list, over all regions at once: the N series, which is every machine
with an accelerator, and the CPU-only sizes we know. Rows tell nothing of the hardware, so a size we
do not know is counted and left out. Not `complete`: one malformed row must not take a size away.

Traps. A reservation is the total of its term under the unit "1 Hour". Windows hides as "Srs Win".
Rows of the past and of the future come too, and some whose time ends before it begins, mostly at
placeholder prices. Several meters may price one size; the primary one wins, then the newest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import Context, Listing, Source, as_price, each, need

_MACHINES = "serviceName eq 'Virtual Machines'"
_HOURS = {"1 Year": ("reserved_1y", 8_760), "3 Years": ("reserved_3y", 26_280)}
_MOST_PAGES = 1_000
_NAMES_PER_QUERY = 20  # keeps the address short enough for any proxy

# Of the prices of one size in one region on one market, the greatest of these is the one.
_Rank = tuple[bool, str, Micros]


def fetch(context: Context) -> Iterator[Listing]:
    found: dict[tuple[str, str], dict[str, _Rank]] = {}
    for place, market, rank in each(
        context, _rows(context), lambda row: _ranked(context, row), called="row"
    ):
        prices = found.setdefault(place, {})
        prices[market] = max(rank, prices.get(market, rank))
    for (size, region), prices in found.items():
        known = context.known[size]
        price = {market: rank[-1] for market, rank in prices.items()}
        yield Listing(
            region=region,
            instance_type=size,
            accelerator=known.accelerator,
            accelerator_count=known.accelerator_count,
            on_demand=price.get("on_demand"),
            spot=price.get("spot"),
            reserved_1y=price.get("reserved_1y"),
            reserved_3y=price.get("reserved_3y"),
        )


def _rows(context: Context) -> Iterator[Any]:
    for page, items in enumerate(_pages(context), start=1):
        yield from items
        context.progress(page, None)


def _pages(context: Context) -> Iterator[list[Any]]:
    yield from _follow(context, f"{_MACHINES} and startswith(armSkuName, 'Standard_N')")
    plain = sorted(name for name, kind in context.known.items() if not kind.accelerator)
    for start in range(0, len(plain), _NAMES_PER_QUERY):
        names = plain[start : start + _NAMES_PER_QUERY]
        either = " or ".join(f"armSkuName eq '{name}'" for name in names)
        yield from _follow(context, f"{_MACHINES} and ({either})")


def _follow(context: Context, wanted: str) -> Iterator[list[Any]]:
    """The pages of one answer. Of a link only the query counts: it is asked at our own address,
    so that a mirror stays the only one asked, and no answer can send us elsewhere."""
    address = f"{context.url}/api/retail/prices"
    query = urlencode({"$filter": wanted})
    asked: set[str] = set()
    while query:
        if query in asked or len(asked) == _MOST_PAGES:
            raise SourceFailed(f"{address}: the pages do not end (after {len(asked)} pages)")
        asked.add(query)
        answer = need(context.http.get_json(f"{address}?{query}"), dict, "answer")
        yield need(answer.get("Items"), list, "answer.Items")
        query = urlsplit(need(answer.get("NextPageLink") or "", str, "answer.NextPageLink")).query


def _ranked(context: Context, item: Any) -> Iterator[tuple[tuple[str, str], str, _Rank]]:
    """Size and region, market and price of a row, if it is one for us."""
    row = need(item, dict, "answer.Items[]")
    size, region = row.get("armSkuName"), row.get("armRegionName")
    if not isinstance(size, str) or not isinstance(region, str) or not size or not region:
        return context.skip("no size or no region")
    unwanted = _unwanted(context, row, size)
    if unwanted:
        return context.skip(unwanted)
    market, hours = ("spot" if "Spot" in str(row.get("skuName")) else "on_demand"), 1
    if row.get("type") == "Reservation":
        term = str(row.get("reservationTerm"))
        if term not in _HOURS:
            return context.skip(f"reserved for {term}")
        market, hours = _HOURS[term]
    where = f"answer.Items[] {size}.retailPrice"
    price = as_price(row.get("retailPrice"), where, hours=hours)
    if price is None:
        return context.skip("price of zero")
    rank = (row.get("isPrimaryMeterRegion") is True, str(row.get("effectiveStartDate")), price)
    yield (size, region.lower()), market, rank


def _unwanted(context: Context, row: dict[str, Any], size: str) -> str:
    """Why this row is no price of ours; empty if it is one."""
    product, meter = str(row.get("productName")), f"{row.get('skuName')} {row.get('meterName')}"
    start = str(row.get("effectiveStartDate") or "")[:10]
    end = str(row.get("effectiveEndDate") or "9999")[:10]
    if size not in context.known:
        return "promotion" if "Promo" in size else f"unknown size {size}"
    reasons = {
        "retired size": context.known[size].status == "retired",
        "Windows": " Win" in product,
        "Cloud Services": "Cloud Services" in product or "CloudServices" in product,
        "dedicated host": "Dedicated" in product,
        "Low Priority": "Low Priority" in meter,
        "promotion": "Promo" in size + meter + product,
        f"type {row.get('type')}": row.get("type") not in ("Consumption", "Reservation"),
        f"currency {row.get('currencyCode')}": row.get("currencyCode") != "USD",
        f"unit {row.get('unitOfMeasure')}": row.get("unitOfMeasure") != "1 Hour"
        and row.get("type") == "Consumption",
        "not in force today": not start <= context.today.isoformat() <= end,
    }
    return next((reason for reason, true in reasons.items() if true), "")


SOURCE = Source(
    provider="azure",
    url="https://prices.azure.com",
    fetch=fetch,
    describes="Azure Retail Prices API",
    markets=("on_demand", "spot", "reserved"),
)
