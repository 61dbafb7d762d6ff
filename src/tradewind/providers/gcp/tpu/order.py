"""A purchase as tpu.googleapis.com is asked for it: a node, which is there at once or refused, or a
queued resource, which waits for one. Pure.

Nothing ends a node but deleting it: the API knows no time limit, and what a shutdown from inside
does to its bill Google does not say.
"""

from __future__ import annotations

from typing import Any

from tradewind.model.run import Request
from tradewind.providers.base import Refused
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.credentials import SCOPE
from tradewind.providers.gcp.facts import QUEUED
from tradewind.providers.gcp.footprint import Footprint, owner_of, setup_command
from tradewind.providers.gcp.machines.order import MOST_BYTES
from tradewind.providers.gcp.tpu.kinds import kind

MARKETS = ("on_demand", "spot", "reserved", QUEUED)
SLICE = "tradewind-slice"
"""In the metadata of each worker: the name of its slice, which its own name has nothing of."""
WAIT_S = 7 * 86_400
"""For so long a queued resource looks for its slice."""


def name(request: Request, store_url: str) -> str:
    """Of its slice, once in a zone. It ends in the rank of its last worker, so that it still says
    how many there were when all else is gone."""
    return labels.made(owner_of(store_url), request, request.way.nodes - 1).text


def node(request: Request, store_url: str, footprint: Footprint, script: str) -> dict[str, Any]:
    _check(request, footprint, store_url, script)
    way, of = request.way, kind(request.way.instance_type)
    project = f"projects/{footprint.project}"
    subnet = footprint.subnets[way.region]
    made: dict[str, Any] = {
        "acceleratorType": of.accelerator_type,
        "runtimeVersion": of.runtime,
        "description": f"Leg {request.leg} of {request.run_id}"[:512],
        "networkConfig": {
            "network": f"{project}/global/networks/{footprint.network}",
            "subnetwork": f"{project}/regions/{way.region}/subnetworks/{subnet}",
            "enableExternalIps": footprint.public,
        },
        "serviceAccount": {"email": footprint.service_account, "scope": [SCOPE]},
        "labels": labels.labels(owner_of(store_url), request),
        "metadata": labels.stamps(request)
        | {
            SLICE: name(request, store_url),
            "startup-script": script,
            "block-project-ssh-keys": "true",
            "enable-oslogin": "TRUE",
        },
    }
    if way.market == "spot":
        made["schedulingConfig"] = {"spot": True}
    elif way.market == "reserved":
        made["schedulingConfig"] = {"reserved": True}
    return made


def queued(request: Request, store_url: str, footprint: Footprint, script: str) -> dict[str, Any]:
    """The same, to be waited for."""
    spec = {
        "parent": f"projects/{footprint.project}/locations/{request.way.zone}",
        "nodeId": name(request, store_url),
        "node": node(request, store_url, footprint, script),
    }
    return {
        "tpu": {"nodeSpec": [spec]},
        "queueingPolicy": {"validUntilDuration": f"{WAIT_S}s"},
    }


def _check(request: Request, footprint: Footprint, store_url: str, script: str) -> None:
    way, workers = request.way, kind(request.way.instance_type).workers
    if way.region not in footprint.subnets or way.zone not in footprint.zones.get(way.region, ()):
        raise Refused(
            "not_found",
            f"TPU slices are not set up for {way.zone or way.region}",
            hint=setup_command(store_url, way.region),
        )
    if way.market not in MARKETS:
        raise Refused("not_found", f"Google sells no TPUs on the {way.market} market")
    if way.nodes != workers:
        raise Refused(
            "not_allowed",
            f"a slice {way.instance_type} has {workers} workers, and {way.nodes} machines are asked"
            " for",
            hint="one slice is one leg; a larger one has more chips",
        )
    if len(script.encode()) > MOST_BYTES:
        raise Refused("not_allowed", "what a machine is told is more than a TPU VM takes")
