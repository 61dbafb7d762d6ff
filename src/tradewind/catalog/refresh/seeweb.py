"""Seeweb: one call lists the plans and where they can be had. Prices are euros and do not say so.

`GET /ecs/v2/plans` with the token in the header `X-APITOKEN` → `{"status": "ok", "plans": [{"name":
"ECS1GPU7", "cpu": "8", "ram": "32768" (MiB), "disk": "500", "gpu": "1", "gpu_label": "L40s 48GB",
"hourly_price": 0.85, "windows": false, "available": true, "available_regions": [{"location":
"it-fr2"}]}]}`. Most numbers are strings.

Traps: `hourly_price` is the figure that the price page shows in euros (H200: "2.60 €"); dollars are
made by ecb.py. `available` means that the plan is still sold, `available_regions` where it may be
made; neither is stock. Windows plans are left out; plans without a GPU are renewed where we know
them, not collected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.base import (
    Context,
    Listing,
    Source,
    as_gpu_count,
    as_price,
    each,
    need,
)
from tradewind.catalog.refresh.ecb import dollars_per_euro

_MIB_PER_GIB = 1024
_LONGEST = 12  # digits of any size or price


def fetch(context: Context) -> Iterator[Listing]:
    rate = dollars_per_euro(context)
    answer = context.http.get_json(
        f"{context.url}/ecs/v2/plans", headers={"x-apitoken": context.key("SEEWEB_API_TOKEN")}
    )
    plans = need(need(answer, dict, "answer").get("plans"), list, "answer.plans")
    yield from each(context, plans, lambda plan: _listings(context, plan, rate))


def _listings(context: Context, plan: Any, rate: Decimal) -> list[Listing]:
    name = need(need(plan, dict, "plans[]").get("name"), str, "plans[].name")
    gpus = as_gpu_count(int(_number(plan.get("gpu") or 0, f"{name}.gpu")), f"{name}.gpu")
    where = f"{name}.hourly_price"
    price = as_price(_number(plan.get("hourly_price"), where), where, kind=Decimal, rate=rate)
    regions = need(plan.get("available_regions") or [], list, f"{name}.available_regions")
    places = {
        need(need(region, dict, name).get("location"), str, f"{name}.location").strip()
        for region in regions
    }
    if plan.get("available") is False:
        context.skip("plan no longer sold")
        return []
    if plan.get("windows") is True:
        context.skip("Windows")
        return []
    if price is None:
        context.skip("no price")
        return []
    if not gpus and name not in context.known:
        context.skip("CPU-only plan")
        return []
    known = context.known.get(name)
    accelerator = known.accelerator if known else _accelerator(context, plan.get("gpu_label"))
    if gpus and not accelerator:
        context.skip(f"unknown accelerator {plan.get('gpu_label')!r}")
        return []
    return [
        Listing(
            region=region,
            instance_type=name,
            accelerator=(accelerator or "") if gpus else "",
            accelerator_count=gpus,
            vcpus=float(_number(plan.get("cpu"), f"{name}.cpu")) or None,
            memory_gb=float(_number(plan.get("ram"), f"{name}.ram") / _MIB_PER_GIB) or None,
            on_demand=price,
        )
        # A plan that names no region is still sold: the price holds where we know it.
        for region in sorted(places - {""}) or ["any"]
    ]


def _accelerator(context: Context, label: Any) -> str | None:
    """From `L40s 48GB`. H100 and A100 do not say their form and are then left out."""
    memory = re.search(r"(\d+) ?GB", str(label))
    memory_gb = float(memory[1]) if memory else None
    return context.names.canonical(re.sub(r" ?\d+ ?GB", "", str(label)), memory_gb)


def _number(value: Any, where: str) -> Decimal:
    found = re.fullmatch(r"\d+(\.\d+)?", str(value).strip())
    if isinstance(value, bool) or not found or len(found[0]) > _LONGEST:
        raise SourceFailed(f"{where}: expected a number, got {str(value)[:60]!r}")
    return Decimal(found[0])


SOURCE = Source(
    provider="seeweb",
    url="https://api.seeweb.it",
    fetch=fetch,
    describes="Seeweb API v2 plans, EUR at the ECB reference rate of the day",
    markets=("on_demand",),
    credentials=("SEEWEB_API_TOKEN",),
    complete=True,
)
