"""Regions, zones, machine types, accelerators, and which quota counts what.

From Google's documentation as of November 2026, those that GPUs and TPUs are rented in. Known lies:
every type is offered in every zone unless a test says otherwise; N1 takes any number of GPUs that
its accelerator knows; memory of types that nobody asks for is rounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ZONES = {
    "us-central1": "abcf",
    "us-east1": "bcd",
    "us-east4": "abc",
    "us-east5": "abc",
    "us-south1": "abc",
    "us-west1": "abc",
    "us-west2": "abc",
    "us-west3": "abc",
    "us-west4": "abc",
    "northamerica-northeast1": "abc",
    "northamerica-northeast2": "abc",
    "southamerica-east1": "abc",
    "southamerica-west1": "abc",
    "europe-north1": "abc",
    "europe-west1": "bcd",
    "europe-west2": "abc",
    "europe-west3": "abc",
    "europe-west4": "abc",
    "europe-west9": "abc",
    "asia-east1": "abc",
    "asia-northeast1": "abc",
    "asia-northeast3": "abc",
    "asia-south1": "abc",
    "asia-southeast1": "abc",
    "asia-southeast2": "abc",
    "australia-southeast1": "abc",
    "me-west1": "abc",
}


def zones(region: str) -> list[str]:
    return [f"{region}-{letter}" for letter in ZONES.get(region, "")]


def region_of(zone: str) -> str:
    return zone.rpartition("-")[0]


def is_zone(zone: str) -> bool:
    return zone in zones(region_of(zone))


@dataclass(frozen=True)
class Kind:
    name: str
    cpus: int
    memory_mb: int
    gpus: int = 0
    gpu: str = ""


@dataclass(frozen=True)
class Gpu:
    short: str
    """As the catalog names it, for types with GPUs that are attached."""
    quota: str
    most: int = 8


GPUS = {
    "nvidia-tesla-t4": Gpu("T4", "NVIDIA_T4_GPUS", 4),
    "nvidia-tesla-p4": Gpu("P4", "NVIDIA_P4_GPUS", 4),
    "nvidia-tesla-v100": Gpu("V100", "NVIDIA_V100_GPUS"),
    "nvidia-tesla-p100": Gpu("P100", "NVIDIA_P100_GPUS", 4),
    "nvidia-l4": Gpu("L4", "NVIDIA_L4_GPUS"),
    "nvidia-tesla-a100": Gpu("A100", "NVIDIA_A100_GPUS", 16),
    "nvidia-a100-80gb": Gpu("A100-80GB", "NVIDIA_A100_80GB_GPUS"),
    "nvidia-h100-80gb": Gpu("H100-SXM", "NVIDIA_H100_GPUS"),
    "nvidia-h100-mega-80gb": Gpu("H100-MEGA", "NVIDIA_H100_MEGA_GPUS"),
    "nvidia-h200-141gb": Gpu("H200", "NVIDIA_H200_GPUS"),
    "nvidia-b200": Gpu("B200", "NVIDIA_B200_GPUS"),
    "nvidia-gb200": Gpu("GB200", "NVIDIA_GB200_GPUS", 4),
    "nvidia-rtx-pro-6000": Gpu("RTX-PRO-6000", "NVIDIA_RTX_PRO_6000_GPUS"),
}
ATTACHED = ("nvidia-tesla-t4", "nvidia-tesla-p4", "nvidia-tesla-v100", "nvidia-tesla-p100")
"""Those that N1 takes."""


def _kinds() -> dict[str, Kind]:
    found: list[Kind] = []
    for family, per_cpu in (("n1-standard", 3840), ("n1-highmem", 6656)):
        for cpus in (1, 2, 4, 8, 16, 32, 64, 96):
            found.append(Kind(f"{family}-{cpus}", cpus, cpus * per_cpu))
    for family in ("e2-standard", "n2-standard", "c3-standard"):
        sizes = (4, 8, 22, 44, 88) if family.startswith("c3") else (2, 4, 8, 16, 32)
        found += [Kind(f"{family}-{cpus}", cpus, cpus * 4096) for cpus in sizes]
    found += [Kind("e2-micro", 2, 1024), Kind("e2-small", 2, 2048), Kind("e2-medium", 2, 4096)]
    for cpus, gpus in ((4, 1), (8, 1), (12, 1), (16, 1), (24, 2), (32, 1), (48, 4), (96, 8)):
        found.append(Kind(f"g2-standard-{cpus}", cpus, cpus * 4096, gpus, "nvidia-l4"))
    for cpus, gpus in ((48, 1), (96, 2), (192, 4), (384, 8)):
        memory_mb = cpus * 3840
        found.append(Kind(f"g4-standard-{cpus}", cpus, memory_mb, gpus, "nvidia-rtx-pro-6000"))
    for gpus in (1, 2, 4, 8):
        memory_mb = gpus * 85 * 1024
        found.append(Kind(f"a2-highgpu-{gpus}g", 12 * gpus, memory_mb, gpus, "nvidia-tesla-a100"))
        memory_mb = gpus * 170 * 1024
        found.append(Kind(f"a2-ultragpu-{gpus}g", 12 * gpus, memory_mb, gpus, "nvidia-a100-80gb"))
        memory_mb = gpus * 234 * 1024
        found.append(Kind(f"a3-highgpu-{gpus}g", 26 * gpus, memory_mb, gpus, "nvidia-h100-80gb"))
    found += [
        Kind("a2-megagpu-16g", 96, 1360 * 1024, 16, "nvidia-tesla-a100"),
        Kind("a3-edgegpu-8g", 208, 1872 * 1024, 8, "nvidia-h100-80gb"),
        Kind("a3-megagpu-8g", 208, 1872 * 1024, 8, "nvidia-h100-mega-80gb"),
        Kind("a3-ultragpu-8g", 224, 2952 * 1024, 8, "nvidia-h200-141gb"),
        Kind("a4-highgpu-8g", 224, 3968 * 1024, 8, "nvidia-b200"),
        Kind("a4x-highgpu-4g", 140, 884 * 1024, 4, "nvidia-gb200"),
    ]
    return {each.name: each for each in found}


KINDS = _kinds()
QUOTAS = {
    **{f"{mark}{each.quota}": "" for each in GPUS.values() for mark in ("", "PREEMPTIBLE_")},
    **dict.fromkeys(
        (
            *("CPUS", "N2_CPUS", "C3_CPUS", "A2_CPUS", "PREEMPTIBLE_CPUS", "INSTANCES"),
            *("DISKS_TOTAL_GB", "SSD_TOTAL_GB", "IN_USE_ADDRESSES", "GPUS_ALL_REGIONS"),
            *("CPUS_ALL_REGIONS", "NETWORKS", "SUBNETWORKS", "FIREWALLS"),
            *("TPU_LITE_PODSLICE_V5", "PREEMPTIBLE_TPU_LITE_PODSLICE_V5"),
            *("TPU_LITE_DEVICE_V5", "PREEMPTIBLE_TPU_LITE_DEVICE_V5"),
            *("TPU_PODSLICE_V4", "PREEMPTIBLE_TPU_PODSLICE_V4"),
            *("TPUV6E", "PREEMPTIBLE_TPUV6E", "TPUV5P", "PREEMPTIBLE_TPUV5P"),
            *("TPUV2", "TPUV3", "PREEMPTIBLE_TPUV2", "PREEMPTIBLE_TPUV3"),
        ),
        "",
    ),
}
GLOBAL = ("GPUS_ALL_REGIONS", "CPUS_ALL_REGIONS", "NETWORKS", "SUBNETWORKS", "FIREWALLS")
_UNLISTED = ("NVIDIA_H100_GPUS", "H100_MEGA", "H200", "B200", "RTX_PRO", "TPUV")
"""On-demand quotas of newer GPUs are no metrics of a region: they are had from Cloud Quotas."""


def listed(quota: str) -> bool:
    if quota in GLOBAL:
        return False
    return quota.startswith("PREEMPTIBLE_NVIDIA_H100_GPUS") or not any(
        each in quota for each in _UNLISTED
    )


def kind_of(machine_type: str, accelerators: list[tuple[str, int]]) -> str:
    """As the catalog names it: n1-standard-8+1xT4 where GPUs are attached."""
    if machine_type in KINDS and KINDS[machine_type].gpus:
        return machine_type
    more = [f"+{count}x{GPUS[name].short}" for name, count in accelerators]
    return machine_type + "".join(more)


def size(kind: str) -> tuple[int, int]:
    """CPUs and GPUs, of types and of TPU slices (chips)."""
    if kind.startswith("tpu-"):
        return 1, int(kind.rpartition("-")[2])
    name, _, rest = kind.partition("+")
    told = KINDS.get(name)
    attached = re.match(r"(\d+)x", rest)
    if told is None:
        return 1, 0
    return told.cpus, told.gpus + (int(attached[1]) if attached else 0)


def gpu_of(kind: str) -> str:
    name, _, rest = kind.partition("+")
    if rest:
        short = rest.partition("x")[2]
        return next((each for each, told in GPUS.items() if told.short == short), "")
    return KINDS[name].gpu if name in KINDS else ""


def counted(kind: str, market: str) -> list[tuple[str, float]]:
    """Every quota that a machine counts against, and how much."""
    cpus, gpus = size(kind)
    family = kind.partition("-")[0]
    own = {"n2": "N2_CPUS", "c3": "C3_CPUS"}.get(family, "CPUS")
    preemptible = market in ("spot", "flex-start")
    found: list[tuple[str, float]] = [("INSTANCES", 1)]
    gpu = gpu_of(kind)
    if family in ("n1", "e2", "n2", "c3"):
        found.append((own, cpus))
    if gpu:
        quota = GPUS[gpu].quota
        found.append((f"PREEMPTIBLE_{quota}" if preemptible else quota, gpus))
        found.append(("GPUS_ALL_REGIONS", gpus))
    return found
