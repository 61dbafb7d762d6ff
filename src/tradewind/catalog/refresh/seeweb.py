"""Seeweb: one call lists the plans and where they can be had. Prices are euros and do not say so.

`GET /ecs/v2/plans` with the token in the header `X-APITOKEN` → `{"status": "ok", "plans": [{"name":
"ECS1GPU7", "cpu": "8", "ram": "32768" (MiB), "disk": "500", "gpu": "1", "gpu_label": "L40s 48GB",
"hourly_price": 0.85, "windows": false, "available": true, "available_regions": [{"location":
"it-fr2"}]}]}`. Most numbers are strings.

Traps: `hourly_price` is the figure that the price page shows in euros (H200: "2.60 €"). Dollars are
made with the European Central Bank's reference rate of the day, as for Scaleway
($TRADEWIND_ECB_URL puts a mirror in place of the bank). `available` means that the plan is still
sold, `available_regions` where it may be made; neither is stock. Windows plans are left out; plans
without a GPU are renewed, not collected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from tradewind.catalog.refresh.base import Context, Listing, Source, need
from tradewind.errors import InvalidValue, SourceFailed
from tradewind.units import Micros, micros_from_usd

_ECB_URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"
_RATE_DAY = re.compile(r"""\btime=['"](\d{4}-\d\d-\d\d)['"]""")
_RATE_USD = re.compile(r"""\bcurrency=['"]USD['"]\s+rate=['"](\d+(?:\.\d+)?)['"]""")
_OLDEST_RATE = timedelta(days=10)  # the bank rests on weekends and feasts, not for longer
_MIB_PER_GIB = 1024
_MOST_GPUS = 64
_LONGEST = 12  # digits of any size or price


def fetch(context: Context) -> Iterator[Listing]:
    rate = _dollars_per_euro(context)
    plans = need(need(_ask(context), dict, "answer").get("plans"), list, "answer.plans")
    problem, usable = SourceFailed("Seeweb lists no GPU that we know"), 0
    for number, plan in enumerate(plans, start=1):
        context.progress(number, len(plans))
        try:
            listings = _listings(context, plan, rate)
        except SourceFailed as error:  # one odd entry does not cost us the rest
            problem = error
            context.skip("malformed entry")
            continue
        usable += bool(listings)
        yield from listings
    if not usable:
        raise problem


def _listings(context: Context, plan: Any, rate: Decimal) -> list[Listing]:
    name = need(need(plan, dict, "plans[]").get("name"), str, "plans[].name")
    gpus = int(_number(plan.get("gpu") or 0, f"{name}.gpu"))
    if gpus > _MOST_GPUS:
        raise SourceFailed(f"{name}.gpu: {gpus} GPUs cannot be")
    price = _micros(_number(plan.get("hourly_price"), f"{name}.hourly_price") * rate)
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
    if price <= 0:
        context.skip("no price")
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
            only_known=not gpus,
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


def _dollars_per_euro(context: Context) -> Decimal:
    url = context.env.get("TRADEWIND_ECB_URL") or _ECB_URL
    text = "".join(context.http.lines(url))
    day, found = _RATE_DAY.search(text), _RATE_USD.search(text)
    hint = "Seeweb asks for EUR; its old prices stay in place"
    if not day or not found:
        raise SourceFailed(f"{url}: no reference rate of the US dollar in the answer", hint=hint)
    try:
        age, rate = context.today - date.fromisoformat(day[1]), Decimal(found[1])
    except ValueError:
        raise SourceFailed(f"{url}: {day[1]} is no date", hint=hint) from None
    if age > _OLDEST_RATE or not Decimal("0.5") < rate < 2:
        raise SourceFailed(f"{url}: {rate} USD on {day[1]} is not today's rate", hint=hint)
    return rate


def _micros(dollars: Decimal) -> Micros:
    try:
        return micros_from_usd(dollars)
    except InvalidValue as error:
        raise SourceFailed(error.message) from None


def _ask(context: Context) -> Any:
    try:
        return context.http.get_json(
            f"{context.url}/ecs/v2/plans",
            headers={"x-apitoken": context.env["SEEWEB_API_TOKEN"].strip()},
        )
    except SourceFailed as error:
        if "HTTP 401" in error.message or "HTTP 403" in error.message:
            raise SourceFailed(error.message, hint="check SEEWEB_API_TOKEN") from None
        raise


SOURCE = Source(
    provider="seeweb",
    url="https://api.seeweb.it",
    fetch=fetch,
    describes="Seeweb API v2 plans, EUR at the ECB reference rate of the day",
    markets=("on_demand",),
    credentials=("SEEWEB_API_TOKEN",),
    complete=True,
)
