"""Shadeform, a broker: one call lists the machines of all its clouds, by region.

`GET /v1/instances/types` with the key in the header `X-API-KEY` → `{"instance_types": [{"cloud":
"hyperstack", "shade_instance_type": "A100_80Gx2", "hourly_price": 270, "configuration":
{"gpu_type", "num_gpus", "interconnect", "vram_per_gpu_in_gb", "vcpus", "memory_in_gb",
"storage_in_gb"}, "availability": [{"region", "available", "rental_type": "on_demand" or "spot",
"hourly_price": "1.50"}]}]}`; no pages. Not filtered by `available`, so sold-out types are listed.

Traps: the price of a type is whole cents, the spot price of a region is dollars in a string. A
region is listed twice where spot is offered; entries from before spot have no `rental_type`. Names
carry the cloud and the memory as the catalog writes them: `hyperstack_A100-80GBx2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import InvalidValue, SourceFailed
from tradewind.model import Market
from tradewind.units import Micros, micros_from_usd

_MICROS_PER_CENT = 10_000
_MEMORY = re.compile(r"(?<=\d)G(?=x\d|-|$)")  # 80G in A100-80G, A100-80Gx2, A100-80G-DGX
_MARKETS: dict[str, Market] = {"on_demand": "on_demand", "spot": "spot"}
_MOST_GPUS = 64


def fetch(context: Context) -> Iterator[Listing]:
    answer = need(_ask(context), dict, "answer")
    types = need(answer.get("instance_types"), list, "answer.instance_types")
    problem, usable = SourceFailed("Shadeform lists no GPU that we know"), 0
    for number, entry in enumerate(types, start=1):
        context.progress(number, len(types))
        try:
            listings = _listings(context, entry)
        except SourceFailed as error:  # one odd entry does not cost us the rest
            problem = error
            context.skip("malformed entry")
            continue
        usable += bool(listings)
        yield from listings
    if not usable:
        raise problem


def _listings(context: Context, entry: Any) -> list[Listing]:
    where = "instance_types[]"
    cloud = need(need(entry, dict, where).get("cloud"), str, f"{where}.cloud")
    shade = need(entry.get("shade_instance_type"), str, f"{where}.shade_instance_type")
    name = f"{cloud}_{_MEMORY.sub('GB', shade.replace('_', '-'))}"
    cents = need(entry.get("hourly_price"), int, f"{name}.hourly_price")
    machine = need(entry.get("configuration"), dict, f"{name}.configuration")
    gpus = need(machine.get("num_gpus"), int, f"{name}.num_gpus")
    gpu = need(machine.get("gpu_type") or "", str, f"{name}.gpu_type")
    if gpus > _MOST_GPUS:
        raise SourceFailed(f"{name}.num_gpus: {str(gpus)[:20]} GPUs cannot be")
    if gpus <= 0 or cents <= 0:
        context.skip("no price" if gpus > 0 else "CPU-only type")
        return []
    known = context.known.get(name)
    memory_gb = _amount(machine.get("vram_per_gpu_in_gb"))
    accelerator = known.accelerator if known else _accelerator(context, machine, gpu, memory_gb)
    if not accelerator:
        context.skip(f"unknown accelerator {gpu!r}")
        return []
    listings = []
    for place in need(entry.get("availability"), list, f"{name}.availability"):
        region = need(need(place, dict, f"{name}.availability[]").get("region"), str, "region")
        rental = need(place.get("rental_type", "on_demand"), str, f"{name}.{region}.rental_type")
        available = need(place.get("available"), bool, f"{name}.{region}.available")
        market = _MARKETS.get(rental)
        if market is None or not region:
            context.skip(f"rental type {rental!r}" if region else "no region")
            continue
        on_demand = Micros(cents * _MICROS_PER_CENT)
        spot = _dollars(place.get("hourly_price"), f"{name}.{region}") if market == "spot" else None
        if spot is not None and not 0 < spot < on_demand:
            context.skip("spot no cheaper than on-demand")
            continue
        listings.append(
            Listing(
                region=region,
                instance_type=name,
                accelerator=accelerator,
                accelerator_count=gpus,
                vcpus=_amount(machine.get("vcpus")),
                memory_gb=_amount(machine.get("memory_in_gb")),
                local_nvme_gb=_amount(machine.get("storage_in_gb")),
                on_demand=on_demand if market == "on_demand" else None,
                spot=spot,
                in_stock=available,
                stock_market=market,
            )
        )
    if not listings:
        context.skip("no region")
    return listings


def _accelerator(
    context: Context, machine: dict[str, Any], gpu: str, memory_gb: float | None
) -> str | None:
    """`gpu_type` may leave the form out (`H100`), the interconnect then tells it (`sxm5`)."""
    form = machine.get("interconnect")
    return context.names.canonical(f"{gpu} {form}", memory_gb) or context.names.canonical(
        gpu, memory_gb
    )


def _dollars(value: Any, where: str) -> Micros:
    try:
        return micros_from_usd(value)
    except InvalidValue as error:
        raise SourceFailed(f"{where}.hourly_price: {error.message}") from None


def _ask(context: Context) -> Any:
    try:
        return context.http.get_json(
            f"{context.url}/v1/instances/types",
            headers={"x-api-key": context.env["SHADEFORM_API_KEY"].strip()},
        )
    except SourceFailed as error:
        if "HTTP 401" in error.message or "HTTP 403" in error.message:
            raise SourceFailed(error.message, hint="check SHADEFORM_API_KEY") from None
        raise


def _amount(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9
    return float(value) if usable else None


SOURCE = Source(
    provider="shadeform",
    url="https://api.shadeform.ai",
    fetch=fetch,
    describes="Shadeform API v1 instances/types (reseller)",
    markets=("on_demand", "spot"),
    credentials=("SHADEFORM_API_KEY",),
    complete=True,
)
