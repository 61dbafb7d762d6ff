"""A provider of AWS on the equipment (tests/cloud), as several processes open it."""

from __future__ import annotations

import json
import os
from typing import Any

from msgspec.structs import replace

from tests.cloud.faces.ec2.control import Control
from tests.lifecycle.builders import WAY
from tradewind.base import clock
from tradewind.model.run import Request, Way
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.facts import FACTS
from tradewind.providers.aws.footprint import (
    OWNER,
    Footprint,
    Network,
    bucket_of,
    decoded,
    is_home,
    name,
    tag_list,
)
from tradewind.providers.aws.provider import AwsProvider
from tradewind.providers.aws.setup.things import described
from tradewind.providers.boot.luggage import Luggage

REGION, ZONE, KIND = "us-east-1", "use1-az1", "g5.xlarge"


def way(**more: Any) -> Way:
    fixed = replace(
        WAY,
        provider="aws",
        region=REGION,
        zone=ZONE,
        instance_type=KIND,
        market="on_demand",
        price=1_006_000,
        facts=FACTS,
    )
    return replace(fixed, **more)


def network(control: Control, region: str, store_url: str) -> Network:
    ec2 = control.client("ec2", region)
    usual = [{"Name": "default-for-az", "Values": ["true"]}]
    subnets = ec2.describe_subnets(Filters=usual)["Subnets"]
    vpc = subnets[0]["VpcId"]
    called = name(store_url)
    found = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": [called]}])
    if found["SecurityGroups"]:
        group = found["SecurityGroups"][0]["GroupId"]
    else:
        tags = [{"ResourceType": "security-group", "Tags": tag_list({OWNER: store_url})}]
        made = ec2.create_security_group(
            GroupName=called, Description="x", VpcId=vpc, TagSpecifications=tags
        )
        group = made["GroupId"]
    return Network(
        vpc=vpc,
        security_group=group,
        subnets={each["AvailabilityZoneId"]: each["SubnetId"] for each in subnets},
    )


def with_role(iam: Any, called: str, store_url: str) -> None:
    """A role with its boundary and its instance profile, as setup makes them for a store."""
    wanted = described(store_url, REGION, ()).role
    given = {"PolicyName": f"{called}-boundary", "PolicyDocument": json.dumps(wanted.boundary)}
    bound = iam.create_policy(**given)["Policy"]["Arn"]
    trust = json.dumps(wanted.trust)
    iam.create_role(RoleName=called, AssumeRolePolicyDocument=trust, PermissionsBoundary=bound)
    text = json.dumps(wanted.policy)
    iam.put_role_policy(RoleName=called, PolicyName=wanted.policy_name, PolicyDocument=text)
    iam.create_instance_profile(InstanceProfileName=called)
    iam.add_role_to_instance_profile(InstanceProfileName=called, RoleName=called)


def footprint(
    control: Control, *regions: str, image: str = "", store_url: str = "s3://b"
) -> Footprint:
    iam = control.client("iam")
    there = iam.list_instance_profiles()["InstanceProfiles"]
    called = name(store_url)
    if called not in [each["InstanceProfileName"] for each in there]:
        with_role(iam, called, store_url)
    return Footprint(
        account="123456789012",
        bucket=bucket_of(store_url)[0] if is_home(store_url) else "",
        bucket_region=REGION,
        instance_profile=called,
        regions={region: network(control, region, store_url) for region in regions or (REGION,)},
        image=image,
    )


def packed(request: Request, architecture: str) -> Luggage:
    """Links differ each time, as those that are signed do."""
    link = f"https://b.s3.amazonaws.com/{clock.new_id('link')}"
    return Luggage(kit=link, sha256="0" * 64, tell=(link,))


def argument(control: Control, made: Footprint, owner: str) -> str:
    told = {"env": control.env, "footprint": made.encoded().decode(), "owner": owner}
    return json.dumps(told)


def open_aws(text: str) -> AwsProvider:
    told = json.loads(text)
    os.environ.update(told["env"])
    return AwsProvider(Account(), decoded(told["footprint"].encode()), told["owner"], packed)
