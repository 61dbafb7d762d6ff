"""Security groups of legs: machines that work together admit each other on every port, and nobody
else, so the job of one run cannot reach the machines of another. One for each leg of several
machines, made before its launch and removed when its machines are gone. A machine that is alone is
behind setup's group, which admits nobody.

EC2 has no idempotency token for these steps, and needs none: a network takes a name once, and a
group a rule. Whoever comes after a crash finds what is there, and does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tradewind.base import clock
from tradewind.model.run import Request
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import LAUNCH, OWNER, Network, tags_of
from tradewind.providers.aws.machines.order import group_name, group_tags
from tradewind.providers.aws.troubles import code_of, explained
from tradewind.providers.base import OutcomeUnknown, Refused

_WAIT_S = 10.0
_PAUSE_S = 0.5
"""For a moment not every part of EC2 knows a new group."""
_GONE = ("InvalidGroup.NotFound", "InvalidGroupId.Malformed")


def create(account: Account, request: Request, owner: str, network: Network) -> str:
    """The id of a group that machines of this request can be launched behind."""
    region = request.way.region
    ec2 = account.client("ec2", region)
    try:
        with explained(f"making a security group in {region}"):
            group = made(
                ec2,
                owner,
                network,
                name=group_name(request, owner),
                words=f"Leg {request.leg} of {request.run_id}",
                tags=group_tags(request, owner, "security-group"),
            )
            itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
            # Outbound too: EFA does not take a rule for all addresses as one for the group.
            for authorize in (
                ec2.authorize_security_group_ingress,
                ec2.authorize_security_group_egress,
            ):
                authorized(authorize, group, itself)
    except OutcomeUnknown as error:
        # Of the group; no machine was asked for yet.
        raise Refused("throttled", error.message) from error
    return group


def made(
    ec2: Any, owner: str, network: Network, *, name: str, words: str, tags: list[dict[str, Any]]
) -> str:
    """The id of the group of this name: whoever comes second finds it."""
    from botocore.exceptions import ClientError

    try:
        told = ec2.create_security_group(
            GroupName=name, Description=words[:255], VpcId=network.vpc, TagSpecifications=tags
        )
    except ClientError as error:
        if code_of(error) != "InvalidGroup.Duplicate":
            raise
    else:
        return str(told["GroupId"])
    named = {"vpc-id": network.vpc, "group-name": name}
    filters = [{"Name": key, "Values": [value]} for key, value in named.items()]
    until = clock.monotonic() + _WAIT_S
    while True:
        found = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
        if found and tags_of(found[0].get("Tags")).get(OWNER) == owner:
            return str(found[0]["GroupId"])
        if found:
            raise Refused(
                "not_allowed",
                f"the security group {found[0]['GroupId']} has the name {name}, and is not ours",
                hint="find out who made it, and delete it",
            )
        if clock.monotonic() >= until:
            raise Refused("throttled", f"the security group {name} is made, and not listed yet")
        clock.sleep(_PAUSE_S)


def authorized(authorize: Callable[..., Any], group: str, rules: list[dict[str, Any]]) -> None:
    from botocore.exceptions import ClientError

    until = clock.monotonic() + _WAIT_S
    while True:
        try:
            authorize(GroupId=group, IpPermissions=rules)
        except ClientError as error:
            if code_of(error) == "InvalidPermission.Duplicate":
                return
            if code_of(error) not in _GONE or clock.monotonic() >= until:
                raise
        else:
            return
        clock.sleep(_PAUSE_S)


def owned(account: Account, region: str, owner: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The ids of the groups of the store's legs, and their tags."""
    filters = [
        {"Name": f"tag:{OWNER}", "Values": [owner]},
        {"Name": "tag-key", "Values": [LAUNCH]},
    ]
    with explained(f"looking for security groups in {region}"):
        pages = account.client("ec2", region).get_paginator("describe_security_groups")
        found = [
            each for page in pages.paginate(Filters=filters) for each in page["SecurityGroups"]
        ]
    for group in found:
        yield group["GroupId"], tags_of(group.get("Tags"))


def remove(account: Account, region: str, group: str) -> bool:
    """False: it is in use."""
    from botocore.exceptions import ClientError

    with explained(f"removing a security group in {region}"):
        try:
            account.client("ec2", region).delete_security_group(GroupId=group)
        except ClientError as error:
            if code_of(error) in ("DependencyViolation", *_GONE):
                return code_of(error) in _GONE
            raise
    return True
