"""Lambda: one call lists every type with its price and the regions that have it in stock.

`GET /api/v1/instance-types` → `{"data": {name: {"instance_type": {"price_cents_per_hour", "specs":
{"vcpus", "memory_gib", "storage_gib", "gpus"}, "description", "gpu_description"},
"regions_with_capacity_available": [{"name"}]}}}`. Prices are the same in every region.
"""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.units import Micros

_MICROS_PER_CENT = 10_000


def fetch(context: Context) -> Iterator[Listing]:
    answer = context.http.get_json(
        f"{context.url}/api/v1/instance-types",
        headers={"authorization": f"Bearer {context.env['LAMBDA_API_KEY']}"},
    )
    types = need(need(answer, dict, "answer").get("data"), dict, "answer.data")
    for number, (name, entry) in enumerate(types.items(), start=1):
        where = f"data.{name}"
        kind = need(need(entry, dict, where).get("instance_type"), dict, f"{where}.instance_type")
        specs = need(kind.get("specs"), dict, f"{where}.instance_type.specs")
        cents = need(kind.get("price_cents_per_hour"), int, f"{where}.price_cents_per_hour")
        gpus = need(specs.get("gpus", 0), int, f"{where}.specs.gpus")
        known = context.known.get(name)
        accelerator = known.accelerator if known else ""
        if gpus and not accelerator:
            accelerator = context.names.canonical(str(kind.get("gpu_description", ""))) or ""
            if not accelerator:
                context.skip(f"unknown accelerator {kind.get('gpu_description')!r}")
                continue
        for region in entry.get("regions_with_capacity_available") or ():
            yield _listing(str(region["name"]), name, accelerator, gpus, specs, cents, in_stock=True)
        yield _listing("any", name, accelerator, gpus, specs, cents)
        context.progress(number, len(types))


def _listing(
    region: str,
    name: str,
    accelerator: str,
    gpus: int,
    specs: dict[str, float],
    cents: int,
    *,
    in_stock: bool | None = None,
) -> Listing:
    return Listing(
        region=region,
        instance_type=name,
        accelerator=accelerator,
        accelerator_count=gpus,
        vcpus=specs.get("vcpus"),
        memory_gb=specs.get("memory_gib"),
        local_nvme_gb=specs.get("storage_gib"),
        on_demand=Micros(cents * _MICROS_PER_CENT),
        in_stock=in_stock,
    )


SOURCE = Source(
    provider="lambda",
    url="https://cloud.lambdalabs.com",
    fetch=fetch,
    describes="Lambda API v1 instance-types",
    markets=("on_demand",),
    credentials=("LAMBDA_API_KEY",),
    complete=True,
)
