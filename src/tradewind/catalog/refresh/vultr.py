"""Vultr: cloud and bare-metal plans with GPUs. No key.

`GET /v2/plans?type=all` → `{"plans": […], "meta": {"links": {"next": cursor}}}` and `GET
/v2/plans-metal` → `{"plans_metal": […], …}`, each plan `{"id", "hourly_cost", "deploy_ondemand",
"hourly_cost_preemptible", "deploy_preemptible", "locations", "location_cost", "gpu_type",
"gpu_count", "gpu_vram_gb", "vcpu_count" or "cpu_threads", "ram" (MiB), "disk" (GB),
"disk_count"}`. The next page is named by a cursor, not by a link.

`type=all`, because dedicated GPU machines (`vdm`) are not among the cloud GPUs (`vcg`).

Traps. A plan may be a slice of a GPU: `gpu_count` is then "1/8", or missing, and the memory tells.
Dedicated and bare-metal plans tell the GPU in their id only (`vbm-…-8-mi300x-gpu`,
`vcg-h100-216c-1914gb-640vram`). A preemptible price stands even where `deploy_preemptible` is false
and none is sold. `location_cost` has other prices for some places, and is `[]` when there are none.
`locations` may hold an empty name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import Context, Listing, Source, as_price, as_size, need

# Memory of a whole GPU as Vultr sells it, for plans that tell their memory but not their count.
_MEMORY_GB = {
    "A16": 16, "A40": 48, "A100": 80, "L40S": 48, "H100": 80, "H200": 141, "GH200": 96,
    "B200": 192, "MI300X": 192, "MI325X": 256, "MI355X": 288,
}  # fmt: skip
# Vultr's H100 come as HGX boards of eight; the plan of the L40S machine says l40.
_MEANT = {"H100": "H100-SXM", "L40": "L40S"}
_METAL = re.compile(r"vbm-\d+c-\d+gb-(?:(?P<count>\d+)-)?(?P<chip>\w+)-gpu")
_CLOUD = re.compile(r"vcg-(?P<chip>\w+)-.*?(?P<memory>\d+)vram")
_COUNTS = (1, 2, 4, 8, 16)
_MOST_PAGES = 50


def fetch(context: Context) -> Iterator[Listing]:
    done = 0
    for path, key in (("plans", "plans"), ("plans-metal", "plans_metal")):
        for plan in _plans(context, path, key):
            done += 1
            yield from _listings(context, plan)
            context.progress(done, None)


def _plans(context: Context, path: str, key: str) -> Iterator[dict[str, Any]]:
    query: dict[str, str | int] = {"per_page": 500}
    if path == "plans":
        query["type"] = "all"
    seen = set[str]()
    while True:
        answer = need(
            context.http.get_json(f"{context.url}/v2/{path}", query=query), dict, "answer"
        )
        for plan in need(answer.get(key), list, f"answer.{key}"):
            yield need(plan, dict, f"answer.{key}[]")
        meta = need(answer.get("meta") or {}, dict, "answer.meta")
        links = need(meta.get("links") or {}, dict, "answer.meta.links")
        cursor = need(links.get("next") or "", str, "answer.meta.links.next")
        if not cursor:
            return
        if cursor in seen or len(seen) == _MOST_PAGES:
            raise SourceFailed(f"{path}: the pages do not end (after {len(seen) + 1} pages)")
        seen.add(cursor)
        query["cursor"] = cursor


def _listings(context: Context, plan: dict[str, Any]) -> Iterator[Listing]:
    name = need(plan.get("id"), str, "plans[].id")
    where = f"plans[] {name}"
    ided = _METAL.fullmatch(name) or _CLOUD.fullmatch(name)
    told = need(plan.get("gpu_type") or "", str, f"{where}.gpu_type").partition("_")[2]
    chip = told or (ided["chip"].upper() if ided else "")
    if not chip:
        return  # a CPU-only plan: we have no row for one, and there are hundreds
    chip = _MEANT.get(chip, chip)
    whole_gb = _MEMORY_GB.get(re.split("[_-]", chip)[0])
    accelerator = context.names.canonical(chip, whole_gb)
    if accelerator is None:
        return context.skip(f"unknown accelerator {chip!r}")
    count = _count(plan, ided, whole_gb, where)
    if count is None:
        return context.skip(f"unknown number of GPUs in {name}")
    locations = need(plan.get("locations"), list, f"{where}.locations")
    if not locations:
        return context.skip("sold nowhere now")
    if plan.get("deploy_ondemand") is False and plan.get("deploy_preemptible") is not True:
        return context.skip("closed to new machines")
    for region in locations:
        if not need(region, str, f"{where}.locations[]"):
            context.skip("a location without a name")
            continue
        on_demand, spot = _prices(context, plan, region, where)
        if on_demand is None and spot is None:
            continue
        yield Listing(
            region=region,
            instance_type=name,
            accelerator=accelerator,
            accelerator_count=count,
            vcpus=_number(plan, "vcpu_count", where) or _number(plan, "cpu_threads", where),
            memory_gb=(_number(plan, "ram", where) or 0) / 1024 or None,
            local_nvme_gb=(_number(plan, "disk", where) or 0)
            * (_number(plan, "disk_count", where) or 1)
            or None,
            on_demand=on_demand,
            spot=spot,
        )


def _count(
    plan: dict[str, Any], ided: re.Match[str] | None, whole_gb: int | None, where: str
) -> float | None:
    """GPUs, or the part of one, in a plan. None where Vultr's own figures do not agree: the memory
    in the id of the MI325X machine makes six of its eight."""
    told = re.fullmatch(r"(\d+)(?:/([1-9]\d*))?", str(plan.get("gpu_count") or ""))
    if told:
        return int(told[1]) / int(told[2] or 1) or None
    in_id = ided.groupdict() if ided else {}
    if "count" in in_id:
        return int(in_id["count"] or 1)
    memory = _number(plan, "gpu_vram_gb", where) or float(in_id.get("memory") or 0)
    if not whole_gb or not memory:
        return None
    count = memory / whole_gb
    return count if count < 1 or count in _COUNTS else None


def _prices(
    context: Context, plan: dict[str, Any], region: str, where: str
) -> tuple[Micros | None, Micros | None]:
    """What it costs there on demand and preemptible, as far as it is sold so."""
    costs = plan.get("location_cost")
    here = costs.get(region) if isinstance(costs, dict) else None
    cost = need(here or plan, dict, f"{where}.location_cost")
    found: list[Micros | None] = []
    for field, sold in (
        ("hourly_cost", plan.get("deploy_ondemand") is not False),
        ("hourly_cost_preemptible", plan.get("deploy_preemptible") is True),
    ):
        found.append(as_price(cost.get(field), f"{where}.{field}") if sold else None)
        if sold and found[-1] is None:
            context.skip("price of zero")
    return found[0], found[1]


def _number(plan: dict[str, Any], field: str, where: str) -> float | None:
    value = plan.get(field)
    return None if value is None else as_size(value, f"{where}.{field}")


SOURCE = Source(
    provider="vultr",
    url="https://api.vultr.com",
    fetch=fetch,
    describes="Vultr API v2 plans",
    markets=("on_demand", "spot"),
    complete=True,
)
