"""Where machines are: networks of their own, subnetworks in each region, and who is let in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.providers.changes import Line
from tradewind.providers.gcp.operations import last
from tradewind.providers.gcp.setup import fast
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.nets import Firewall, Network, Subnet


def told(calls: Calls, name: str) -> Any:
    """As Compute Engine tells it; None: there is none."""
    return calls.get("compute", _path(calls, f"global/networks/{name}"), "compute.networks.get")


def ours(calls: Calls, called: str, marked: str) -> dict[str, Any]:
    """All of a store's, by name, as Compute Engine tells them. One of such a name that is not
    marked as ours is somebody else's."""
    listed = calls.items("compute", _path(calls, "global/networks"), "compute.networks.list")
    found = {}
    for each in listed:
        name = str(each.get("name"))
        if name != called and not fast.is_one(called, name):
            continue
        if each.get("description") != marked:
            raise InvalidValue(
                f"the network {name} is not marked as ours ({marked!r}): it is something else's",
                hint="remove it, or write that into its description",
            )
        found[name] = each
    return found


def profiles(calls: Calls) -> list[str]:
    """The names of network profiles: which kinds of networks there are, by zone."""
    path = _path(calls, "global/networkProfiles")
    listed = calls.items("compute", path, "compute.networkProfiles.list")
    return [str(each.get("name")) for each in listed]


def subnet(calls: Calls, region: str, name: str) -> Any:
    path = _path(calls, f"regions/{region}/subnetworks/{name}")
    return calls.get("compute", path, "compute.subnetworks.get")


def subnets(calls: Calls, networks: Collection[str]) -> dict[tuple[str, str], Any]:
    """Of these networks, by region and name: as Compute Engine tells them."""
    listed = calls.aggregated(
        _path(calls, "aggregated/subnetworks"),
        "compute.subnetworks.list",
        "subnetworks",
        {"maxResults": "500"},
    )
    return {
        (last(each["region"]), str(each["name"])): each
        for each in listed
        if last(str(each.get("network", ""))) in networks
    }


def look(
    calls: Calls, wanted: Network, told: Any, there: Mapping[tuple[str, str], Any]
) -> list[Line]:
    """`told`, `there`: the network, and all subnetworks, as they were found."""
    line = Line("network", wanted.name, "", told is not None)
    if told is None:
        body: dict[str, Any] = {
            "name": wanted.name,
            "description": wanted.description,
            "autoCreateSubnetworks": False,
        }
        if wanted.mtu:
            body["mtu"] = wanted.mtu
        if wanted.profile:
            body["networkProfile"] = profile(calls.project, wanted)
        else:
            body["routingConfig"] = {"routingMode": "REGIONAL"}
        line.add(
            f"make it, with no way in{_kind(wanted)}",
            partial(calls.compute, "POST", "global/networks", "compute.networks.create", body),
        )
    lines = [line]
    for each in wanted.subnets:
        lines.append(_subnet(calls, wanted, each, there.get((each.region, each.name))))
    return lines + [_firewall(calls, wanted, each) for each in wanted.firewalls]


def profile(project: str, wanted: Network) -> str:
    return f"projects/{project}/global/networkProfiles/{wanted.profile}"


def _kind(wanted: Network) -> str:
    if wanted.profile:
        return f", by the profile {wanted.profile}"
    return f", with packets of {wanted.mtu:,} bytes" if wanted.mtu else ""


def _subnet(calls: Calls, network: Network, wanted: Subnet, told: Any) -> Line:
    line = Line("subnetwork", wanted.name, wanted.region, told is not None)
    path = f"regions/{wanted.region}/subnetworks"
    if told is None:
        body: dict[str, Any] = {
            "name": wanted.name,
            "description": wanted.description,
            "network": f"projects/{calls.project}/global/networks/{network.name}",
            "ipCidrRange": wanted.range,
        }
        reaching = ", with Private Google Access" if wanted.private_access else ""
        if wanted.private_access:
            body["privateIpGoogleAccess"] = True
        line.add(
            f"make it, {wanted.range}{reaching}",
            partial(calls.compute, "POST", path, "compute.subnetworks.create", body),
        )
    elif wanted.private_access and not told.get("privateIpGoogleAccess"):
        line.add(
            "Private Google Access",
            partial(
                calls.compute,
                "POST",
                f"{path}/{wanted.name}/setPrivateIpGoogleAccess",
                "compute.subnetworks.setPrivateIpGoogleAccess",
                {"privateIpGoogleAccess": True},
            ),
        )
    return line


def _firewall(calls: Calls, network: Network, wanted: Firewall) -> Line:
    path = f"global/firewalls/{wanted.name}"
    told = calls.get("compute", _path(calls, path), "compute.firewalls.get")
    line = Line("firewall rule", wanted.name, "", told is not None)
    allowed: dict[str, Any] = {"IPProtocol": wanted.protocol}
    if wanted.ports:
        allowed["ports"] = list(wanted.ports)
    body = {
        "name": wanted.name,
        "description": wanted.description,
        "network": f"projects/{calls.project}/global/networks/{network.name}",
        "direction": "INGRESS",
        "sourceRanges": list(wanted.sources),
        "allowed": [allowed],
    }
    if told is None:
        line.add(
            f"make it: {wanted.words}",
            partial(calls.compute, "POST", "global/firewalls", "compute.firewalls.create", body),
        )
    elif (
        set(told.get("sourceRanges") or ()) != set(wanted.sources)
        or (told.get("allowed") or []) != [allowed]
        or told.get("disabled")
    ):
        kept = ("name", "sourceRanges", "allowed")
        change = {key: body[key] for key in kept} | {"disabled": False}
        line.add(
            wanted.words,
            partial(calls.compute, "PATCH", path, "compute.firewalls.update", change),
        )
    return line


def rules(calls: Calls, networks: Collection[str]) -> list[Any]:
    """All firewall rules of some networks, whoever made them."""
    path = _path(calls, "global/firewalls")
    listed = calls.items("compute", path, "compute.firewalls.list")
    return [each for each in listed if last(str(each.get("network", ""))) in networks]


def _path(calls: Calls, path: str) -> str:
    return f"/projects/{calls.project}/{path}"
