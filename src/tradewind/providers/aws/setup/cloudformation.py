"""The same things as a template of CloudFormation: one for all regions, a stack in each.

The bucket and the role are made where the bucket is to be, the network in every region. A template
knows no zones, so a private network has as many subnets as the parameter Zones says; and none can
ask for the default VPC, so that is a parameter too.
"""

from __future__ import annotations

from typing import Any

from tradewind.providers.aws.footprint import tag_list
from tradewind.providers.aws.setup.bucket import CLOSED, spelled
from tradewind.providers.aws.setup.things import MOST_ZONES, Group, Private, Things

_HOME = "Home"


def template(things: Things) -> dict[str, Any]:
    regions = [each.region for each in things.regions]
    made: dict[str, Any] = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": f"Machines of {things.store_url}; a stack in each of: {', '.join(regions)}",
    }
    private = things.regions[0].private
    conditions: dict[str, Any] = {_HOME: {"Fn::Equals": [{"Ref": "AWS::Region"}, things.home]}}
    if private:
        zones = {"Type": "Number", "Default": 3, "AllowedValues": [*range(1, MOST_ZONES + 1)]}
        made["Parameters"] = {"Zones": zones | {"Description": "How many zones the region has"}}
        conditions |= _zones()
    else:
        vpc = {"Type": "AWS::EC2::VPC::Id", "Description": "The default VPC of the region"}
        made["Parameters"] = {"DefaultVpc": vpc}
    made["Conditions"] = conditions
    made["Resources"] = {
        **_bucket(things),
        **_role(things),
        **(_private(private) if private else {}),
        **_group(things.regions[0].group, private),
    }
    return made


def rendered(things: Things) -> str:
    import yaml

    text = yaml.dump(template(things), Dumper=_plain(), sort_keys=False, width=100)
    return str(text)


def _plain() -> Any:
    """Without anchors: a template has none."""
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return Plain


def _thing(kind: str, properties: dict[str, Any], *, only: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"Type": f"AWS::{kind}"}
    if only:
        made["Condition"] = only
    return made | {"Properties": properties}


def _bucket(things: Things) -> dict[str, Any]:
    wanted = things.bucket
    if wanted is None:
        return {}
    by_default = {"ServerSideEncryptionByDefault": {"SSEAlgorithm": wanted.encryption}}
    properties = {
        "BucketName": wanted.name,
        "VersioningConfiguration": {"Status": "Enabled"},
        "BucketEncryption": {"ServerSideEncryptionConfiguration": [by_default]},
        "PublicAccessBlockConfiguration": dict(CLOSED),
        "OwnershipControls": {"Rules": [{"ObjectOwnership": wanted.ownership}]},
        "LifecycleConfiguration": {"Rules": [_rule(spelled(rule)) for rule in wanted.rules]},
        "Tags": tag_list(wanted.tags),
    }
    kept = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    policy = {"Bucket": {"Ref": "Store"}, "PolicyDocument": wanted.policy}
    return {
        "Store": _thing("S3::Bucket", properties, only=_HOME) | kept,
        "StorePolicy": _thing("S3::BucketPolicy", policy, only=_HOME),
    }


def _rule(told: dict[str, Any]) -> dict[str, Any]:
    """S3's own spelling, in CloudFormation's: flat where S3's is nested."""
    where = told["Filter"].get("And", told["Filter"])
    made = {"Id": told["ID"], "Status": told["Status"], "Prefix": where["Prefix"]}
    if "ObjectSizeGreaterThan" in where:
        made["ObjectSizeGreaterThan"] = str(where["ObjectSizeGreaterThan"])
    if not made["Prefix"]:
        del made["Prefix"]
    ends = told.get("Expiration", {})
    if "Days" in ends:
        made["ExpirationInDays"] = ends["Days"]
    if "ExpiredObjectDeleteMarker" in ends:
        made["ExpiredObjectDeleteMarker"] = True
    for key in ("NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"):
        if key in told:
            made[key] = dict(told[key])
    return made


def _role(things: Things) -> dict[str, Any]:
    role = things.role
    properties = {
        "RoleName": role.name,
        "AssumeRolePolicyDocument": role.trust,
        "Policies": [{"PolicyName": role.policy_name, "PolicyDocument": role.policy}],
        "PermissionsBoundary": {"Ref": "Boundary"},
        "Tags": tag_list(role.tags),
    } | ({"ManagedPolicyArns": list(role.managed)} if role.managed else {})
    profile = {"InstanceProfileName": role.name, "Roles": [{"Ref": "Machines"}]}
    boundary = {"ManagedPolicyName": role.boundary_name, "PolicyDocument": role.boundary}
    return {
        "Boundary": _thing("IAM::ManagedPolicy", boundary, only=_HOME),
        "Machines": _thing("IAM::Role", properties, only=_HOME),
        "Profile": _thing("IAM::InstanceProfile", profile, only=_HOME),
    }


def _group(wanted: Group, private: Private | None) -> dict[str, Any]:
    properties = {
        "GroupName": wanted.name,
        "GroupDescription": wanted.description,
        "VpcId": {"Ref": "Network" if private else "DefaultVpc"},
        "SecurityGroupEgress": [{"IpProtocol": "-1", "CidrIp": wanted.world}],
        "Tags": tag_list(wanted.tags),
    }
    return {"Group": _thing("EC2::SecurityGroup", properties)}


def _zones() -> dict[str, Any]:
    """Zone3: there are three or more."""
    made: dict[str, Any] = {}
    for zone in range(1, MOST_ZONES + 1):
        some = [{"Fn::Equals": [{"Ref": "Zones"}, str(n)]} for n in range(zone, MOST_ZONES + 1)]
        made[f"Zone{zone}"] = {"Fn::Or": some} if len(some) > 1 else some[0]
    return made


def _private(wanted: Private) -> dict[str, Any]:
    vpc, table, tags = {"VpcId": {"Ref": "Network"}}, {"Ref": "Routes"}, tag_list(wanted.tags)
    made = {
        "Network": _thing("EC2::VPC", {"CidrBlock": wanted.cidr, "Tags": tags}),
        "Routes": _thing("EC2::RouteTable", vpc | {"Tags": tags}),
        "Endpoint": _thing(
            "EC2::VPCEndpoint",
            vpc
            | {
                "ServiceName": wanted.endpoint,
                "VpcEndpointType": "Gateway",
                "RouteTableIds": [table],
                "Tags": tags,
            },
        ),
    }
    for zone in range(1, MOST_ZONES + 1):
        subnet = vpc | {
            "CidrBlock": wanted.subnets[zone - 1],
            "AvailabilityZone": {"Fn::Select": [zone - 1, {"Fn::GetAZs": ""}]},
            "Tags": tags,
        }
        made[f"Subnet{zone}"] = _thing("EC2::Subnet", subnet, only=f"Zone{zone}")
        joined = {"SubnetId": {"Ref": f"Subnet{zone}"}, "RouteTableId": table}
        made[f"Joined{zone}"] = _thing(
            "EC2::SubnetRouteTableAssociation", joined, only=f"Zone{zone}"
        )
    return made
