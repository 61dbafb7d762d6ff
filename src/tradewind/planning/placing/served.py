"""Ways to serve a model, by plans of replicas under narrower limits each, and what there is beside
them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tradewind.base.units import usd
from tradewind.economics.placing import (
    DAY_S,
    REQUESTS,
    Asked,
    Placed,
    Way,
    cheaper_below,
    place,
)
from tradewind.estimate.serving import formats
from tradewind.planning.placing import managed, owned, requests
from tradewind.planning.serving.planner import Planner

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.catalog import Catalog
    from tradewind.estimate.serving.points import Points
    from tradewind.model import Workload
    from tradewind.model.serveplan import ServingPlan, ServingPlans

_NO_PLAN = "no replicas keep every target and limit"
_KINDS = {"api": "model API", "serverless": "serverless GPU"}


def placed(
    work: Workload, catalog: Catalog, *, now: datetime, points: Points | None = None,
    keep: str = "any", offline: bool = False,
) -> Placed:  # fmt: skip
    """Every verdict is of the traffic in the file; crossovers are those of the plan."""
    planner = Planner(work, catalog, now=now, own=points)
    plans = planner.plans()
    limits = work.limits

    def best(**narrower: Any) -> ServingPlan | None:
        return planner.best_with(limits=replace(limits, **narrower))

    sold = limits.markets or ("on_demand", "spot")
    ways = [
        _rented(kind, best(markets=(market,))) if market in sold
        else Way(kind=kind, words="", reason=f"limits.markets has {', '.join(sold)} alone")
        for kind, market in (("cloud machine", "on_demand"), ("spot machine", "spot"))
    ]  # fmt: skip
    mixed = plans.best
    if mixed is not None and len({m for pool in mixed.pools for m in pool.price_hour}) > 1:
        # Some on spot and the rest on demand is the cheapest way to rent; told as that of spot.
        ways[1] = _rented("spot machine", mixed, doubt="some of them on demand, as spares or base")
    ways += [
        _managed(planner, best), _own(catalog, work, best), _edge(planner, plans),
        *_beside(plans),
    ]  # fmt: skip
    asked = Asked(
        requests_day=plans.requests_per_s * DAY_S, seconds=_seconds(plans),
        peak=max(plans.peak_requests_per_s / plans.requests_per_s, 1.0),
        keep=keep, offline=offline, accelerator=_chip(plans), limit=_promise(plans),
    )  # fmt: skip
    return place(asked, ways, crossovers=_crossovers(plans))


def _rented(kind: str, plan: ServingPlan | None, doubt: str = "") -> Way:
    if plan is None:
        return Way(kind=kind, words="", reason=_NO_PLAN)
    words = "; ".join(
        f"up to {max(h.on_demand + h.spot for h in pool.hours) + pool.committed}× "
        f"{pool.instance_type} at {pool.provider}/{pool.region}"
        for pool in plan.pools
    )
    own = all(pool.own for pool in plan.pools)
    first = plan.pools[0]
    return Way(
        kind=kind, words=words, always_month=usd(plan.cost), whole=True, seconds=0.0,
        leaves="own" if own else "cloud", online=not own,
        source=f"{first.price_source}, {first.price_as_of}", doubt=doubt,
    )  # fmt: skip


def _managed(planner: Planner, best: Any) -> Way:
    found: tuple[float, ServingPlan, managed.Surcharge] | None = None
    for provider in sorted(managed.providers()):
        if not planner.workload.limits.allows(provider, "any"):
            continue
        plan = best(markets=("on_demand",), providers=(provider,))
        more = plan and managed.surcharge(provider, plan.pools[0].instance_type)
        if plan is None or not more:
            continue
        cost = usd(plan.cost) * more.ratio
        if found is None or cost < found[0]:
            found = cost, plan, more
    if found is None:
        return Way(kind="managed service", words="", reason=f"{_NO_PLAN} with one")
    cost, plan, more = found
    rented = _rented("managed service", plan)
    words = f"{more.service}: {rented.words}, {more.ratio:g}× their price"
    return replace(rented, words=words, always_month=cost, source=more.source, doubt=more.doubt)


def _own(catalog: Catalog, work: Workload, best: Any) -> Way:
    """Servers that could be bought, as many as the fullest hour needs."""
    found: tuple[float, str, int] | None = None
    for chip in filter(work.limits.allows_accelerator, owned.SERVERS):
        plan = best(markets=("on_demand",), accelerators=(chip,), providers=None, regions=None,
                    budget=None)  # fmt: skip
        if plan is None:
            continue
        accelerators = sum(
            max(hour.needed for hour in pool.hours) * pool.accelerator_count for pool in plan.pools
        )
        many = owned.servers(chip, accelerators)
        month = owned.month(catalog, chip, many)
        if found is None or month < found[0]:
            found = month, chip, many
    if found is None:
        return Way(kind="own machines", words="", leaves="own", online=False,
                   reason="no server with a known price keeps the targets")  # fmt: skip
    month, chip, many = found
    return Way(
        kind="own machines", words=f"{many} server{'s' * (many > 1)} with "
        f"{owned.SERVERS[chip][0]}× {chip}, bought", always_month=month, whole=True, seconds=0.0,
        leaves="own", online=False, source=f"tradewind own, {owned.YEARS} years",
        doubt="as many as the fullest hour needs, at one place",
    )  # fmt: skip


def _edge(planner: Planner, plans: ServingPlans) -> Way:
    """The cheapest device that generates as quickly as is promised, one request at a time."""
    serve = planner.serve
    names = (serve.weights or "bf16", *(serve.quantise or ()))
    found: tuple[float, str, int, str, str] | None = None
    fits = False
    for name in names:
        weights = planner.model.params * formats.FORMATS[formats.named(name)].bytes
        for row, month, memory in requests.devices():
            speed = row.number("memory_bandwidth_gbps")
            if not speed or 0.8e9 * memory < weights:
                continue
            fits = True
            token_s = weights / (speed * 1e9)
            answer_s = plans.output * token_s
            promised = serve.targets.get("tpot", (float("inf"), 0.0))[0]
            if token_s > promised:
                continue
            many = max(1, round(plans.peak_requests_per_s * answer_s / 0.8 + 0.5))
            if found is None or many * month < found[0]:
                found = many * month, row["device"], many, name, row.provenance
    if found is None:
        reason = (
            "too slow: no device generates a token in the time that is promised" if fits
            else "no device holds its weights"
        )  # fmt: skip
        return Way(kind="edge device", words="", leaves="own", online=False, reason=reason)
    month, device, many, name, source = found
    return Way(
        kind="edge device", words=f"{many}× {device} where the users are, {name}",
        always_month=month, whole=True, seconds=0.0, leaves="own", online=False, source=source,
        doubt="one request at a time on each, by memory bandwidth; first tokens are not estimated",
    )  # fmt: skip


def _beside(plans: ServingPlans) -> list[Way]:
    return [
        Way(
            kind=_KINDS[one.kind], words=f"{one.provider} {one.what}", always_month=usd(one.cost),
            whole=True, seconds=0.0, leaves="any", source=f"{one.source}, {one.as_of}",
            doubt=one.note,
        )
        for one in plans.alternatives
    ]  # fmt: skip


def _crossovers(plans: ServingPlans) -> list[str]:
    return list(
        dict.fromkeys(
            cheaper_below(REQUESTS, f"{_KINDS[one.kind]} ({one.provider})",
                          "the plan", one.crossover * DAY_S)
            for one in plans.alternatives
            if one.crossover
        )
    )  # fmt: skip


def _promise(plans: ServingPlans) -> str:
    texts = [
        f"{name.upper()} {seconds:g} s for {share:.0%}"
        for name, (seconds, share) in plans.targets.items()
    ]
    return f"keep {', '.join(texts)}" if texts else "answer at all"


def _seconds(plans: ServingPlans) -> float:
    """Of an accelerator for a request, where machines are as full as targets allow."""
    if plans.best is None:
        return 1.0
    pools = plans.best.pools
    return sum(p.accelerator_count / p.rate_per_machine for p in pools) / len(pools)


def _chip(plans: ServingPlans) -> str:
    return plans.best.pools[0].accelerator if plans.best else "accelerators"
