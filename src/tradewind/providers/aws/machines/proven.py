"""Whether what the store says of the account is so, before it becomes parameters of a launch.

Whoever may write the store may write `providers/aws.json`, and whoever makes the next pass may do
more in the account than they. So names are derived again, and what setup has made, or has found, is
known by its tags in the account: the account itself, the role's name, the bucket, the security
group and the subnets. An image that is named by its id is the account's own, or of a publisher of
the usual ones. Refused, with what differs, otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tradewind.base.errors import NoAccess
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import (
    KEY,
    OWNER,
    Footprint,
    Network,
    bucket_of,
    is_home,
    name,
    setup_command,
    tags_of,
)
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

PUBLISHERS = ("amazon", "aws-marketplace")
OWNERS = ("099720109477", "136693071363")
"""Canonical, who makes Ubuntu's images, and Debian."""


def check_account(account: Account, footprint: Footprint, owner: str) -> None:
    """Else we would see none of the machines, and take them for gone."""
    if (number := account.number()) != footprint.account:
        raise NoAccess(
            f"these credentials are of account {number}, and {owner} is set up in"
            f" {footprint.account}",
            hint="look at AWS_PROFILE and `aws sts get-caller-identity`",
        )


def check_names(footprint: Footprint, owner: str) -> None:
    wanted = {"instance_profile": (footprint.instance_profile, name(owner))}
    if is_home(owner):
        wanted["bucket"] = (footprint.bucket, bucket_of(owner)[0])
    for what, (said, right) in wanted.items():
        if said != right:
            raise _refused(f"its {what} is {said}, and {owner} has {right}", owner)


def check_network(account: Account, region: str, network: Network, owner: str) -> None:
    ec2 = account.client("ec2", region)
    with explained(f"looking at the network in {region}"):
        groups = ec2.describe_security_groups(
            Filters=[{"Name": "group-id", "Values": [network.security_group]}]
        )["SecurityGroups"]
        named = [{"Name": "subnet-id", "Values": sorted(set(network.subnets.values()))}]
        subnets = ec2.describe_subnets(Filters=named)["Subnets"]
    for group in groups:  # one that is gone is for EC2 to refuse
        for wrong in _of_group(group, network, owner):
            raise _refused(f"{region}: the security group {network.security_group} {wrong}", owner)
    for subnet in subnets:
        for wrong in _of_subnet(subnet, network, owner):
            raise _refused(f"{region}: {subnet['SubnetId']} {wrong}", owner)


def _of_group(group: dict[str, Any], network: Network, owner: str) -> Iterator[str]:
    if group.get("GroupName") != name(owner) or tags_of(group.get("Tags")).get(OWNER) != owner:
        yield f"is not {name(owner)}, which setup has made"
    if group.get("VpcId") != network.vpc:
        yield f"is not in {network.vpc}"


def _of_subnet(subnet: dict[str, Any], network: Network, owner: str) -> Iterator[str]:
    if subnet.get("VpcId") != network.vpc:
        yield f"is not in {network.vpc}"
    usual = bool(subnet.get("DefaultForAz"))
    if not usual and tags_of(subnet.get("Tags")).get(OWNER) != owner:
        yield "is neither a default subnet of the account nor one that setup has made"
    if network.subnets.get(subnet.get("AvailabilityZoneId", "")) != subnet["SubnetId"]:
        yield "is in another zone"


def check_image(account: Account, told: dict[str, Any], owner: str) -> None:
    """Of an image that the record names by its id. Anyone can publish one under any name."""
    publisher = str(told.get("OwnerId", ""))
    own = publisher in (account.number(), *OWNERS)
    if not own and told.get("ImageOwnerAlias", "") not in PUBLISHERS:
        raise Refused(
            "not_allowed",
            f"the image {told.get('ImageId')} belongs to the account {publisher}, and {KEY} in the"
            f" store is what names it",
            hint="copy it into this account, or let a parameter of this account name it:"
            " aws ssm put-parameter --name /tradewind/image --type String --value"
            f" {told.get('ImageId')}; {setup_command(owner)} --image /tradewind/image",
        )


def _refused(what: str, owner: str) -> Refused:
    return Refused(
        "not_allowed",
        f"{KEY} in the store is not what setup has written: {what}",
        hint=f"nothing is launched by it; {setup_command(owner)} writes it again",
    )
