"""Whether a machine could be launched: its network, and what it starts from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.base.units import format_names
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.checks.findings import found
from tradewind.providers.gcp.facts import IMAGES
from tradewind.providers.gcp.footprint import Footprint, setup_command
from tradewind.providers.gcp.limits import images
from tradewind.providers.gcp.setup import network
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.nets import INSIDE
from tradewind.providers.gcp.setup.things import IAP_RANGE


def network_checks(calls: Calls, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    told = network.told(calls, footprint.network)
    if told is None:
        yield found(
            BROKEN,
            f"the network {footprint.network} is not there",
            why="no machine can be launched",
            todo=setup_command(store_url),
        )
        return
    ranges = []
    well = True
    for region, name in footprint.subnets.items():
        subnet = network.subnet(calls, region, name)
        if subnet is None:
            well = False
            yield found(
                BROKEN,
                f"{region}: the subnetwork {name} is not there",
                why="no machine can be launched in it",
                todo=setup_command(store_url, region),
            )
        elif not subnet.get("privateIpGoogleAccess"):
            well = False
            yield found(
                WARNING if footprint.public else BROKEN,
                f"{region}: the subnetwork {name} has no Private Google Access",
                why="machines without an address of their own do not reach the bucket",
                todo=setup_command(store_url, region),
            )
        if subnet is not None:
            ranges.append(str(subnet.get("ipCidrRange")))
    for found_lacking in _fast_checks(calls, footprint, store_url):
        well = False
        yield found_lacking
    rules = network.rules(calls, {footprint.network})
    for rule in rules:
        sources = sorted(
            each
            for each in set(_lets_in(rule)) - {*ranges, IAP_RANGE}
            if not each.startswith(INSIDE)
        )
        if sources:
            well = False
            yield found(
                WARNING,
                f"the firewall rule {rule['name']} lets {', '.join(sources)} in",
                why="nothing of ours listens to anybody but the machines of one store",
                todo=f"gcloud compute firewall-rules delete {rule['name']} --project"
                f" {calls.project}",
            )
    if ranges:
        inside = {source for rule in rules for source in _lets_in(rule)}
        cut_off = sorted(set(ranges) - inside)
        if cut_off:
            well = False
            yield found(
                WARNING,
                f"no firewall rule lets machines in {', '.join(cut_off)} reach each other",
                why="several machines cannot work together",
                todo=setup_command(store_url),
            )
    if well:
        many = f"{len(ranges)} subnetworks" if len(ranges) != 1 else "1 subnetwork"
        yield found(OK, f"the network {footprint.network} with {many}, and no one else is let in")


def _fast_checks(calls: Calls, footprint: Footprint, store_url: str) -> Iterator[Finding]:
    for place, names in footprint.fast_subnets.items():
        region = place if place in footprint.subnets else place.rpartition("-")[0]
        missing = [name for name in names if network.subnet(calls, region, name) is None]
        if missing:
            yield found(
                BROKEN,
                f"{place}: subnetworks for GPUDirect are not there: {format_names(missing, 3)}",
                why="machines that have cards in them are refused there",
                todo=setup_command(store_url, region),
            )


def _lets_in(rule: Any) -> Iterator[str]:
    if rule.get("direction", "INGRESS") != "INGRESS" or rule.get("disabled"):
        return
    if not rule.get("allowed"):
        return
    named = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    sources = [str(each) for key in named for each in rule.get(key) or ()]
    yield from sources or ["0.0.0.0/0"]


def image_checks(google: Google, footprint: Footprint) -> Iterator[Finding]:
    wanted = [footprint.image] if footprint.image else list(dict.fromkeys(IMAGES.values()))
    missing = [image for image in wanted if not images.exists(google, image)]
    for image in missing:
        yield found(
            BROKEN,
            f"there is no image {image}, or it is not shared with this project",
            why="no machine can start from it",
            todo="tradewind setup gcp --image names another; `gcloud compute images list` shows"
            " what there is",
        )
    plain = images.without_driver(footprint.image) if footprint.image else ""
    if plain and not missing:
        yield found(
            WARNING, plain, why="machines with GPUs are left out of runs", todo=images.OWN_IMAGE
        )
    elif not missing:
        names = ", ".join(image.rpartition("/")[2] for image in wanted)
        yield found(OK, f"images: {names}")
