"""Networks of a kind of their own: network profiles, and what may be in which network.

By Google's documentation ("RDMA network profiles", "Cloud NGFW for RoCE VPC networks", "Multiple
network interfaces"). A RoCE network is of one zone, takes cards of RDMA alone and no firewall rule;
each card of an instance is in a network of its own, but for those of RDMA, and their ranges do not
overlap. Known lies: the zones are a few of those that have one; profiles have no features; only
types with GPUs are counted for how many cards they take.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

from tests.cloud.faces.google import listing, orders, places
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.problems import Problem, unknown
from tests.cloud.faces.google.state import LINK

ROCE_ZONES = ("us-central1-b", "us-east4-b", "europe-west1-b", "europe-west4-b")
_SUFFIX = "-vpc-roce"
_MOST_CARDS = {
    "a3-highgpu-8g": {"GVNIC": 5},
    "a3-megagpu-8g": {"GVNIC": 9},
    "a3-ultragpu-8g": {"GVNIC": 2, "MRDMA": 8},
    "a4-highgpu-8g": {"GVNIC": 2, "MRDMA": 8},
}
Thing = dict[str, Any]


def profile(project: str, zone: str) -> Thing:
    name = f"{zone}{_SUFFIX}"
    return {
        "kind": "compute#networkProfile",
        "name": name,
        "location": {"name": zone, "scope": "ZONE"},
        "profileType": {"networkType": "RDMA", "rdmaSubtype": "ROCE"},
        "selfLink": f"{LINK}projects/{project}/global/networkProfiles/{name}",
    }


def get(call: GoogleCall) -> Thing:
    for zone in ROCE_ZONES:
        if call.params["networkProfile"] == f"{zone}{_SUFFIX}":
            return profile(call.project, zone)
    raise unknown(f"projects/{call.project}/global/networkProfiles/{call.params['networkProfile']}")


def list_(call: GoogleCall) -> Thing:
    there = [profile(call.project, zone) for zone in ROCE_ZONES]
    return listing.page(listing.kept(there, call.params.get("filter", "")), call.params)


def zone_of(network: Thing) -> str:
    """Of a RoCE network; "": it is a usual one."""
    told: str = network.get("networkProfile", "")
    return told.rpartition("/")[2].removesuffix(_SUFFIX)


def check_new(collection: str, told: Thing, region: str, named: Callable[[str], Thing]) -> None:
    """`named`: the network that a link refers to."""
    if collection == "networks":
        mtu = int(told.get("mtu", 1460))
        if not 1300 <= mtu <= 8896:
            raise orders.bad("resource.mtu", mtu, "Must be between 1300 and 8896.")
        zone = zone_of(told)
        if told.get("networkProfile") and zone not in ROCE_ZONES:
            raise Problem(404, f"The resource '{told['networkProfile']}' was not found")
        if zone and told.get("autoCreateSubnetworks"):
            raise orders.bad("resource.autoCreateSubnetworks", True, "The profile forbids it.")
    if collection not in ("subnetworks", "firewalls"):
        return
    zone = zone_of(named(told["network"]))
    if zone and collection == "firewalls":
        words = "VPC firewall rules are not supported in a network with this network profile."
        raise orders.bad("resource.network", told["network"], words)
    if zone and places.region_of(zone) != region:
        words = f"The network profile restricts subnetworks to {places.region_of(zone)}."
        raise orders.bad("resource.region", region, words)


def check_overlap(told: Thing, others: list[Thing]) -> None:
    """Subnetworks of one network."""
    for each in others:
        if ip_network(each["ipCidrRange"]).overlaps(ip_network(told["ipCidrRange"])):
            words = f"IP range conflicts with that of {each['name']}."
            raise orders.bad("resource.ipCidrRange", told["ipCidrRange"], words)


def check_cards(
    machine_type: str, zone: str, cards: list[tuple[Thing, Thing]], named: Callable[[str], Thing]
) -> None:
    """Each with the subnetwork that it is in."""
    counted: dict[str, int] = {}
    seen: set[str] = set()
    for number, (card, subnet) in enumerate(cards):
        at = f"resource.networkInterfaces[{number}]"
        sort, link = card.get("nicType", ""), subnet["network"]
        roce = zone_of(named(link))
        counted[sort] = counted.get(sort, 0) + 1
        if (sort == "MRDMA") is not bool(roce):
            raise orders.bad(f"{at}.nicType", sort, "The network does not take such interfaces.")
        if roce and zone and roce != zone:
            raise orders.bad(f"{at}.network", link, f"The network is restricted to zone {roce}.")
        if not roce and link in seen:
            raise orders.bad(f"{at}.network", link, "Networks must be distinct.")
        seen.add(link)
    if len(cards) > 1:
        for place, (_, subnet) in enumerate(cards):
            check_overlap(subnet, [each for _, each in cards[:place]])
    most = _MOST_CARDS.get(machine_type, {})
    for sort, count in counted.items():
        if most and count > most.get(sort, 0):
            words = f"{machine_type} takes {most.get(sort, 0)} of {sort}."
            raise orders.bad("resource.networkInterfaces", count, words)
