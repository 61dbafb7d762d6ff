"""GCP: the Cloud Billing Catalog prices parts; we add them up to machines.

`GET /v1/services/{service}/skus` with an API key → `{"skus": [{"description", "category":
{"resourceGroup", "usageType"}, "serviceRegions": [..], "pricingInfo": [{"pricingExpression":
{"usageUnit", "tieredRates": [{"unitPrice": {"currencyCode", "units", "nanos"}}]}}]}],
"nextPageToken"}`, 5000 to a page. `units` are whole dollars as text, `nanos` billionths.

Which SKU is which part, and which parts a machine has: gcp_machines.py. A machine is listed in a
region only with all its parts; without one of them it keeps its old price, and we say what was
missing. Memory is per GiB or per GB as the SKU says, local SSD per month (730 hours, as Google
bills). The list prices regions, it does not say which zones have the machine: zone stays open. It
also prices regions where a type is not sold: known rows are renewed, none is added, and what is not
listed may yet be sold, hence not `complete`.
TPUs v2 to v4 are in a service of their own, the newer ones among the machines.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros, micros_from_usd
from tradewind.catalog.refresh import gcp_machines
from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.catalog.refresh.gcp_machines import PARTS, Machine, Part, PriceOf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SERVICES = ("6F81-5844-456A", "E000-3F24-B8AA")  # Compute Engine, Cloud TPU
_PAGE_SIZE = 5000
_MOST_PAGES = 50  # about ten are usual
_GB_PER_GIB = Decimal(2**30) / Decimal(10**9)
# What to multiply the price of a SKU's unit by, to have the price of ours for an hour.
_FACTORS = {
    ("hour", "h"): Decimal(1),
    ("gib_hour", "GiBy.h"): Decimal(1),
    ("gib_hour", "GBy.h"): _GB_PER_GIB,
    ("gib_month", "GiBy.mo"): 1 / Decimal(730),
    ("gib_month", "GBy.mo"): _GB_PER_GIB / Decimal(730),
    ("gib_month", "GiBy.h"): Decimal(1),
}
_MARKETS: tuple[PriceOf, ...] = ("on_demand", "spot", "reserved_1y", "reserved_3y")

Prices = dict[tuple[str, PriceOf], dict[str, Decimal]]
"""Part and market → region → dollars an hour."""


def fetch(context: Context) -> Iterator[Listing]:
    prices: Prices = defaultdict(dict)
    for service in _SERVICES:
        for sku in _skus(context, service):
            _take(context, sku, prices)
    for machine in gcp_machines.machines(context.known.values()):
        billed = gcp_machines.parts(machine)
        if isinstance(billed, str):
            context.skip(f"{machine.name}: {billed}")
        else:
            yield from _listings(context, machine, billed, prices)


# -- SKUs to prices of parts ---------------------------------------------------------------------


def _skus(context: Context, service: str) -> Iterator[dict[str, Any]]:
    url = f"{context.url}/v1/services/{service}/skus"
    # In a header, where Google takes it too, the key stays out of the logs of proxies.
    headers = {"x-goog-api-key": context.key("GOOGLE_API_KEY")}
    token = ""
    for number in range(1, _MOST_PAGES + 1):
        query: dict[str, str | int] = {"pageSize": _PAGE_SIZE}
        if token:
            query["pageToken"] = token
        page = need(context.http.get_json(url, query=query, headers=headers), dict, "answer")
        skus = need(page.get("skus", []), list, "answer.skus")
        if not skus and number == 1:
            raise SourceFailed(f"{url}: there are no SKUs")
        yield from skus
        context.progress(number, None)
        before, token = token, need(page.get("nextPageToken") or "", str, "answer.nextPageToken")
        if not token:
            return
        if token == before:
            raise SourceFailed(f"{url}: page {number} names itself as the next page")
    raise SourceFailed(f"{url}: more than {_MOST_PAGES} pages")


def _take(context: Context, sku: object, prices: Prices) -> None:
    """Files the price of one SKU, if it is a part of ours."""
    fields: dict[str, Any] = need(sku, dict, "skus[]")
    description = need(fields.get("description"), str, "skus[].description")
    where = f"skus[{description}]"
    category = need(fields.get("category"), dict, f"{where}.category")
    usage_type = str(category.get("usageType"))
    found = gcp_machines.identify(description, usage_type)
    if not found:
        if category.get("resourceGroup") in ("GPU", "TPU"):
            chip = gcp_machines.plain_name(description)
            context.skip(
                f"unknown accelerator {chip!r}"
                if chip
                else "a GPU or TPU under terms that we do not list"
            )
        return
    dollars = _dollars(context, fields, PARTS[found[0]], where)
    if dollars is None:
        return
    regions = need(fields.get("serviceRegions"), list, f"{where}.serviceRegions")
    for region in regions:
        name = need(region, str, f"{where}.serviceRegions[]")
        old = prices[found].get(name)
        if old is not None and old != dollars:
            # Rather too dear than a price that nobody gets; and it must not hang on the order.
            context.skip("two prices for one part in one region: the higher is kept")
        prices[found][name] = max(dollars, old or dollars)


def _dollars(context: Context, fields: Mapping[str, Any], unit: str, where: str) -> Decimal | None:
    """What one of our units costs for an hour."""
    timeline = need(fields.get("pricingInfo"), list, f"{where}.pricingInfo")
    if not timeline:
        context.skip("SKU without a price")
        return None
    latest = need(timeline[-1], dict, f"{where}.pricingInfo[]")
    expression = need(latest.get("pricingExpression"), dict, f"{where}.pricingExpression")
    rates = need(expression.get("tieredRates"), list, f"{where}.tieredRates")
    if not rates:
        context.skip("SKU without a price")
        return None
    # Where there are tiers, the first is what is free each month.
    price = need(need(rates[-1], dict, where).get("unitPrice"), dict, f"{where}.unitPrice")
    if price.get("currencyCode", "USD") != "USD":
        context.skip(f"price in {price['currencyCode']}")
        return None
    factor = _FACTORS.get((unit, str(expression.get("usageUnit"))))
    if factor is None:
        context.skip(f"price per {expression.get('usageUnit')} where we expected {unit}")
        return None
    whole = str(need(price.get("units", "0"), (str, int), f"{where}.unitPrice.units"))
    nanos = need(price.get("nanos", 0), int, f"{where}.unitPrice.nanos")
    if not whole.isdecimal():
        raise SourceFailed(f"{where}.unitPrice.units: expected a whole number, got {whole[:40]!r}")
    dollars = (Decimal(whole) + Decimal(nanos) / 10**9) * factor
    if dollars <= 0:
        # Placeholders, above all of commitments: taken at its word, an A100 would be free.
        context.skip("price is zero")
        return None
    return dollars


# -- parts to machines ---------------------------------------------------------------------------


def _listings(
    context: Context, machine: Machine, billed: Sequence[Part], prices: Prices
) -> Iterator[Listing]:
    family = gcp_machines.family_of(machine.name)
    by_region: dict[str, dict[PriceOf, Micros]] = defaultdict(dict)
    for market in _MARKETS:
        if market == "on_demand" and family and not family.on_demand:
            context.skip(f"{machine.name}: not sold on demand")
            continue
        for region in prices.get((billed[0].name, market), ()):
            micros = _sum(context, machine, billed, prices, market, region)
            if micros is not None:
                by_region[region][market] = micros
    if not by_region:
        context.skip(f"{machine.name}: no region has the prices of its parts")
    for region, found in sorted(by_region.items()):
        yield Listing(
            only_known=True,
            region=region,
            instance_type=machine.name,
            accelerator=machine.accelerator,
            accelerator_count=machine.accelerator_count,
            vcpus=machine.vcpus,
            memory_gb=machine.memory_gb,
            local_nvme_gb=machine.local_nvme_gb,
            on_demand=found.get("on_demand"),
            spot=found.get("spot"),
            reserved_1y=found.get("reserved_1y"),
            reserved_3y=found.get("reserved_3y"),
        )


def _sum(
    context: Context,
    machine: Machine,
    billed: Sequence[Part],
    prices: Prices,
    market: PriceOf,
    region: str,
) -> Micros | None:
    total = Decimal(0)
    for part in billed:
        dollars = prices.get((part.name, market), {}).get(region)
        if dollars is None:
            context.skip(f"{machine.name}, {market}: a region has no price of {part.name}")
            return None
        total += dollars * Decimal(str(part.quantity))
    return micros_from_usd(total)


SOURCE = Source(
    provider="gcp",
    url="https://cloudbilling.googleapis.com",
    fetch=fetch,
    describes="Cloud Billing Catalog API, sum of the parts",
    markets=("on_demand", "spot", "reserved"),
    credentials=("GOOGLE_API_KEY",),
    key_needs="its project needs the Cloud Billing API switched on",
    refusals=(400, 401, 403),  # 400 is what Google says of a key that it does not know
)
