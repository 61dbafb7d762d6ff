"""Which billed parts a Google machine is made of, and what the price list calls them. Pure tables.

Google sells a core-hour, a GiB-hour and a GPU-hour; what they are for stands only in the SKU's
description, so that is what we match, whole and never by a beginning: `A3` is not `A3Plus` or
`A3Ultra`, an `H100 80GB` is not an `H100 80GB Mega`. How many of each part a machine has is known
from the catalog.

One part is described differently on each market:

    on demand   A2 Instance Core running in Americas
                Nvidia Tesla A100 GPU running in Americas
    spot        Spot Preemptible A2 Instance Core running in Americas
                Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas
    reserved    Commitment v1: A2 Cpu in Americas for 1 Year
                Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year

and there are more for the same thing that nobody can simply buy or that are for other uses:
`Reserved …`, `… in Calendar Mode`, `… DWS Defined Duration …`, `… Sole Tenancy …`, `… Custom …`,
`… Virtual Workstation …`. None of them leaves a name of these tables, so none of them is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tradewind.model import InstanceType

PriceOf = Literal["on_demand", "spot", "reserved_1y", "reserved_3y"]
Unit = Literal["hour", "gib_hour", "gib_month"]

USAGE_TYPES: Mapping[str, PriceOf] = {
    "OnDemand": "on_demand",
    "Preemptible": "spot",
    "Commit1Yr": "reserved_1y",
    "Commit3Yr": "reserved_3y",
}
SSD = "SSD backed Local Storage"
# The price list has two names for the GPU of a3-megagpu: Plus in the Americas, Mega elsewhere.
_ALIASES = {
    "Nvidia H100 80GB Plus GPU": "Nvidia H100 80GB Mega GPU",
    "Nvidia H100 Mega 80GB GPU": "Nvidia H100 80GB Mega GPU",
    "Nvidia H200 141GB GPU": "H200 141GB GPU",
    "Local SSD": SSD,  # in commitments
}


@dataclass(frozen=True, slots=True)
class Family:
    """Types whose name starts with `prefix`: their host is billed as `host`, each GPU as `gpu`."""

    prefix: str
    host: str = ""  # "" where the price of the GPU includes the host
    gpu: str = ""
    ssd: bool = False  # has local SSDs that must be paid for
    on_demand: bool = True  # can be bought without a reservation


FAMILIES = (
    Family("a2-highgpu-", host="A2", gpu="Nvidia Tesla A100 GPU"),
    Family("a2-megagpu-", host="A2", gpu="Nvidia Tesla A100 GPU"),
    Family("a2-ultragpu-", host="A2", gpu="Nvidia Tesla A100 80GB GPU", ssd=True),
    Family("a3-highgpu-", host="A3", gpu="Nvidia H100 80GB GPU", ssd=True),
    Family("a3-edgegpu-", host="A3", gpu="Nvidia H100 80GB GPU", ssd=True),
    Family("a3-megagpu-", host="A3Plus", gpu="Nvidia H100 80GB Mega GPU", ssd=True),
    Family("a3-ultragpu-", host="A3Ultra", gpu="H200 141GB GPU", ssd=True),
    # The on-demand SKU of the B200 is there, but nobody is let at it: only DWS, spot, commitments.
    Family("a4-highgpu-", gpu="A4 Nvidia B200 (1 gpu slice)", on_demand=False),
    Family("g2-standard-", host="G2", gpu="Nvidia L4 GPU"),
    Family("g4-standard-", host="G4", gpu="RTX 6000 96GB"),
    Family("n1-", host="N1 Predefined"),
    Family("c3-", host="C3"),
    Family("c4-", host="C4"),
    Family("e2-", host="E2"),
    Family("n2-", host="N2"),
    Family("n4-", host="N4"),
)
# GPUs hung onto an N1 host (`n1-standard-8+1xT4`), by our name for them.
_N1_GPUS = {
    "P100": "Nvidia Tesla P100 GPU",
    "P4": "Nvidia Tesla P4 GPU",
    "T4": "Nvidia Tesla T4 GPU",
    "V100-16GB": "Nvidia Tesla V100 GPU",
}
# TPU → its part, and the chips in one of it. The old ones are sold by the board of four chips.
_TPUS = {
    "TPU-v2": ("Tpu-v2", 4),
    "TPU-v3": ("Tpu-v3", 4),
    "TPU-v4": ("Tpu-v4", 4),
    "TPU-v5e": ("TpuV5e", 1),
    "TPU-v5p": ("TpuV5p", 1),
    "TPU-v6e": ("TpuV6e", 1),
}
# One board of these has a price of its own; slices of more are billed as `Pod`, v4 always is.
_ONE_BOARD = ("TPU-v2", "TPU-v3")


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    vcpus: float | None
    memory_gb: float | None
    local_nvme_gb: float | None = None
    accelerator: str = ""
    accelerator_count: float = 0


def machines(known: Iterable[InstanceType]) -> Iterator[Machine]:
    """Everything that is still sold."""
    for kind in known:
        if kind.status != "retired":
            yield Machine(
                name=kind.name,
                vcpus=kind.vcpus,
                memory_gb=kind.memory_gb,
                local_nvme_gb=kind.local_nvme_gb,
                accelerator=kind.accelerator,
                accelerator_count=kind.accelerator_count,
            )


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    quantity: float


def parts(machine: Machine) -> list[Part] | str:
    """What the machine is billed for, first the part that decides where it is sold; or why we
    cannot tell."""
    count = machine.accelerator_count
    if machine.accelerator in _TPUS:
        name, chips = _TPUS[machine.accelerator]
        if chips > 1 and not (machine.accelerator in _ONE_BOARD and count == chips):
            name += " Pod"
        return [Part(name, count / chips)]
    family = family_of(machine.name)
    if not family:
        return "nothing tells which parts it is billed for"
    if count % 1:
        # A g4-standard-6 costs 15 % more than an eighth of a g4-standard-48.
        return "fractions of a GPU have prices of their own"
    gpu = family.gpu or _N1_GPUS.get(machine.accelerator, "")
    if bool(gpu) != bool(machine.accelerator):
        return f"nothing tells what its {machine.accelerator} is billed as"
    billed = [Part(gpu, count)] if gpu else []
    if family.host:
        if not machine.vcpus or not machine.memory_gb:
            return "its vCPUs and memory are not known"
        billed.append(Part(core(family.host), machine.vcpus))
        billed.append(Part(ram(family.host), machine.memory_gb))
    if family.ssd:
        if not machine.local_nvme_gb:
            return "the size of its local SSDs is not known"
        billed.append(Part(SSD, machine.local_nvme_gb))
    return billed


def family_of(instance_type: str) -> Family | None:
    return next((f for f in FAMILIES if instance_type.startswith(f.prefix)), None)


def core(host: str) -> str:
    return f"{host} Instance Core"


def ram(host: str) -> str:
    return f"{host} Instance Ram"


def _units() -> dict[str, Unit]:
    units: dict[str, Unit] = {SSD: "gib_month"}
    for family in FAMILIES:
        if family.host:
            units[core(family.host)], units[ram(family.host)] = "hour", "gib_hour"
        if family.gpu:
            units[family.gpu] = "hour"
    for name in (*_N1_GPUS.values(), *(name for name, _ in _TPUS.values())):
        units[name] = "hour"
    return units | {f"{name} Pod": "hour" for name in ("Tpu-v2", "Tpu-v3", "Tpu-v4")}


PARTS: Mapping[str, Unit] = _units()
"""Every part we can use, and what its price is for."""

_PLACE = re.compile(r"(?: running)? in [A-Z].*$")
_SPOT = re.compile(r"^(?:Spot )?Preemptible | attached to Spot Preemptible VMs?$")
_COMMITMENT = re.compile(r"^Commitment(?: v\d+)?: ")
_COMMITTED_HOST = re.compile(r"(?:(\w+) )?(Cpu|Core|Ram)")
_OLD_TPU = re.compile(r"(?i)(?:preemptible )?tpu-(v[234])\b(?!.*(?:commit|reserv))(.*)")
_SPECIAL = re.compile(
    r"^(?:Reserved|Commitment|Spot|Preemptible|DWS|Capacity) |attached to|Calendar Mode|Workstation"
)


def identify(description: str, usage_type: str) -> tuple[str, PriceOf] | None:
    """The part that a SKU is the price of, and on which market; None if it is not one of ours."""
    price_of = USAGE_TYPES.get(usage_type)
    if not price_of or "Calendar Mode" in description:
        return None
    committed = price_of in ("reserved_1y", "reserved_3y")
    old_tpu = _OLD_TPU.fullmatch(description)
    if old_tpu and not committed:
        # `Tpu-v3 Pod Accelerator USA`; the preemptible ones are filed as OnDemand.
        name = f"Tpu-{old_tpu[1].lower()}" + (" Pod" if "pod" in old_tpu[2].lower() else "")
        spot = price_of == "spot" or "preemptible" in description.lower()
        return (name, "spot" if spot else "on_demand") if name in PARTS else None
    name, commitments = _COMMITMENT.subn("", _PLACE.sub("", description))
    if bool(commitments) != committed:
        return None
    host = _COMMITTED_HOST.fullmatch(name)
    if committed and host:
        # The oldest family is the one without a name: `Commitment v1: Cpu in Americas for 1 Year`.
        name = (ram if host[2] == "Ram" else core)(host[1] or "N1 Predefined")
    name, preemptible = _SPOT.subn("", name)
    if preemptible and price_of == "on_demand":
        price_of = "spot"  # the spot SKUs of the B200 and of the SSD are filed as OnDemand
    if bool(preemptible) != (price_of == "spot"):
        return None
    name = _ALIASES.get(name, name)
    return (name, price_of) if name in PARTS else None


def plain_name(description: str) -> str | None:
    """What the SKU sells, if it sells that on plain terms: a chip that these tables may lack."""
    return None if _SPECIAL.search(description) else _PLACE.sub("", description)
