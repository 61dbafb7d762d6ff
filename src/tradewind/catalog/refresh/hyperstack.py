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

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import InvalidValue, SourceFailed
from tradewind.units import Micros, micros_from_usd

_SPOT = "-spot"
_MOST_GPUS = 64


def fetch(context: Context) -> Iterator[Listing]:
    prices = _price_book(context, _ask(context, "pricebook"))
    answer = need(_ask(context, "core/flavors"), dict, "flavors")
    groups = need(answer.get("data"), list, "flavors.data")
    problem, usable = SourceFailed("Hyperstack lists no GPU that we know"), 0
    for number, group in enumerate(groups, start=1):
        context.progress(number, len(groups))
        for flavor in need(need(group, dict, "flavors.data[]").get("flavors"), list, "flavors"):
            try:
                listing = _listing(context, flavor, prices)
            except SourceFailed as error:  # one odd entry does not cost us the rest
                problem = error
                context.skip("malformed entry")
                continue
            if listing:
                usable += 1
                yield listing
    if not usable:
        raise problem


def _listing(context: Context, flavor: Any, prices: Mapping[str, Micros]) -> Listing | None:
    full_name = need(need(flavor, dict, "flavor").get("name"), str, "flavor.name")
    region = need(flavor.get("region_name"), str, f"{full_name}.region_name")
    gpu = need(flavor.get("gpu") or "", str, f"{full_name}.gpu")
    count = need(flavor.get("gpu_count"), int, f"{full_name}.gpu_count")
    in_stock = need(flavor.get("stock_available"), bool, f"{full_name}.stock_available")
    if not gpu or count <= 0:
        context.skip("CPU-only flavor")
        return None
    if not region or count > _MOST_GPUS:
        raise SourceFailed(f"{full_name}: {str(count)[:20]} GPUs in {region!r} cannot be")
    rate = prices.get(gpu)
    if not rate:
        context.skip(f"no price for {gpu!r}")
        return None
    name = full_name.removesuffix(_SPOT)
    chip = gpu.removesuffix(_SPOT).removesuffix("-NVLink")
    known = context.known.get(name)
    accelerator = known.accelerator if known else context.names.canonical(chip)
    if not accelerator:
        context.skip(f"unknown accelerator {chip!r}")
        return None
    price, spot = Micros(rate * count), gpu.endswith(_SPOT)
    return Listing(
        region=region,
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=count,
        vcpus=_amount(flavor.get("cpu")),
        memory_gb=_amount(flavor.get("ram")),
        local_nvme_gb=_amount(flavor.get("ephemeral")),
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
        try:
            price = micros_from_usd(row.get("value") if listed is None else listed)
        except InvalidValue:
            context.skip("malformed price")
            continue
        if price > 0:  # 0 is what is included, or not sold
            prices[name] = price
    if not prices:
        raise SourceFailed("the price book of Hyperstack has no price")
    return prices


def _ask(context: Context, path: str) -> Any:
    try:
        return context.http.get_json(
            f"{context.url}/v1/{path}",
            headers={"api_key": context.env["HYPERSTACK_API_KEY"].strip()},
        )
    except SourceFailed as error:
        if "HTTP 401" in error.message or "HTTP 403" in error.message:
            raise SourceFailed(error.message, hint="check HYPERSTACK_API_KEY") from None
        raise


def _amount(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9
    return float(value) if usable else None


SOURCE = Source(
    provider="hyperstack",
    url="https://infrahub-api.nexgencloud.com",
    fetch=fetch,
    describes="Hyperstack API v1 pricebook and flavors",
    markets=("on_demand", "spot"),
    credentials=("HYPERSTACK_API_KEY",),
    complete=True,
)
