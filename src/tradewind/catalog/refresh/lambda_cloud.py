"""Lambda: one call lists every type with its price and the regions that have it in stock.

`GET /api/v1/instance-types` with the key as Bearer (Basic is accepted too) → `{"data": {name:
{"instance_type": {"name", "description", "gpu_description", "price_cents_per_hour", "specs":
{"vcpus", "memory_gib", "storage_gib", "gpus"}}, "regions_with_capacity_available": [{"name",
"description"}]}}}` (Cloud API 1.10). The price is in US cents for the whole machine and the same in
every region. A region without capacity is not named, so stock is known where there is some, and
everywhere when there is none at all. cloud.lambdalabs.com is the deprecated name of the host.
CPU-only types that we know are renewed; others are not collected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import (
    Context,
    Listing,
    Source,
    as_amount,
    as_gpu_count,
    each,
    need,
)

_MICROS_PER_CENT = 10_000


def fetch(context: Context) -> Iterator[Listing]:
    answer = context.http.get_json(
        f"{context.url}/api/v1/instance-types", headers=context.bearer("LAMBDA_API_KEY")
    )
    types = need(need(answer, dict, "answer").get("data"), dict, "answer.data")
    yield from each(context, types.items(), lambda entry: _listings(context, *entry))


def _listings(context: Context, name: str, entry: Any) -> list[Listing]:
    where = f"data.{name}"
    kind = need(need(entry, dict, where).get("instance_type"), dict, f"{where}.instance_type")
    specs = need(kind.get("specs"), dict, f"{where}.specs")
    cents = need(kind.get("price_cents_per_hour"), int, f"{where}.price_cents_per_hour")
    gpus = as_gpu_count(specs.get("gpus"), f"{where}.specs.gpus")
    if cents <= 0:
        context.skip("no price")
        return []
    if not gpus and name not in context.known:
        context.skip("CPU-only type")
        return []
    accelerator = _accelerator(context, name, str(kind.get("gpu_description"))) if gpus else ""
    if accelerator is None:
        context.skip(f"unknown accelerator {kind.get('gpu_description')!r}")
        return []

    def listing(region: str, in_stock: bool | None, only_known: bool = False) -> Listing:
        return Listing(
            region=region,
            instance_type=name,
            accelerator=accelerator or "",
            accelerator_count=gpus,
            vcpus=as_amount(specs.get("vcpus")),
            memory_gb=as_amount(specs.get("memory_gib")),
            local_nvme_gb=as_amount(specs.get("storage_gib")),
            on_demand=Micros(cents * _MICROS_PER_CENT),
            only_known=only_known,
            in_stock=in_stock,
        )

    try:
        stocked = need(entry.get("regions_with_capacity_available"), list, where)
        named = [need(need(it, dict, where).get("name"), str, where) for it in stocked]
    except SourceFailed:  # the price holds without it
        context.skip("stock not readable")
        return [listing("any", None)]
    regions = [region for region in named if region]
    everywhere = listing("any", None if regions else False, only_known=bool(regions))
    return [*(listing(region, True) for region in regions), everywhere]


def _accelerator(context: Context, name: str, description: str) -> str | None:
    """From `H100 (80 GB SXM5)`; some descriptions carry a form that our own name leaves out."""
    known = context.known.get(name)
    if known:
        return known.accelerator
    memory = re.search(r"(\d+) ?GB", description)
    memory_gb = float(memory[1]) if memory else None
    return context.names.canonical(
        re.sub(r"(\d) GB", r"\1GB", description), memory_gb
    ) or context.names.canonical(description.split(" (")[0], memory_gb)


SOURCE = Source(
    provider="lambda",
    url="https://cloud.lambda.ai",
    fetch=fetch,
    describes="Lambda API v1 instance-types",
    markets=("on_demand",),
    credentials=("LAMBDA_API_KEY",),
    complete=True,
)
