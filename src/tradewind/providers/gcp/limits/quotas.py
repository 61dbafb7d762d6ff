"""How many GPUs, CPUs and addresses a project may have at once.

Compute Engine counts GPUs by their kind in each region, and all together in all regions
(GPUS_ALL_REGIONS). Spot and flex-start machines count towards a quota of their own
(PREEMPTIBLE_…) where the project has one, else towards that of the others.

A region tells its quotas with itself. Those of newer GPUs on demand (H100 and later) and of TPU
VMs are not among them: the former are Cloud Quotas' (families.py). What is not told is held against
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tradewind.providers import remembered
from tradewind.providers.gcp.api import Google

FRESH_S = 300.0
"""An increase that was granted should be seen soon."""
ALL_GPUS, ADDRESSES = "GPUS_ALL_REGIONS", "IN_USE_ADDRESSES"
PREEMPTIBLE = "PREEMPTIBLE_"
GPUS = {
    "nvidia-tesla-t4": "NVIDIA_T4_GPUS",
    "nvidia-tesla-p4": "NVIDIA_P4_GPUS",
    "nvidia-tesla-p100": "NVIDIA_P100_GPUS",
    "nvidia-tesla-v100": "NVIDIA_V100_GPUS",
    "nvidia-l4": "NVIDIA_L4_GPUS",
    "nvidia-tesla-a100": "NVIDIA_A100_GPUS",
    "nvidia-a100-80gb": "NVIDIA_A100_80GB_GPUS",
    "nvidia-h100-80gb": "NVIDIA_H100_GPUS",
    "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA_GPUS",
    "nvidia-h200-141gb": "NVIDIA_H200_GPUS",
    "nvidia-b200": "NVIDIA_B200_GPUS",
    "nvidia-rtx-pro-6000": "NVIDIA_RTX_PRO_6000_GPUS",
}
"""By accelerator, the quota of a region."""
_CPUS = {
    "n1": "CPUS",
    "e2": "CPUS",
    "n2": "N2_CPUS",
    "n2d": "N2D_CPUS",
    "c2": "C2_CPUS",
    "c2d": "C2D_CPUS",
    "c3": "C3_CPUS",
}
"""By family. Types with GPUs of their own are counted by these."""
WORLD = ""
"""Instead of a region: all of them."""


class Quota(Struct, frozen=True, kw_only=True):
    region: str
    """WORLD: of all together."""
    metric: str
    limit: int
    used: int
    family: str = ""
    """Of GPUs, where one quota is for several."""

    @property
    def free(self) -> int:
        return max(self.limit - self.used, 0)

    @property
    def words(self) -> str:
        return f"{self.name} in {self.region}" if self.region else self.name

    @property
    def name(self) -> str:
        return f"{self.metric} ({self.family})" if self.family else self.metric


Quotas = Mapping[str, Mapping[str, Quota]]
"""By region, by metric."""


class _Told(Struct, frozen=True):
    metric: str = ""
    limit: float = 0.0
    usage: float = 0.0


class _Region(Struct, frozen=True):
    name: str
    quotas: tuple[_Told, ...] = ()


class _Regions(Struct, frozen=True, rename="camel"):
    items: tuple[_Region, ...] = ()
    next_page_token: str | None = None


def quotas(google: Google, project: str) -> Quotas:
    """Of every region, and of all together (WORLD)."""

    def ask() -> dict[str, dict[str, Quota]]:
        rest = google.rest("compute")
        doing = f"asking for the quotas of {project}"
        pages = rest.pages(
            f"/projects/{project}/regions",
            _Regions,
            doing,
            lambda page: page.next_page_token,
            "pageToken",
        )
        told = [each for page in pages for each in page.items]
        whole = rest.get(f"/projects/{project}", _Region, doing)
        return {each.name: _quotas(each.name, each) for each in told} | {
            WORLD: _quotas(WORLD, whole)
        }

    return remembered.one(google, ("quotas", project), ask, FRESH_S)


def _quotas(region: str, told: _Region) -> dict[str, Quota]:
    return {
        each.metric: Quota(
            region=region, metric=each.metric, limit=int(each.limit), used=int(each.usage)
        )
        for each in told.quotas
        if each.metric
    }


def governing(
    told: Quotas,
    region: str,
    market: str,
    *,
    family: str,
    gpu: str,
    gpus: int,
    cpus: int,
    public: bool,
) -> list[tuple[Quota, int]]:
    """Of one machine: the quotas that count it, and how much each counts. Those that are not told
    are not among them."""
    here, world = told.get(region, {}), told.get(WORLD, {})
    wanted: list[tuple[str, int]] = []
    if gpu and gpu in GPUS:
        wanted.append((GPUS[gpu], gpus))
    attached = family == "n1"
    if family in _CPUS and (not gpu or attached):
        wanted.append((_CPUS[family], cpus))
    found: list[tuple[Quota, int]] = []
    standard = market in ("on_demand", "reserved")
    for metric, amount in wanted:
        cheap = here.get(_preemptible(metric))
        if not standard and cheap is not None and cheap.limit:
            found.append((cheap, amount))
            continue
        if metric in here:
            found.append((here[metric], amount))
            if ALL_GPUS in world and metric == GPUS.get(gpu):
                found.append((world[ALL_GPUS], amount))
    if public and ADDRESSES in here:
        found.append((here[ADDRESSES], 1))
    return found


def _preemptible(metric: str) -> str:
    """That of CPUs is one for all families."""
    return f"{PREEMPTIBLE}CPUS" if metric.endswith("CPUS") else PREEMPTIBLE + metric


def link(project: str, metric: str = "") -> str:
    """The page on which a quota is raised."""
    page = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
    return f"{page}&metric={metric}" if metric else page


def raising(project: str, quota: Quota, least: int) -> str:
    page = link(project, "" if quota.family else quota.metric)
    return f"ask for {least} {quota.words}: {page}"


def tpu_link(project: str) -> str:
    page = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
    return f"{page}&service=tpu.googleapis.com"


def measured(told: Mapping[str, Quota]) -> dict[str, Any]:
    return {
        name: {"limit": each.limit, "used": each.used}
        for name, each in sorted(told.items())
        if "GPU" in name or "CPUS" in name or name == ADDRESSES
    }
