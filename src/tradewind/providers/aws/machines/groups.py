"""Placement groups: machines of a leg that talk by EFA stand close together. One for each leg, made
before its launch and removed when its machines are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import SourceFailed
from tradewind.model.run import Request
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import OWNER, tags_of
from tradewind.providers.aws.machines.order import group_name, group_tags
from tradewind.providers.aws.troubles import code_of, explained

_WAIT_S = 10.0
_PAUSE_S = 0.5


def create(account: Account, request: Request, owner: str) -> None:
    """And wait, for a while, until machines can be launched into it."""
    from botocore.exceptions import ClientError

    with explained(f"making a placement group in {request.way.region}"):
        try:
            account.client("ec2", request.way.region).create_placement_group(
                GroupName=group_name(request, owner),
                Strategy="cluster",
                TagSpecifications=group_tags(request, owner, "placement-group"),
            )
        except ClientError as error:
            if code_of(error) != "InvalidPlacementGroup.Duplicate":
                raise
    until = clock.monotonic() + _WAIT_S
    while not _is_there(account, request, owner) and clock.monotonic() < until:
        clock.sleep(_PAUSE_S)


def _is_there(account: Account, request: Request, owner: str) -> bool:
    filters = {"group-name": group_name(request, owner), "state": "available"}
    try:
        with explained(f"looking for a placement group in {request.way.region}"):
            answer = account.client("ec2", request.way.region).describe_placement_groups(
                Filters=[{"Name": name, "Values": [value]} for name, value in filters.items()]
            )
    except SourceFailed:
        return True  # the launch will tell
    return bool(answer["PlacementGroups"])


def owned(account: Account, region: str, owner: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The names of the store's groups, and their tags."""
    with explained(f"looking for placement groups in {region}"):
        answer: dict[str, Any] = account.client("ec2", region).describe_placement_groups(
            Filters=[{"Name": f"tag:{OWNER}", "Values": [owner]}]
        )
    for group in answer["PlacementGroups"]:
        yield group["GroupName"], tags_of(group.get("Tags"))


def remove(account: Account, region: str, name: str) -> bool:
    """False: it is in use."""
    from botocore.exceptions import ClientError

    with explained(f"removing a placement group in {region}"):
        try:
            account.client("ec2", region).delete_placement_group(GroupName=name)
        except ClientError as error:
            if code_of(error) in ("InvalidPlacementGroup.InUse", "InvalidPlacementGroup.Unknown"):
                return code_of(error).endswith("Unknown")
            raise
    return True
