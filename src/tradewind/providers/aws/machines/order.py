"""A purchase as EC2 is asked for it: the parameters of RunInstances. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct

from tradewind.model.run import Request
from tradewind.providers.aws.footprint import (
    LAUNCH,
    LEG,
    OWNER,
    PREFIX,
    RUN,
    Footprint,
    Network,
    tag_list,
)
from tradewind.providers.aws.limits.images import Image
from tradewind.providers.aws.limits.zones import TypeFacts
from tradewind.providers.base import Refused

_LEAST_GB = 20
"""Beyond what the image itself takes: a job that cannot install anything does not begin."""


class Reservation(Struct, frozen=True, kw_only=True):
    """Capacity that the user owns already."""

    reservation_id: str
    block: bool
    """For a fixed time (a capacity block), which is bought in another way."""
    group: str = ""
    """The placement group that it was made in: machines elsewhere do not match it."""


def token(request: Request, owner: str) -> str:
    """The same for whoever asks again; another in another zone, and for another store of the same
    account. At most 64 characters."""
    text = "\n".join((owner, request.launch_id, request.way.zone))
    return f"tw-{hashlib.sha256(text.encode()).hexdigest()[:56]}"


def group_name(request: Request, owner: str) -> str:
    """Of the placement group and the security group of a leg."""
    return f"{PREFIX}{request.launch_id}-{token(request, owner)[3:11]}"


def group_tags(request: Request, owner: str, kind: str) -> list[dict[str, Any]]:
    named = {OWNER: owner, RUN: request.run_id, LAUNCH: request.launch_id}
    return [{"ResourceType": kind, "Tags": tag_list(named)}]


def talks(request: Request) -> bool:
    """With other machines of the leg: they need a security group that admits one another."""
    return request.way.nodes > 1


def talks_fast(request: Request, kind: TypeFacts) -> bool:
    """By EFA, with each other."""
    return talks(request) and kind.efa


def wants_group(request: Request, kind: TypeFacts, reservation: Reservation | None) -> bool:
    """One of its own. What is reserved stands where it was reserved, and blocks stand together."""
    return talks_fast(request, kind) and reservation is None


def parameters(
    request: Request,
    owner: str,
    footprint: Footprint,
    *,
    kind: TypeFacts,
    image: Image,
    user_data: bytes,
    reservation: Reservation | None = None,
    security_group: str = "",
) -> dict[str, Any]:
    """`security_group`: of machines that talk; others are behind setup's, which admits nobody."""
    way = request.way
    network = footprint.regions[way.region]
    made: dict[str, Any] = {
        "ClientToken": token(request, owner),
        "MinCount": way.nodes,  # all or none
        "MaxCount": way.nodes,
        "ImageId": image.id,
        "InstanceType": way.instance_type,
        "IamInstanceProfile": {"Name": footprint.instance_profile},
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            # The role's keys are for the machine: not for what runs behind a network of its own
            # on it, as containers do unless they use the host's.
            "HttpPutResponseHopLimit": 1,
        },
        "BlockDeviceMappings": [
            {
                "DeviceName": image.root_device,
                "Ebs": {
                    "VolumeSize": max(way.disk_gb, image.root_gb + _LEAST_GB),
                    "VolumeType": "gp3",
                    "Encrypted": True,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "NetworkInterfaces": _interfaces(
            request, network, kind, security_group or network.security_group
        ),
        "TagSpecifications": _tags(request, owner),
        "UserData": user_data,
    }
    if wants_group(request, kind, reservation):
        made["Placement"] = {"GroupName": group_name(request, owner)}
    elif reservation is not None and reservation.group and not reservation.block:
        made["Placement"] = {"GroupName": reservation.group}
    if footprint.key_pair:
        made["KeyName"] = footprint.key_pair
    if way.market == "spot":
        made["InstanceMarketOptions"] = {
            "MarketType": "spot",
            "SpotOptions": {
                "SpotInstanceType": "one-time",
                "InstanceInterruptionBehavior": "terminate",
            },
        }
    if reservation is not None:
        made["CapacityReservationSpecification"] = {
            "CapacityReservationTarget": {"CapacityReservationId": reservation.reservation_id}
        }
        if reservation.block:
            made["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    return made


def _interfaces(
    request: Request, network: Network, kind: TypeFacts, security_group: str
) -> list[dict[str, Any]]:
    """As AWS has it for several cards (efa-acc-inst-types in its guide): the first interface is a
    plain one, and each card has one for EFA alone, which needs no address.

    EC2 gives no public address to a machine with several interfaces. So where machines need such
    an address they have one, for EFA and all else."""
    way = request.way
    subnet = network.subnets.get(way.zone)
    if subnet is None:
        raise Refused(
            "not_found",
            f"there is no subnet for machines in {way.zone or way.region}",
            hint=f"set up are {', '.join(sorted(network.subnets))}; tradewind setup aws adds it",
        )

    def one(card: int, device: int, made_for: str) -> dict[str, Any]:
        return {
            "DeviceIndex": device,
            "NetworkCardIndex": card,
            "SubnetId": subnet,
            "Groups": [security_group],
            "DeleteOnTermination": True,
            "InterfaceType": made_for,
        }

    fast = talks_fast(request, kind)
    if fast and kind.efa_cards and not network.public:
        others = [one(card, 0 if card else 1, "efa-only") for card in kind.efa_cards]
        return [one(0, 0, "interface"), *others]
    alone = one(0, 0, "efa" if fast and kind.efa_first else "interface")
    return [alone | {"AssociatePublicIpAddress": network.public}]


def _tags(request: Request, owner: str) -> list[dict[str, Any]]:
    named = {
        "Name": f"tradewind {request.run_id}",
        OWNER: owner,
        RUN: request.run_id,
        LEG: str(request.leg),
        LAUNCH: request.launch_id,
    }
    kinds = ["instance", "volume", "network-interface"]
    if request.way.market == "spot":
        kinds.append("spot-instances-request")
    return [{"ResourceType": kind, "Tags": tag_list(named)} for kind in kinds]
