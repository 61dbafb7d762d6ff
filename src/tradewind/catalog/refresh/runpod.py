"""RunPod: one GraphQL call gives every GPU type with its four prices, a second one the stock.

`POST /graphql`, no key needed for either (RUNPOD_API_KEY is sent along if set) → `{"data":
{"gpuTypes": [{"id", "displayName", "memoryInGb", "secureCloud", "communityCloud", "securePrice",
"communityPrice", "secureSpotPrice", "communitySpotPrice", "maxGpuCount", ...}]}}` and `{"data":
{"dataCenters": [{"id", "listed", "stock8": [{"gpuTypeId", "available"}], ...}]}}`. Prices do not
depend on stock, so when the second call fails only the stock is missing.

Traps: prices are dollars per GPU, linear in the count. 0 and null mean "not offered"; so does any
price (often 0.50) under a cloud whose flag is false. Spot is now mostly equal to on-demand: that is
no spot. A data centre that does not name a GPU does not have it at all. Community stock cannot be
asked (the filter `secureCloud: false` answers null).

Names: SECURE types are named after RunPod's display name as SkyPilot does, COMMUNITY ones after our
own name of the chip. Data centres become their country (`EU-RO-1` → RO, `US-KS-2` → US), community
hosts `any-community`. RunPod's CPU pods are priced elsewhere and not listed, hence not `complete`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import NUMBER, Context, Listing, Source, as_price, each, need

_COUNTS = (1, 2, 4, 8)  # the catalog keeps powers of two; the price is linear in between
_PRICES = """query Prices { gpuTypes {
  id displayName memoryInGb secureCloud communityCloud
  securePrice communityPrice secureSpotPrice communitySpotPrice
  maxGpuCount maxGpuCountSecureCloud maxGpuCountCommunityCloud
} }"""
_STOCK_OF = "stock{0}: gpuAvailability(input: {{gpuCount: {0}, secureCloud: true}})"
_STOCK = "query Stock { dataCenters { id listed "
_STOCK += "".join(_STOCK_OF.format(n) + " { gpuTypeId available } " for n in _COUNTS) + "} }"
_SECURE_NAMES = {"A100-PCIe": "A100-80GB", "A100-SXM": "A100-80GB-SXM", "H100-PCIe": "H100"}

# (GPU, count) → country → is there stock
Stock = dict[tuple[str, int], dict[str, bool]]


def fetch(context: Context) -> Iterator[Listing]:
    gpus = need(_ask(context, _PRICES).get("gpuTypes"), list, "answer.data.gpuTypes")
    stock = _stock(context)
    yield from each(context, gpus, lambda gpu: _listings(context, gpu, stock))


def _listings(context: Context, gpu: Any, stock: Stock) -> list[Listing]:
    vendor_id = need(need(gpu, dict, "gpuTypes").get("id"), str, "gpuTypes.id")
    shown = need(gpu.get("displayName"), str, f"gpuTypes.{vendor_id}.displayName")
    base = shown.replace("RTX PRO ", "RTXPRO").replace("RTX ", "RTX").replace(" ", "-")
    base = _SECURE_NAMES.get(base, base)
    known = context.known.get(f"1x_{base}_SECURE")
    accelerator = known.accelerator if known else _accelerator(context, gpu)
    if accelerator is None or (not known and "MIG" in shown):
        # The fraction that a new slice is of its chip cannot be told from its name.
        context.skip(f"unknown accelerator {shown!r}")
        return []
    share = known.accelerator_count if known else 1.0
    listings = []
    for cloud, name in ("secure", base), ("community", accelerator if share == 1 else base):
        prices = _prices(context, gpu, cloud)
        if prices is None:
            continue
        for count in _counts(gpu, cloud):
            places = stock.get((vendor_id, count), {}) if cloud == "secure" else {}
            elsewhere = "any" if cloud == "secure" else "any-community"
            listings += [
                Listing(
                    region=region,
                    instance_type=f"{count}x_{name}_{cloud.upper()}",
                    accelerator=accelerator,
                    accelerator_count=share * count,
                    on_demand=Micros(prices[0] * count),
                    spot=Micros(prices[1] * count) if prices[1] else None,
                    only_known=bool(places) and region == "any",
                    in_stock=in_stock,
                )
                for region, in_stock in [*sorted(places.items()), (elsewhere, None)]
            ]
    return listings


def _prices(
    context: Context, gpu: dict[str, Any], cloud: str
) -> tuple[Micros, Micros | None] | None:
    """On-demand and spot of one GPU; None where that cloud does not offer it."""
    on_demand, spot = (
        as_price(gpu.get(field), f"gpuTypes.{gpu['id']}.{field}", kind=(*NUMBER, NoneType))
        for field in (f"{cloud}Price", f"{cloud}SpotPrice")
    )
    if gpu.get(f"{cloud}Cloud") is not True or not on_demand:
        context.skip(f"not offered in the {cloud} cloud")
        return None
    if spot and spot >= on_demand:
        context.skip("spot no cheaper than on-demand")
        spot = None
    return on_demand, spot


def _counts(gpu: dict[str, Any], cloud: str) -> list[int]:
    limits = gpu.get(f"maxGpuCount{cloud.title()}Cloud"), gpu.get("maxGpuCount")
    told = [n for n in limits if isinstance(n, int) and not isinstance(n, bool) and n > 0]
    return [count for count in _COUNTS if count <= (told[0] if told else 1)]


def _accelerator(context: Context, gpu: dict[str, Any]) -> str | None:
    memory = gpu.get("memoryInGb")
    memory_gb = memory if isinstance(memory, int | float) and 0 < memory < 1e6 else None
    # The id is the fuller name (`NVIDIA RTX PRO 6000 Blackwell Workstation Edition`), the display
    # name the plainer one (`B300` for `NVIDIA B300 SXM6 AC`).
    return context.names.canonical(gpu["id"], memory_gb) or context.names.canonical(
        gpu["displayName"], memory_gb
    )


def _stock(context: Context) -> Stock:
    stock: Stock = {}
    try:
        for centre in need(_ask(context, _STOCK).get("dataCenters"), list, "answer.dataCenters"):
            name = need(need(centre, dict, "dataCenters").get("id"), str, "dataCenters.id")
            area, place = [*name.split("-"), ""][:2]
            country = area if area in ("US", "CA") else place
            if centre.get("listed") is False or len(country) != 2:
                continue
            for count in _COUNTS:
                for row in need(centre.get(f"stock{count}") or [], list, f"{name}.stock{count}"):
                    gpu = need(need(row, dict, name).get("gpuTypeId"), str, f"{name}.gpuTypeId")
                    countries = stock.setdefault((gpu, count), {})
                    countries[country] = countries.get(country, False) or bool(row.get("available"))
    except SourceFailed:
        context.skip("stock not readable")
        return {}
    return stock


def _ask(context: Context, query: str) -> dict[str, Any]:
    answer = context.http.post_json(
        f"{context.url}/graphql", {"query": query}, headers=context.bearer("RUNPOD_API_KEY")
    )
    data = need(answer, dict, "answer").get("data")
    if data is None and answer.get("errors"):
        raise SourceFailed(f"RunPod refuses the query: {str(answer['errors'])[:200]}")
    asked: dict[str, Any] = need(data, dict, "answer.data")
    return asked


SOURCE = Source(
    provider="runpod",
    url="https://api.runpod.io",
    fetch=fetch,
    describes="RunPod GraphQL gpuTypes",
    markets=("on_demand", "spot"),
    optional_keys=("RUNPOD_API_KEY",),
)
