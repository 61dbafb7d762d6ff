"""IBM Cloud: virtual servers for VPC, from the public Global Catalog. No key.

Three kinds of address, all below `/api/v1`, lists paged by `_offset` and `_limit` (200 at most) as
`{"count", "resources": […]}`:

    /is.instance/plan                  the plans: {"id", "name", "active", "disabled"}
    /{plan}/pricing/deployment         prices of a plan in every region, each {"deployment_region",
                                       "metrics": [{"metric_id", "amounts": [{"country",
                                       "currency", "prices": [{"price"}]}]}]}
    /{plan}/deployment, /{id}/pricing  the deployments of a plan; the metrics of one of them

Profiles of the third generation and later have a plan each, of the same name, with the metrics
`part-is.instance-hours-<profile>` and `part-is.spot-<profile>`. Those of the second share the plan
`gen2-instance`, whose deployments are called `<profile>-<region>` and price the profile's vCPUs,
memory and GPUs separately, each already multiplied by its number: their sum is the price.

Traps: an account pays its country's amount, so we read the row USA/USD; a metric of 0 is billed
elsewhere (`-dh-`: the dedicated host); licences of operating systems are metrics of their own.
Bare metal is another service, which this source does not ask, and of CPU-only profiles only those
that we know are asked for: not `complete`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tradewind.base.errors import SourceFailed
from tradewind.base.units import Micros
from tradewind.catalog.refresh.base import Context, Listing, Source, as_price, need
from tradewind.model import InstanceType

_SHARED_PLAN = "gen2-instance"
_PROFILE = re.compile(r"gx\w*-(?P<vcpus>\d+)x(?P<memory>\d+)x(?P<count>\d+)(?P<chip>[a-z]\w*)")
_REGION = re.compile(r"[a-z]{2}-[a-z]+")
_LIMIT = 200
_MOST_PAGES = 30


def fetch(context: Context) -> Iterator[Listing]:
    plans = {
        need(plan.get("name"), str, "plan.name"): need(plan.get("id"), str, "plan.id")
        for plan in _resources(context, "is.instance/plan")
        if plan.get("active") is not False and not plan.get("disabled")
    }
    own = [name for name in plans if name in context.known or _PROFILE.fullmatch(name)]
    for done, name in enumerate(own, start=1):
        yield from _own_plan(context, name, plans[name])
        context.progress(done, len(own))
    if _SHARED_PLAN in plans:
        rest = [name for name in context.known if name not in plans]
        yield from _shared_plan(context, rest, plans[_SHARED_PLAN])


def _own_plan(context: Context, name: str, plan: str) -> Iterator[Listing]:
    kind = _kind(context, name)
    if kind is None:
        return
    for place in _resources(context, f"{quote(plan, safe=':')}/pricing/deployment"):
        region = str(place.get("deployment_region") or place.get("deployment_location") or "")
        metrics = _metrics(place, f"plan {name} in {region}")
        on_demand = _usd(context, metrics.get(f"part-is.instance-hours-{name}"), name)
        spot = _usd(context, metrics.get(f"part-is.spot-{name}"), name)
        if not _REGION.fullmatch(region) or (on_demand is None and spot is None):
            context.skip("a deployment without region or price")
            continue
        yield Listing(region=region, instance_type=name, on_demand=on_demand, spot=spot, **kind)


def _shared_plan(context: Context, names: list[str], plan: str) -> Iterator[Listing]:
    plan = quote(plan, safe=":")
    found: dict[tuple[str, str], set[Micros]] = defaultdict(set)
    for place in _resources(context, f"{plan}/deployment"):
        title = str(place.get("name"))
        for name in names:
            region = title.removeprefix(f"{name}-")
            if region == title or not _REGION.fullmatch(region):
                continue
            key = quote(need(place.get("id"), str, f"deployment {title}.id"), safe=":")
            answer = need(_get(context, f"{key}/pricing"), dict, f"deployment {title}")
            price = _sum(context, _metrics(answer, title, "charge_unit_name"), context.known[name])
            if price is not None:
                found[name, region].add(price)
    for name in {*names} - {name for name, _ in found}:
        context.skip(f"no plan for {name}")
    for (name, region), prices in found.items():
        kind = _kind(context, name)
        if len(prices) > 1 or kind is None:
            context.skip(f"several prices for {name} in {region}")
            continue
        yield Listing(region=region, instance_type=name, on_demand=prices.pop(), **kind)


def _sum(context: Context, metrics: dict[str, Any], kind: InstanceType) -> Micros | None:
    units = ["VCPU_HOURS", "MEMORY_HOURS"]
    if kind.accelerator:
        units.append(f"{kind.accelerator.split('-')[0].upper()}_HOURS")
    total = 0
    for unit in units:
        metric = metrics.get(unit)
        price = _usd(context, metric, kind.name)
        # A quantity other than 1 is the rate of the whole plan, per so many vCPUs.
        if metric is None or price is None or metric.get("charge_unit_quantity") != 1:
            context.skip(f"no price for {unit} of {kind.name}")
            return None
        total += price
    return Micros(total)


def _kind(context: Context, name: str) -> dict[str, Any] | None:
    """What a Listing says of the hardware; None, and counted, for a chip that we do not know."""
    known = context.known.get(name)
    if known:
        return {"accelerator": known.accelerator, "accelerator_count": known.accelerator_count}
    parts = _PROFILE.fullmatch(name)
    chip = context.names.canonical(parts["chip"]) if parts else None
    if not parts or chip is None:
        context.skip(f"unknown accelerator {parts['chip'] if parts else name!r}")
        return None
    return {
        "accelerator": chip,
        "accelerator_count": int(parts["count"]),
        "vcpus": int(parts["vcpus"]),
        "memory_gb": int(parts["memory"]),
    }


def _metrics(place: dict[str, Any], where: str, key: str = "metric_id") -> dict[str, Any]:
    listed = need(place.get("metrics") or [], list, f"{where}: metrics")
    return {str(need(m, dict, f"{where}: metrics[]").get(key)): m for m in listed}


def _usd(context: Context, metric: dict[str, Any] | None, name: str) -> Micros | None:
    """The price of one metric in the USA; None where there is none, or only zero."""
    where = f"{name}: metrics[].amounts"
    for amount in need((metric or {}).get("amounts") or [], list, where):
        place = need(amount, dict, f"{where}[]")
        if (place.get("country"), place.get("currency")) != ("USA", "USD"):
            continue
        prices = need(place.get("prices") or [], list, f"{where}[].prices")
        if not prices:
            return None
        first = need(prices[0], dict, f"{where}[].prices[0]").get("price")
        price = as_price(first, f"{where}[].prices[0].price")
        if price:
            return price
        context.skip("price of zero")
    return None


def _resources(context: Context, path: str) -> Iterator[dict[str, Any]]:
    offset = 0
    for _ in range(_MOST_PAGES):
        query: dict[str, str | int] = {"_offset": offset, "_limit": _LIMIT}
        answer = need(_get(context, path, query), dict, f"{path}: answer")
        resources = need(answer.get("resources") or [], list, f"{path}: resources")
        for resource in resources:
            yield need(resource, dict, f"{path}: resources[]")
        offset += len(resources)
        if not resources or offset >= need(answer.get("count", 0), int, f"{path}: count"):
            return
    raise SourceFailed(f"{path}: the pages do not end (after {_MOST_PAGES} pages)")


def _get(context: Context, path: str, query: dict[str, str | int] | None = None) -> Any:
    try:
        return context.http.get_json(f"{context.url}/api/v1/{path}", query=query)
    except SourceFailed as error:
        # A plan may be listed before it has a price: that is no reason to drop all the others.
        if error.status == 404 and "pricing" in path:
            context.skip("a plan without a price list")
            return {}
        raise


SOURCE = Source(
    provider="ibm",
    url="https://globalcatalog.cloud.ibm.com",
    fetch=fetch,
    describes="IBM Global Catalog pricing API",
    markets=("on_demand", "spot"),
)
