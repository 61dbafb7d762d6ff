"""Lambda: one call lists every type with its price and the regions that have it in stock.

`GET /api/v1/instance-types` with the key as Bearer (Basic is accepted too) → `{"data": {name:
{"instance_type": {"name", "description", "gpu_description", "price_cents_per_hour", "specs":
{"vcpus", "memory_gib", "storage_gib", "gpus"}}, "regions_with_capacity_available": [{"name",
"description"}]}}}` (Cloud API 1.10). The price is in US cents for the whole machine and the same in
every region. A region without capacity is not named, so stock is known where there is some, and
everywhere when there is none at all. cloud.lambdalabs.com is the deprecated name of the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import SourceFailed
from tradewind.units import Micros

_MICROS_PER_CENT = 10_000
_MOST_GPUS = 64


def fetch(context: Context) -> Iterator[Listing]:
    types = need(need(_ask(context), dict, "answer").get("data"), dict, "answer.data")
    problem, usable = SourceFailed("Lambda lists no machine that we know"), 0
    for number, (name, entry) in enumerate(types.items(), start=1):
        context.progress(number, len(types))
        try:
            listings = _listings(context, name, entry)
        except SourceFailed as error:  # one odd entry does not cost us the rest
            problem = error
            context.skip("malformed entry")
            continue
        usable += bool(listings)
        yield from listings
    if not usable:
        raise problem


def _ask(context: Context) -> Any:
    try:
        return context.http.get_json(
            f"{context.url}/api/v1/instance-types",
            headers={"authorization": f"Bearer {context.env['LAMBDA_API_KEY'].strip()}"},
        )
    except SourceFailed as error:
        if "HTTP 401" in error.message or "HTTP 403" in error.message:
            raise SourceFailed(error.message, hint="check LAMBDA_API_KEY") from None
        raise


def _listings(context: Context, name: str, entry: Any) -> list[Listing]:
    where = f"data.{name}"
    kind = need(need(entry, dict, where).get("instance_type"), dict, f"{where}.instance_type")
    specs = need(kind.get("specs"), dict, f"{where}.specs")
    cents = need(kind.get("price_cents_per_hour"), int, f"{where}.price_cents_per_hour")
    gpus = need(specs.get("gpus"), int, f"{where}.specs.gpus")
    if not 0 <= gpus <= _MOST_GPUS:
        raise SourceFailed(f"{where}.specs.gpus: {gpus} is no number of GPUs")
    if cents <= 0:
        context.skip("no price")
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
            vcpus=_amount(specs.get("vcpus")),
            memory_gb=_amount(specs.get("memory_gib")),
            local_nvme_gb=_amount(specs.get("storage_gib")),
            on_demand=Micros(cents * _MICROS_PER_CENT),
            only_known=only_known or not gpus,  # CPU machines are renewed, not collected
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


def _amount(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e9
    return float(value) if usable else None


SOURCE = Source(
    provider="lambda",
    url="https://cloud.lambda.ai",
    fetch=fetch,
    describes="Lambda API v1 instance-types",
    markets=("on_demand",),
    credentials=("LAMBDA_API_KEY",),
    complete=True,
)
