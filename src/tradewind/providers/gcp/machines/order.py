"""A purchase as Compute Engine is asked for it: the body of `instances.insert` where it is one
machine, of `instances.bulkInsert` where it is several, all of them or none. Pure.

The two are almost the same. A single insert names things by their addresses in the zone; in bulk
they are named, and the zone is Google's to choose where the request is the region's.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tradewind.model.run import Request, Way
from tradewind.providers.base import Refused
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.credentials import SCOPE
from tradewind.providers.gcp.facts import (
    FLEX_LONGEST_S,
    FLEX_START,
    FLEX_WAIT_S,
    IMAGES,
    LONGEST_S,
)
from tradewind.providers.gcp.footprint import Footprint, owner_of, setup_command
from tradewind.providers.gcp.machines.types import MRDMA, Kind

SPARE_S = 1200
"""How much later than the supervisor's own stop Google's comes: the script's (boot/told.py) comes
before it."""
LEAST_GB = 50
MOST_BYTES = 256 * 1024
"""Of one item of metadata."""
HYPERDISK = {"provisionedIops": "3000", "provisionedThroughput": "140"}
"""So much is in the price of Hyperdisk Balanced ("Baseline performance"). Where nothing is said,
Google chooses, and charges for what is above."""
MARKETS = {
    "on_demand": "STANDARD",
    "spot": "SPOT",
    "reserved": "STANDARD",
    FLEX_START: "FLEX_START",
}


class Reserved(Struct, frozen=True, kw_only=True):
    """Capacity that the user owns already."""

    name: str
    specific: bool
    """Only machines that name it are taken from it; else any that fits is."""


class Order(Struct, frozen=True, kw_only=True):
    """What is sent, and where."""

    place: str
    """zones/ZONE or regions/REGION."""
    bulk: bool
    body: dict[str, Any]
    request_id: str
    names: tuple[str, ...]
    """By rank."""


def order(
    request: Request,
    store_url: str,
    footprint: Footprint,
    *,
    kind: Kind,
    script: str,
    reservation: Reserved | None = None,
    policy: str = "",
) -> Order:
    """`policy`: the name of the placement policy, made before."""
    way, owner = request.way, owner_of(store_url)
    _check(request, footprint, store_url, script)
    names = tuple(labels.made(owner, request, rank).text for rank in range(way.nodes))
    bulk = way.nodes > 1 or not way.zone
    made_for = labels.labels(owner, request)
    properties: dict[str, Any] = {
        "labels": made_for,
        "metadata": _metadata(request, script),
        "networkInterfaces": _cards(request, footprint, kind),
        "scheduling": _scheduling(request, kind),
        "serviceAccounts": [{"email": footprint.service_account, "scopes": [SCOPE]}],
        "reservationAffinity": _affinity(reservation),
    } | _hardware(request, footprint, kind, made_for, bulk=bulk)
    if policy:
        region = f"projects/{footprint.project}/regions/{way.region}"
        properties["resourcePolicies"] = [policy if bulk else f"{region}/resourcePolicies/{policy}"]
    place = f"zones/{way.zone}" if way.zone else f"regions/{way.region}"
    if bulk:
        body: dict[str, Any] = {
            "count": str(way.nodes),
            "minCount": str(way.nodes),  # all or none
            "perInstanceProperties": {name: {} for name in names},
            "instanceProperties": properties,
        }
        if not way.zone:
            allowed = footprint.zones.get(way.region, ())
            body["locationPolicy"] = {
                "targetShape": "ANY_SINGLE_ZONE",
                "locations": {f"zones/{zone}": {"preference": "ALLOW"} for zone in allowed},
            }
    else:
        body = {"name": names[0]} | properties
        if way.market == FLEX_START:
            body["params"] = {"requestValidForDuration": {"seconds": str(FLEX_WAIT_S)}}
    return Order(
        place=place,
        bulk=bulk,
        body=body,
        request_id=labels.request_id(owner, request),
        names=names,
    )


def policy_body(request: Request, store_url: str) -> dict[str, Any]:
    """Of the placement policy of a leg: its name is that of its machines, without a rank."""
    return {
        "name": labels.made(owner_of(store_url), request, 0).stem,
        "description": f"Leg {request.leg} of {request.run_id}",
        "groupPlacementPolicy": {"collocation": "COLLOCATED"},
    }


def wants_policy(request: Request, kind: Kind, reservation: Reserved | None) -> bool:
    """Machines that talk. What is reserved stands where it was reserved."""
    way = request.way
    return way.nodes > 1 and kind.gpus and kind.compact and reservation is None


def waits(request: Request) -> bool:
    """It may be a while until its machine is there. Only single ones wait at Google's: several are
    there at once, or are refused."""
    return request.way.market == FLEX_START and request.way.nodes == 1 and bool(request.way.zone)


def _check(request: Request, footprint: Footprint, store_url: str, script: str) -> None:
    way = request.way
    if way.region not in footprint.subnets:
        raise Refused(
            "not_found",
            f"nothing is set up in {way.region}",
            hint=setup_command(store_url, way.region),
        )
    zones = footprint.zones.get(way.region, ())
    if way.zone and way.zone not in zones:
        raise Refused(
            "not_found",
            f"machines are not set up for {way.zone}",
            hint=f"set up are {', '.join(zones) or 'none'};"
            f" {setup_command(store_url, way.region)} adds those that are new",
        )
    if way.market not in MARKETS:
        raise Refused("not_found", f"Google sells nothing on the {way.market} market")
    if len(script.encode()) > MOST_BYTES:
        raise Refused("not_allowed", "what a machine is told is more than Compute Engine takes")


def _metadata(request: Request, script: str) -> dict[str, Any]:
    items = labels.stamps(request) | {
        "startup-script": script,
        "block-project-ssh-keys": "true",
        "enable-oslogin": "TRUE",  # shells through Identity-Aware Proxy, by IAM alone
        "serial-port-enable": "FALSE",
    }
    return {"items": [{"key": key, "value": value} for key, value in items.items()]}


def _hardware(
    request: Request, footprint: Footprint, kind: Kind, made_for: dict[str, str], *, bulk: bool
) -> dict[str, Any]:
    zone = request.way.zone

    def named(what: str, name: str) -> str:
        return name if bulk else f"zones/{zone}/{what}/{name}"

    image = footprint.image or IMAGES.get((kind.architecture, kind.gpus), "")
    if not image:
        raise Refused(
            "not_allowed",
            f"none of our images drives the GPUs of {kind.machine_type}",
            hint="tradewind setup gcp --image projects/PROJECT/global/images/family/FAMILY",
        )
    made: dict[str, Any] = {
        "machineType": named("machineTypes", kind.machine_type),
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "type": "PERSISTENT",
                "initializeParams": {
                    "sourceImage": image,
                    "diskSizeGb": str(max(request.way.disk_gb, LEAST_GB)),
                    "diskType": named("diskTypes", kind.disk_type),
                    "labels": made_for,
                    **(HYPERDISK if kind.hyperdisk else {}),
                },
            }
        ],
    }
    if kind.accelerator:
        type_ = kind.accelerator if bulk else (
            f"projects/{footprint.project}/zones/{zone}/acceleratorTypes/{kind.accelerator}"
        )  # fmt: skip
        made["guestAccelerators"] = [{"acceleratorType": type_, "acceleratorCount": kind.count}]
    return made


def _cards(request: Request, footprint: Footprint, kind: Kind) -> list[dict[str, Any]]:
    """The first reaches everybody. Where setup has made networks for GPUDirect, machines that talk
    have a card in each of them as well."""
    region = f"projects/{footprint.project}/regions/{request.way.region}"

    def one(subnet: str, nic_type: str) -> dict[str, Any]:
        card = {"subnetwork": f"{region}/subnetworks/{subnet}"}
        return card | ({"nicType": nic_type} if nic_type else {})

    first = one(footprint.subnets[request.way.region], "GVNIC" if kind.gvnic else "")
    if footprint.public:
        first |= {
            "accessConfigs": [
                {"type": "ONE_TO_ONE_NAT", "name": "External NAT", "networkTier": "PREMIUM"}
            ]
        }
    fast = fast_subnets(request.way, footprint, kind)
    return [first, *(one(subnet, sort) for subnet, sort in zip(fast, kind.cards, strict=False))]


def fast_subnets(way: Way, footprint: Footprint, kind: Kind) -> tuple[str, ...]:
    """One for each of its cards; none where a machine is alone, or too few are set up. A RoCE
    network is one zone's: where Google chooses the zone there is none."""
    place = way.zone if kind.fast_type == MRDMA else way.region
    there = footprint.fast_subnets.get(place, ())
    if way.nodes == 1 or len(there) < len(kind.cards):
        return ()
    return there[: len(kind.cards)]


def _scheduling(request: Request, kind: Kind) -> dict[str, Any]:
    market = request.way.market
    longest_s = FLEX_LONGEST_S if market == FLEX_START else LONGEST_S
    stays = market in ("spot", FLEX_START) or kind.gpus or request.way.nodes > 1
    return {
        "provisioningModel": MARKETS[market],
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": str(min(request.hard_stop_s + SPARE_S, longest_s))},
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE" if stays else "MIGRATE",
    }


def _affinity(reservation: Reserved | None) -> dict[str, Any]:
    """What is not meant for a run is left to its owner."""
    if reservation is None:
        return {"consumeReservationType": "NO_RESERVATION"}
    if not reservation.specific:
        return {"consumeReservationType": "ANY_RESERVATION"}
    return {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [reservation.name],
    }
