"""Placement policies: machines of a leg that have GPUs and talk stand close together. One for each
leg, made before its launch and removed when its machines are gone.

A policy has no labels: its name is that of the leg's machines, without a rank (labels.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.model.run import Request
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.api import Compute
from tradewind.providers.gcp.footprint import owner_of
from tradewind.providers.gcp.machines.order import policy_body
from tradewind.providers.gcp.troubles import AlreadyThere


def create(compute: Compute, request: Request, store_url: str) -> str:
    """Its name, once machines can be launched under it."""
    region = request.way.region
    doing = f"making a placement policy in {region}"
    body = policy_body(request, store_url)
    token = labels.request_id(owner_of(store_url), request, "policy")
    try:
        compute.done(compute.insert_policy(region, body, token, doing), doing)
    except AlreadyThere:
        pass
    except OutcomeUnknown as error:  # of the policy; no machine was asked for yet
        raise Refused("throttled", error.message) from error
    return str(body["name"])


def owned(compute: Compute, region: str, owner: str) -> Iterator[tuple[str, labels.Name]]:
    """The policies of a store's legs."""
    for each in compute.policies(region):
        name = labels.parsed(f"{each.name}-0")
        if name is not None and name.owner == owner and name.stem == each.name:
            yield each.name, name


def remove(compute: Compute, region: str, name: str) -> bool:
    """False: it is in use."""
    doing = f"removing a placement policy in {region}"
    try:
        compute.done(compute.delete_policy(region, name, doing), doing)
    except Refused as error:
        if error.kind == "not_found":
            return True
        if error.kind == "throttled":  # it is in use by another resource
            return False
        raise
    return True
