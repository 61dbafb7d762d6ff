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
from tradewind.model import Market

_MICROS_PER_CENT = 10_000
_MEMORY = re.compile(r"(?<=\d)G(?=x\d|-|$)")  # 80G in A100-80G, A100-80Gx2, A100-80G-DGX
_MARKETS: dict[str, Market] = {"on_demand": "on_demand", "spot": "spot"}


def fetch(context: Context) -> Iterator[Listing]:
    answer = context.http.get_json(
        f"{context.url}/v1/instances/types",
        headers={"x-api-key": context.key("SHADEFORM_API_KEY")},
    )
    types = need(need(answer, dict, "answer").get("instance_types"), list, "answer.instance_types")
    yield from each(context, types, lambda entry: _listings(context, entry))


def _listings(context: Context, entry: Any) -> list[Listing]:
    where = "instance_types[]"
    cloud = need(need(entry, dict, where).get("cloud"), str, f"{where}.cloud")
    shade = need(entry.get("shade_instance_type"), str, f"{where}.shade_instance_type")
    name = f"{cloud}_{_MEMORY.sub('GB', shade.replace('_', '-'))}"
    cents = need(entry.get("hourly_price"), int, f"{name}.hourly_price")
    machine = need(entry.get("configuration"), dict, f"{name}.configuration")
    gpus = as_gpu_count(machine.get("num_gpus"), f"{name}.num_gpus")
    gpu = need(machine.get("gpu_type") or "", str, f"{name}.gpu_type")
    if not gpus or cents <= 0:
        context.skip("no price" if gpus else "CPU-only type")
        return []
    known = context.known.get(name)
    memory_gb = as_amount(machine.get("vram_per_gpu_in_gb"))
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
        on_demand, spot = Micros(cents * _MICROS_PER_CENT), None
        if market == "spot":
            where = f"{name}.{region}.hourly_price"
            spot = as_price(place.get("hourly_price"), where, kind=(str, *NUMBER))
            if spot is None or spot >= on_demand:
                context.skip("spot no cheaper than on-demand")
                continue
        listings.append(
            Listing(
                region=region,
                instance_type=name,
                accelerator=accelerator,
                accelerator_count=gpus,
                vcpus=as_amount(machine.get("vcpus")),
                memory_gb=as_amount(machine.get("memory_in_gb")),
                local_nvme_gb=as_amount(machine.get("storage_in_gb")),
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


SOURCE = Source(
    provider="shadeform",
    url="https://api.shadeform.ai",
    fetch=fetch,
    describes="Shadeform API v1 instances/types (reseller)",
    markets=("on_demand", "spot"),
    credentials=("SHADEFORM_API_KEY",),
    complete=True,
)
