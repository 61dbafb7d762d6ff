"""The group of a service: made once, with the rules that it needs, and gone with it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.providers.aws.cloud import Cloud, xml
from tests.providers.aws.conftest import HERE, OURS
from tests.providers.aws.machines import packed
from tradewind.model.circle import Circle
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import OWNER, SERVICE, Footprint, name, tag_list
from tradewind.providers.aws.machines import circles
from tradewind.providers.aws.provider import AwsProvider
from tradewind.providers.base import Admits, Refused

CHAT = Circle(name="chat-1", port=8000, open_port=8080, ranges=("203.0.113.0/24", "2001:db8::/32"))


def rules(account: Account, group: str) -> dict[int, Any]:
    (told,) = account.client("ec2", HERE).describe_security_groups(GroupIds=[group])[
        "SecurityGroups"
    ]
    return {
        rule["FromPort"]: (
            sorted(each["CidrIp"] for each in rule.get("IpRanges", [])),
            sorted(each["CidrIpv6"] for each in rule.get("Ipv6Ranges", [])),
            [each["GroupId"] for each in rule.get("UserIdGroupPairs", [])],
        )
        for rule in told["IpPermissions"]
    }


def as_set_up(account: Account, footprint: Footprint) -> Footprint:
    """Under the names that setup gives."""
    network, ec2 = footprint.regions[HERE], account.client("ec2", HERE)
    ec2.create_tags(Resources=[*network.subnets.values()], Tags=tag_list({OWNER: OURS}))
    group = ec2.create_security_group(
        GroupName=name(OURS),
        Description="x",
        VpcId=network.vpc,
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tag_list({OWNER: OURS})}],
    )["GroupId"]
    regions = {HERE: replace(network, security_group=group)}
    return replace(footprint, instance_profile=name(OURS), regions=regions)


def test_a_circle_is_made_once_and_admits_whom_it_says(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    none = xml("DescribePlacementGroups", placementGroupSet="")  # which moto does not have
    cloud.on("DescribePlacementGroups", none)
    aws = AwsProvider(account, as_set_up(account, footprint), OURS, packed)
    assert isinstance(aws, Admits)
    group = aws.admit(HERE, CHAT)
    assert aws.admit(HERE, CHAT) == group  # by whoever comes after, and finds the rest done
    assert rules(account, group) == {
        8000: ([], [], [group]),
        8080: (["203.0.113.0/24"], ["2001:db8::/32"], []),
    }
    other = aws.admit(HERE, Circle(name="chat-2", port=8000, open_port=80))
    assert rules(account, other)[80] == (["10.0.0.0/24", "10.0.1.0/24"], [], [])
    ((name, tags),) = circles.owned(account, HERE, OURS, "chat-1")
    assert (name, tags[SERVICE], tags[OWNER]) == (group, "chat-1", OURS)
    left = {each.name for each in aws.leftovers()}
    assert left == {f"{HERE}/{group}", f"{HERE}/{other}"}  # no machine is behind them
    assert aws.dismiss("chat-1")
    assert aws.dismiss("chat-1")
    assert [each for each, _ in circles.owned(account, HERE, OURS)] == [other]
    (leftover,) = aws.leftovers()
    assert aws.remove(leftover)
    assert list(circles.owned(account, HERE, OURS)) == []


def test_a_group_that_is_not_ours_is_not_used(account: Account, footprint: Footprint) -> None:
    network = footprint.regions[HERE]
    account.client("ec2", HERE).create_security_group(
        GroupName=circles.group_name(CHAT, OURS), Description="x", VpcId=network.vpc
    )
    with pytest.raises(Refused, match="not ours"):
        circles.create(account, HERE, CHAT, OURS, network)
