"""A provider of Google's on the equipment (tests/cloud), as several processes open it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from tests.cloud.faces.google.control import Control
from tests.lifecycle.builders import WAY
from tradewind.model.run import Request, Way
from tradewind.providers.base import OutcomeUnknown
from tradewind.providers.boot.luggage import Luggage
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.facts import FACTS
from tradewind.providers.gcp.footprint import Footprint, decoded
from tradewind.providers.gcp.operations import Operation
from tradewind.providers.gcp.provider import Both, ComputeProvider

REGION, ZONE, OTHER_ZONE = "us-central1", "us-central1-a", "us-central1-b"
KIND = "g2-standard-4"
NETWORK = "tradewind-test"


def way(**more: Any) -> Way:
    fixed = replace(
        WAY,
        provider="gcp",
        region=REGION,
        zone=ZONE,
        instance_type=KIND,
        market="on_demand",
        price=750_000,
        disk_gb=100,
        disk_price=13_889,
        facts=FACTS,
    )
    return replace(fixed, **more)


def footprint(**more: Any) -> Footprint:
    project = Control.project
    made = Footprint(
        project=project,
        bucket="runs",
        bucket_location=REGION,
        service_account=f"machines@{project}.iam.gserviceaccount.com",
        network=NETWORK,
        subnets={REGION: NETWORK},
        zones={REGION: (ZONE, OTHER_ZONE)},
        role="tradewind_test",
    )
    return replace(made, **more)


def prepare(cloud: Control) -> None:
    """What setup would have made: the network, its subnetwork, the machines' service account."""
    compute = Compute(Google(), cloud.project)
    rest = compute.google.rest("compute")
    at = f"/projects/{cloud.project}"
    network = {"name": NETWORK, "autoCreateSubnetworks": False}
    subnet = {"name": NETWORK, "network": f"{at[1:]}/global/networks/{NETWORK}"}
    for path, body in (
        (f"{at}/global/networks", network),
        (f"{at}/regions/{REGION}/subnetworks", subnet | {"ipCidrRange": "10.9.0.0/20"}),
    ):
        with suppress(OutcomeUnknown):  # it is there already
            made = rest.send("POST", path, body, Operation, "preparing")
            compute.done(made, "preparing")
    cloud.key_file(f"machines@{cloud.project}.iam.gserviceaccount.com")


def packed(request: Request, architecture: str) -> Luggage:
    tell = tuple(f"https://b/tell/{rank}" for rank in range(request.way.nodes))
    return Luggage(
        kit="https://b/kit", sha256="0" * 64, tell=tell, environment={"ARCH": architecture}
    )


def argument(cloud: Control, made: Footprint, owner: str) -> str:
    return json.dumps([cloud.env, made.encoded().decode(), owner])


def open_gcp(given: str) -> Both:
    """With the variables in this process's own environment: google-auth looks nowhere else."""
    env, record, owner = json.loads(given)
    os.environ.update(env)
    made = decoded(record.encode())
    return Both(ComputeProvider(Compute(Google(), made.project), made, owner, packed))
