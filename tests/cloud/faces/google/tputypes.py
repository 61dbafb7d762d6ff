"""Types of TPU slices: how many chips and hosts each has, and what runs on it.

From "TPU architecture" and the pages of each version. A number after v2, v3, v4 and v5p counts
cores, of which a chip has two; after v5litepod and v6e it counts chips. Known lies: topologies are
of the usual shape only, and every zone has every type unless a test says otherwise; nobody sells a
v4-24, which has three hosts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CORES = ("v2", "v3", "v4", "v5p")
_SIZES = {
    "v2": (8, 32, 128, 256, 512),
    "v3": (8, 32, 64, 128, 256, 512, 1024, 2048),
    "v4": (8, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096),
    "v5p": (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
    "v5litepod": (1, 4, 8, 16, 32, 64, 128, 256),
    "v6e": (1, 4, 8, 16, 32, 64, 128, 256),
}
RUNTIMES = {
    "v2": ("tpu-vm-base", "tpu-ubuntu2204-base"),
    "v3": ("tpu-vm-base", "tpu-ubuntu2204-base"),
    "v4": ("tpu-vm-v4-base", "tpu-ubuntu2204-base"),
    "v5p": ("v2-alpha-tpuv5", "tpu-ubuntu2204-base"),
    "v5litepod": ("v2-alpha-tpuv5-lite", "tpu-ubuntu2204-base"),
    "v6e": ("v2-alpha-tpuv6e", "v2-tpuv6e-ubuntu2404"),
}
_LIMITS = {
    "v2": "TPUV2",
    "v3": "TPUV3",
    "v4": "TPUV4Pod",
    "v5p": "TPUV5P",
    "v5litepod": "TPUV5sLitepod",
    "v6e": "TPUV6E",
}
_CONFIGS = {
    "V2": "v2",
    "V3": "v3",
    "V4": "v4",
    "V5LITE_POD": "v5litepod",
    "V5P": "v5p",
    "V6E": "v6e",
}


@dataclass(frozen=True)
class Type:
    name: str
    version: str
    chips: int
    hosts: int

    @property
    def topology(self) -> str:
        if self.version in ("v4", "v5p"):
            shape = [2, 2, 1]
            at = 2
            while shape[0] * shape[1] * shape[2] < self.chips:
                shape[at] *= 2
                at = (at + 1) % 3 if shape[2] > 1 else 2
                at = min(range(3), key=lambda n: shape[n])
            return "x".join(map(str, shape))
        wide = 1
        while wide * wide < self.chips:
            wide *= 2
        return f"{self.chips // wide}x{wide}"

    @property
    def chips_a_host(self) -> int:
        return self.chips // self.hosts


def found(name: str) -> Type | None:
    parts = re.fullmatch(r"(v\d\w*?)-(\d+)", name)
    if not parts or int(parts[2]) not in _SIZES.get(parts[1], ()):
        return None
    version, size = parts[1], int(parts[2])
    chips = size // 2 if version in _CORES else size
    single = version in ("v5litepod", "v6e") and chips <= 8
    return Type(name, version, chips, 1 if single else max(1, chips // 4))


def of_config(sort: str, topology: str) -> Type | None:
    """By generation and topology, as acceleratorConfig has it."""
    chips = 1
    for each in topology.split("x"):
        chips *= int(each) if each.isdigit() else 0
    version = _CONFIGS.get(sort, "")
    return found(f"{version}-{chips * 2 if version in _CORES else chips}")


def every() -> list[Type]:
    names = [f"{version}-{size}" for version, sizes in _SIZES.items() for size in sizes]
    return [told for each in names if (told := found(each))]


def limit(version: str, spot: bool) -> str:
    return f"{_LIMITS[version]}{'Preemptible' if spot else ''}PerProjectPerZoneForTPUAPI"


LIMITS = [limit(version, spot) for version in _LIMITS for spot in (False, True)]
