"""Security groups of services: one for each and region. Its machines reach one another at the port
of the engines, and whoever is allowed reaches the fronts. Nothing else comes in, so a front that
was broken into reaches engines, and no other run.

The group is made with the first launch and found by the others. It stays while the service does,
also when that has no machine for a moment, and is removed with it; see firewall.py for what holds
of groups of legs, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.model.circle import Circle
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import (
    OWNER,
    PREFIX,
    SERVICE,
    Network,
    name,
    tag_list,
    tags_of,
)
from tradewind.providers.aws.machines import firewall
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import OutcomeUnknown, Refused

remove = firewall.remove


def create(account: Account, region: str, circle: Circle, owner: str, network: Network) -> str:
    """The id of a group that its machines can be launched behind."""
    ec2 = account.client("ec2", region)
    named = {OWNER: owner, SERVICE: circle.name}
    try:
        with explained(f"making the security group of {circle.name} in {region}"):
            group = firewall.made(
                ec2,
                owner,
                network,
                name=group_name(circle, owner),
                words=f"Service {circle.name}",
                tags=[{"ResourceType": "security-group", "Tags": tag_list(named)}],
            )
            ranges = circle.ranges or _of_network(ec2, network)
            for rule in _rules(circle, group, ranges):
                # One by one: of several, one that is there already would refuse all.
                firewall.authorized(ec2.authorize_security_group_ingress, group, [rule])
    except OutcomeUnknown as error:
        # Of the group; no machine was asked for yet.
        raise Refused("throttled", error.message) from error
    return group


def group_name(circle: Circle, owner: str) -> str:
    return f"{PREFIX}{circle.name}-{name(owner).removeprefix(PREFIX)}"


def _rules(circle: Circle, group: str, ranges: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    def tcp(port: int) -> dict[str, Any]:
        return {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}

    yield tcp(circle.port) | {"UserIdGroupPairs": [{"GroupId": group}]}
    for each in ranges:
        if ":" in each:
            yield tcp(circle.open_port) | {"Ipv6Ranges": [{"CidrIpv6": each}]}
        else:
            yield tcp(circle.open_port) | {"IpRanges": [{"CidrIp": each}]}


def _of_network(ec2: Any, network: Network) -> tuple[str, ...]:
    """Where nobody was named: machines of the same subnets, and nobody from outside."""
    told = ec2.describe_subnets(SubnetIds=sorted(network.subnets.values()))["Subnets"]
    return tuple(sorted(each["CidrBlock"] for each in told))


def owned(
    account: Account, region: str, owner: str, circle: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """The ids of the groups of the store's services, or of one, and their tags."""
    filters = [{"Name": f"tag:{OWNER}", "Values": [owner]}]
    if circle:
        filters.append({"Name": f"tag:{SERVICE}", "Values": [circle]})
    else:
        filters.append({"Name": "tag-key", "Values": [SERVICE]})
    with explained(f"looking for security groups in {region}"):
        pages = account.client("ec2", region).get_paginator("describe_security_groups")
        found = [
            each for page in pages.paginate(Filters=filters) for each in page["SecurityGroups"]
        ]
    for group in found:
        yield group["GroupId"], tags_of(group.get("Tags"))
