"""What a machine type needs of an order, by its name. Pure.

The catalog names an N1 machine with its GPUs (`n1-standard-8+1xT4`): there the two are bought
separately. Of all others the GPUs are part of the type.
"""

from __future__ import annotations

import re

from msgspec import Struct

from tradewind.providers.base import Refused

GPUS = {
    "T4": "nvidia-tesla-t4",
    "P4": "nvidia-tesla-p4",
    "P100": "nvidia-tesla-p100",
    "V100": "nvidia-tesla-v100",
    "V100-16GB": "nvidia-tesla-v100",
}
_BUILT_IN = ("a2", "a3", "a4", "a4x", "g2", "g4")
_GVNIC = (*_BUILT_IN, "c3", "c3d", "c4", "c4a", "c4d", "n4", "h3", "h4d", "z3", "m4")
_HYPERDISK = ("a3-ultragpu", "a4", "a4x", "g4", "c4", "c4a", "c4d", "n4", "h4d", "m4")
"""They take no Persistent Disk to boot from."""
_ARM = ("t2a", "c4a", "n4a", "a4x")
_COMPACT = ("a2", "a3", "a4", "g2", "c2", "c2d", "c3", "c3d", "h3", "n2", "n2d")
_BALANCED = "hyperdisk-balanced"
GVNIC, MRDMA = "GVNIC", "MRDMA"
TCPX_CARDS, TCPXO_CARDS, RDMA_CARDS = 4, 8, 8
_FAST = {
    "a3-highgpu-8g": TCPX_CARDS,
    "a3-edgegpu-8g": TCPX_CARDS,
    "a3-megagpu-8g": TCPXO_CARDS,
    "a3-ultragpu-8g": RDMA_CARDS,
    "a4-highgpu-8g": RDMA_CARDS,
}
_RDMA = ("a3-ultragpu", "a4")
_ATTACHED = re.compile(r"(?P<machine>[a-z0-9-]+)\+(?P<count>\d+)x(?P<gpu>[A-Za-z0-9-]+)")


class Kind(Struct, frozen=True, kw_only=True):
    machine_type: str
    """As Compute Engine calls it."""
    accelerator: str = ""
    """What is attached; "": nothing, or it is part of the type."""
    count: int = 0
    gpus: bool = False
    arm: bool = False
    gvnic: bool = False
    disk_type: str = "pd-balanced"
    compact: bool = False
    """Several of them can be placed close together."""
    fast_cards: int = 0
    """Network cards besides the first, for GPUDirect between machines."""
    fast_type: str = ""
    """Of these cards."""

    @property
    def hyperdisk(self) -> bool:
        return self.disk_type == _BALANCED

    @property
    def cards(self) -> tuple[str, ...]:
        """The types of all cards but the first that machines have which talk by GPUDirect. Those
        with RDMA have a second for everything else."""
        second = (GVNIC,) if self.fast_type == MRDMA and self.fast_cards else ()
        return (*second, *[self.fast_type] * self.fast_cards)

    @property
    def gpudirect(self) -> str:
        """What `setup gcp --gpudirect` is told for them; "": they have none."""
        if not self.fast_cards:
            return ""
        if self.fast_type == MRDMA:
            return "rdma"
        return "tcpx" if self.fast_cards == TCPX_CARDS else "tcpxo"

    @property
    def architecture(self) -> str:
        return "arm64" if self.arm else "x86_64"


def disk_type(name: str) -> str:
    """That it boots from."""
    hyper = any(name == each or name.startswith(f"{each}-") for each in _HYPERDISK)
    return _BALANCED if hyper else "pd-balanced"


def kind(instance_type: str) -> Kind:
    attached = _ATTACHED.fullmatch(instance_type)
    name = attached["machine"] if attached else instance_type
    if attached and attached["gpu"] not in GPUS:
        raise Refused(
            "not_found", f"Compute Engine attaches no {attached['gpu']} to {name} that we know of"
        )
    family = name.partition("-")[0]
    rdma = any(name.startswith(f"{each}-") for each in _RDMA)
    return Kind(
        machine_type=name,
        accelerator=GPUS[attached["gpu"]] if attached else "",
        count=int(attached["count"]) if attached else 0,
        gpus=attached is not None or family in _BUILT_IN,
        arm=family in _ARM,
        gvnic=family in _GVNIC,
        disk_type=disk_type(name),
        compact=family in _COMPACT,
        fast_cards=_FAST.get(name, 0),
        fast_type=MRDMA if rdma else GVNIC,
    )
