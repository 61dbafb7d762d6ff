"""Hyperstack: the flavors with their regions and stock, priced from the price book.

`GET /v1/core/flavors` → `{"status": true, "data": [{"gpu": "A100-80G-PCIe", "region_name",
"flavors": [{"name": "n3-A100x8", "gpu", "gpu_count", "cpu", "ram" (GB), "ephemeral" (GB),
"region_name": "CANADA-1", "stock_available"}]}]}` and `GET /v1/pricebook` → a bare `[{"name":
"A100-80G-PCIe", "value", "original_value", "discount_applied"}]`, both with the key in the header
`api_key`. Neither has pages.

The price book is dollars per hour of one GPU, by the very name that the flavor has; CPU, memory and
disk of a GPU machine are in it. `value` is what this account pays, `original_value` the list price
that the catalog holds. Interruptible machines are flavors of their own (`n3-A100x8-spot`, GPU
`A100-80G-PCIe-spot`): they become the spot price of the flavor without the ending. Flavors without
a GPU are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import (
    NUMBER,
    Context,
    Listing,
    Source,
    as_amount,
    as_gpu_count,
    as_price,
    each,
    need,
)

_SPOT = "-spot"


def fetch(context: Context) -> Iterator[Listing]:
    prices = _price_book(context, _get(context, "pricebook"))
    answer = need(_get(context, "core/flavors"), dict, "flavors")
    flavors = [
        flavor
        for group in need(answer.get("data"), list, "flavors.data")
        for flavor in need(need(group, dict, "flavors.data[]").get("flavors"), list, "flavors")
    ]
    yield from each(context, flavors, lambda flavor: _listings(context, flavor, prices))


def _get(context: Context, path: str) -> Any:
    key = context.key("HYPERSTACK_API_KEY")
    return context.http.get_json(f"{context.url}/v1/{path}", headers={"api_key": key})


def _listings(context: Context, flavor: Any, prices: Mapping[str, Micros]) -> Iterator[Listing]:
    """One, or none where the flavor is not for us."""
    full_name = need(need(flavor, dict, "flavor").get("name"), str, "flavor.name")
    region = need(flavor.get("region_name"), str, f"{full_name}.region_name")
    gpu = need(flavor.get("gpu") or "", str, f"{full_name}.gpu")
    count = as_gpu_count(flavor.get("gpu_count"), f"{full_name}.gpu_count")
    in_stock = need(flavor.get("stock_available"), bool, f"{full_name}.stock_available")
    if not gpu or not count:
        return context.skip("CPU-only flavor")
    if not region:
        raise SourceFailed(f"{full_name}: a region without a name")
    rate = prices.get(gpu)
    if not rate:
        return context.skip(f"no price for {gpu!r}")
    name = full_name.removesuffix(_SPOT)
    chip = gpu.removesuffix(_SPOT).removesuffix("-NVLink")
    known = context.known.get(name)
    accelerator = known.accelerator if known else context.names.canonical(chip)
    if not accelerator:
        return context.skip(f"unknown accelerator {chip!r}")
    price, spot = Micros(rate * count), gpu.endswith(_SPOT)
    yield Listing(
        region=region,
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=count,
        vcpus=as_amount(flavor.get("cpu")),
        memory_gb=as_amount(flavor.get("ram")),
        local_nvme_gb=as_amount(flavor.get("ephemeral")),
        on_demand=None if spot else price,
        spot=price if spot else None,
        in_stock=in_stock,
        stock_market="spot" if spot else "on_demand",
    )


def _price_book(context: Context, answer: Any) -> dict[str, Micros]:
    prices: dict[str, Micros] = {}
    for row in need(answer, list, "pricebook"):
        name = need(need(row, dict, "pricebook[]").get("name"), str, "pricebook[].name")
        listed = row.get("original_value")
        value = row.get("value") if listed is None else listed
        try:
            price = as_price(value, f"pricebook {name}", kind=(str, *NUMBER))
        except SourceFailed:
            context.skip("malformed price")
            continue
        if price:  # 0 is what is included, or not sold
            prices[name] = price
    if not prices:
        raise SourceFailed("the price book of Hyperstack has no price")
    return prices


SOURCE = Source(
    provider="hyperstack",
    url="https://infrahub-api.nexgencloud.com",
    fetch=fetch,
    describes="Hyperstack API v1 pricebook and flavors",
    markets=("on_demand", "spot"),
    credentials=("HYPERSTACK_API_KEY",),
    complete=True,
)
