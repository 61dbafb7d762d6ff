"""Regions and zones of an account, which zones offer a type, and what a type is.

A zone is known by its id (use1-az1), the same for everybody; its name (us-east-1a) is this
account's. Everything is asked at most once an hour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from msgspec import Struct

from tradewind.base.units import format_names
from tradewind.providers import remembered
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Network
from tradewind.providers.aws.troubles import explained

_MOST_NAMES = 100
"""Values of one filter; EC2 takes 200."""


class Zone(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    region: str
    usable: bool = True
    """It is up, and the account has switched it on."""


class TypeFacts(Struct, frozen=True, kw_only=True):
    """What a launch must know of an instance type."""

    name: str
    vcpus: int
    memory_mib: int
    architecture: str
    """x86_64 or arm64"""
    efa: bool = False
    efa_cards: tuple[int, ...] = ()
    """The network cards that take an interface for EFA and nothing else, as many as may have one.
    Not all do: the first of p6-b300 has no EFA."""
    efa_first: bool = False
    """The first card takes one that is for EFA and all else."""
    gpus: int = 0
    gpu: str = ""
    gpu_maker: str = ""
    gpu_share: float = 1.0
    """How much of a GPU each is: g6f has an eighth of one."""
    neurons: int = 0
    spot: bool = True
    """It is sold on the spot market, somewhere."""

    @property
    def accelerator(self) -> str:
        """gpu, neuron or cpu: which image it needs (images.py)."""
        return "gpu" if self.gpus else "neuron" if self.neurons else "cpu"


def regions(account: Account) -> dict[str, bool]:
    """Every region that there is, and whether the account has it switched on."""

    def ask() -> dict[str, bool]:
        with explained("asking AWS for its regions"):
            ec2 = account.client("ec2", account.region or "us-east-1")
            told = ec2.describe_regions(AllRegions=True)["Regions"]
        return {it["RegionName"]: it.get("OptInStatus") != "not-opted-in" for it in told}

    return remembered.one(account, ("regions",), ask)


def zones(account: Account, region: str) -> dict[str, Zone]:
    """Of a region, by id; local zones and Wavelength zones are not among them."""

    def ask() -> dict[str, Zone]:
        with explained(f"asking AWS for the zones of {region}"):
            told = account.client("ec2", region).describe_availability_zones()
        return {
            it["ZoneId"]: Zone(
                id=it["ZoneId"],
                name=it["ZoneName"],
                region=region,
                usable=it.get("State", "available") == "available"
                and it.get("OptInStatus") != "not-opted-in",
            )
            for it in told["AvailabilityZones"]
            if it.get("ZoneType", "availability-zone") == "availability-zone"
        }

    return remembered.one(account, ("zones", region), ask)


def offering(account: Account, region: str, types: Collection[str]) -> dict[str, frozenset[str]]:
    """The ids of the zones that offer each type; a type that none offers has an empty set."""

    def ask(names: list[str]) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {name: set() for name in names}
        for some in _some(names):
            with explained(f"asking AWS which zones of {region} offer {format_names(some)}"):
                pages = (
                    account.client("ec2", region)
                    .get_paginator("describe_instance_type_offerings")
                    .paginate(
                        LocationType="availability-zone-id",
                        Filters=[{"Name": "instance-type", "Values": some}],
                    )
                )
                for page in pages:
                    for it in page["InstanceTypeOfferings"]:
                        found.setdefault(it["InstanceType"], set()).add(it["Location"])
        return {name: frozenset(ids) for name, ids in found.items()}

    return remembered.many(account, ("offering", region), types, ask)


def facts(account: Account, region: str, types: Collection[str]) -> dict[str, TypeFacts]:
    """A type that this region does not know is left out."""

    def ask(names: list[str]) -> dict[str, TypeFacts]:
        found: dict[str, TypeFacts] = {}
        for some in _some(names):
            with explained(f"asking AWS about {format_names(some)}"):
                # By a filter: naming one that is not there would fail for all.
                pages = (
                    account.client("ec2", region)
                    .get_paginator("describe_instance_types")
                    .paginate(Filters=[{"Name": "instance-type", "Values": some}])
                )
                for page in pages:
                    for it in page["InstanceTypes"]:
                        found[it["InstanceType"]] = _facts(it)
        return found

    return remembered.many(account, ("facts", region), types, ask)


def places(
    account: Account, region: str, network: Network, instance_type: str, zone: str = ""
) -> list[str]:
    """The ids of the zones in which it can be launched: they have a subnet of ours, are up, and
    offer the type. `zone`: no other than this one."""
    there = zones(account, region)
    selling = offering(account, region, [instance_type]).get(instance_type, frozenset())
    return sorted(
        name
        for name in network.subnets
        if name in selling and name in there and there[name].usable and zone in ("", name)
    )


def _facts(told: dict[str, Any]) -> TypeFacts:
    network = told.get("NetworkInfo", {})
    gpus = told.get("GpuInfo", {}).get("Gpus", [])
    architectures = told.get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    neurons = told.get("NeuronInfo", {}).get("NeuronDevices", [])
    inference = told.get("InferenceAcceleratorInfo", {}).get("Accelerators", [])
    return TypeFacts(
        name=told["InstanceType"],
        vcpus=told.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        memory_mib=told.get("MemoryInfo", {}).get("SizeInMiB", 0),
        architecture="arm64" if "arm64" in architectures else "x86_64",
        efa=bool(network.get("EfaSupported")),
        efa_cards=_cards(network, "efa-only"),
        efa_first=0 in _cards(network, "efa"),
        gpus=sum(gpu.get("Count", 0) or gpu.get("LogicalGpuCount", 0) for gpu in gpus),
        gpu=gpus[0].get("Name", "") if gpus else "",
        gpu_maker=gpus[0].get("Manufacturer", "") if gpus else "",
        gpu_share=min((gpu.get("GpuPartitionSize", 1.0) for gpu in gpus), default=1.0),
        neurons=sum(it.get("Count", 0) for it in neurons or inference),
        spot="spot" in told.get("SupportedUsageClasses", ["spot"]),
    )


def _cards(network: dict[str, Any], kind: str) -> tuple[int, ...]:
    """Those that take this kind of interface for EFA."""
    if not network.get("EfaSupported"):
        return ()
    many = network.get("MaximumNetworkCards", 1)
    cards = network.get("NetworkCards") or [{"NetworkCardIndex": n} for n in range(many)]
    most = network.get("EfaInfo", {}).get("MaximumEfaInterfaces", len(cards))
    if any("InterfaceTypes" in card for card in cards):
        cards = [card for card in cards if kind in card.get("InterfaceTypes", ())]
        return tuple(sorted(card.get("NetworkCardIndex", 0) for card in cards))[:most]
    # Not told: it is the first cards that have none.
    return tuple(sorted(card.get("NetworkCardIndex", 0) for card in cards))[-most:]


def _some(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _MOST_NAMES):
        yield names[start : start + _MOST_NAMES]
