"""How many GPUs, CPUs, addresses and TPUs the project may have, and the page to raise what is
zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tradewind.base.errors import TradewindError
from tradewind.model.finding import OK, WARNING, Finding
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.checks.findings import found
from tradewind.providers.gcp.limits import families, quotas
from tradewind.providers.gcp.limits.quotas import ADDRESSES, ALL_GPUS, GPUS, PREEMPTIBLE, Quota
from tradewind.providers.gcp.setup.calls import Calls

_FEW_ADDRESSES = 8


def checks(google: Google, project: str, regions: Sequence[str]) -> Iterator[Finding]:
    told = quotas.quotas(google, project)
    whole = told.get(quotas.WORLD, {}).get(ALL_GPUS)
    if whole is not None and whole.limit == 0:
        yield found(
            WARNING,
            f"no GPU at all, in any region: {ALL_GPUS} is 0",
            why="machines with GPUs that are not spot are left out of what a run may use",
            todo=quotas.raising(project, whole, 1),
            measured={ALL_GPUS: {"limit": 0, "used": whole.used}},
        )
    for region in regions:
        yield from _region(project, region, told.get(region, {}))


def _region(project: str, region: str, told: Any) -> Iterator[Finding]:
    names = [mark + metric for metric in dict.fromkeys(GPUS.values()) for mark in ("", PREEMPTIBLE)]
    known: list[Quota] = [told[name] for name in names if name in told]
    some, none = [it for it in known if it.limit], [it for it in known if not it.limit]
    measured = quotas.measured(told)
    if some:
        words = "; ".join(f"{it.metric} {it.limit}{_used(it)}" for it in some)
        yield found(OK, f"{region}: GPUs: {words}", measured=measured)
    if none:
        yield found(
            WARNING,
            f"{region}: no GPUs at all: {', '.join(it.metric for it in none)}",
            why="such machines are left out of what a run may use there; spot ones where both are"
            " 0",
            todo=quotas.raising(project, none[0], 1)
            + (", and so for the others" if len(none) > 1 else ""),
            measured=measured,
        )
    addresses = told.get(ADDRESSES)
    if addresses is not None and addresses.limit <= _FEW_ADDRESSES:
        yield found(
            WARNING,
            f"{region}: {addresses.limit} external addresses ({ADDRESSES}){_used(addresses)}",
            why="each machine has one, unless setup was given --private",
            todo=quotas.raising(project, addresses, 64),
        )


def family_checks(google: Google, project: str, regions: Sequence[str]) -> Iterator[Finding]:
    """Of H100 and newer on demand. That nobody may ask is no fault: a launch is then attempted."""
    told = families.families(google, project)
    if told.untold:
        yield found(
            OK,
            "quotas of H100 and newer on demand are not known, and held against nothing:"
            f" `gcloud services enable {families.SERVICE} --project {project}` lets them be asked,"
            f" and {quotas.link(project)} has them",
            measured={"error": told.untold},
        )
        return
    for region in regions:
        known = [each for gpu in families.FAMILIES if (each := told.quota(region, gpu))]
        some, none = [it for it in known if it.limit], [it for it in known if not it.limit]
        measured = {each.family: each.limit for each in known}
        if some:
            words = "; ".join(f"{it.family} {it.limit}" for it in some)
            yield found(OK, f"{region}: newer GPUs on demand: {words}", measured=measured)
        if none:
            yield found(
                WARNING,
                f"{region}: no newer GPUs on demand: {', '.join(it.family for it in none)}",
                why="such machines are left out of what a run may use there, unless they are spot"
                " or flex-start",
                todo=quotas.raising(project, none[0], 8)
                + (", and so for the others" if len(none) > 1 else ""),
                measured=measured,
            )


def _used(quota: Quota) -> str:
    return f" ({quota.used} in use)" if quota.used else ""


def tpu_checks(calls: Calls, zones: Sequence[str]) -> Iterator[Finding]:
    """TPU VMs have quotas of their own, by zone, which Service Usage tells. Their names differ by
    generation; whatever there is of chips or cores is told."""
    page = quotas.tpu_link(calls.project)
    path = f"/v1beta1/projects/{calls.project}/services/tpu.googleapis.com/consumerQuotaMetrics"
    try:
        listed = calls.items(
            "serviceusage", path, "serviceusage.quotas.get", {"view": "FULL"}, key="metrics"
        )
    except TradewindError as error:
        yield found(
            OK,
            f"quotas of TPU VMs could not be read, and are held against nothing: {page} has them",
            measured={"error": error.message},
        )
        return
    some: dict[str, int] = {}
    none: list[str] = []
    for metric in listed:
        name = str(metric.get("displayName") or metric.get("metric"))
        most = max(_limits(metric, zones), default=None)
        if most is None or "request" in name.lower():
            continue
        if most:
            some[name] = most
        else:
            none.append(name)
    if some:
        words = "; ".join(f"{name} {limit}" for name, limit in sorted(some.items()))
        yield found(OK, f"TPU VMs: {words}", measured=some)
    if none:
        yield found(
            WARNING,
            f"no TPUs in the zones that are set up: {', '.join(sorted(none))}",
            why="such slices are refused",
            todo=f"ask for some: {page}",
        )


def _limits(metric: Any, zones: Sequence[str]) -> Iterator[int]:
    """What holds in each of these zones: the bucket that names it, or its region, else the one
    that names no place."""
    for limit in metric.get("consumerQuotaLimits") or ():
        buckets = limit.get("quotaBuckets") or ()
        for zone in zones:
            places = {"zone": zone, "region": zone.rpartition("-")[0]}
            best: int | None = None
            for bucket in buckets:  # from the least specific to the most
                named = bucket.get("dimensions") or {}
                if all(places.get(key) == value for key, value in named.items()):
                    best = int(bucket.get("effectiveLimit") or 0)
            if best is not None:
                yield best if best >= 0 else 1 << 31
