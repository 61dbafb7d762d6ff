"""What is asked of AWS by boto3, as requests that IAM would judge: permission, resource, context.
All of it is asked all the same.

A call may need several: RunInstances one for each kind of thing that it uses or makes, CreateTags
for tags, PassRole for a role. Which, and with which keys, is by AWS's Service Authorization
Reference. Values of a role's boundary and of tags are those that are there when it is asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.providers.aws.iam import Request

ACCOUNT = "123456789012"
_NAMED_OTHERWISE = {
    "s3:HeadBucket": ("s3:ListBucket",),
    "s3:ListObjectVersions": ("s3:ListBucketVersions",),
    "s3:ListMultipartUploads": ("s3:ListBucketMultipartUploads",),
    "s3:DeleteObjects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
    "s3:GetBucketEncryption": ("s3:GetEncryptionConfiguration",),
    "s3:PutBucketEncryption": ("s3:PutEncryptionConfiguration",),
    "s3:GetPublicAccessBlock": ("s3:GetBucketPublicAccessBlock",),
    "s3:PutPublicAccessBlock": ("s3:PutBucketPublicAccessBlock",),
    "s3:GetBucketLifecycleConfiguration": ("s3:GetLifecycleConfiguration",),
    "s3:PutBucketLifecycleConfiguration": ("s3:PutLifecycleConfiguration",),
    "sts:GetCallerIdentity": (),  # that needs none
}
_MADE = {
    "CreateSecurityGroup": "security-group",
    "CreatePlacementGroup": "placement-group",
    "CreateVpc": "vpc",
    "CreateSubnet": "subnet",
    "CreateRouteTable": "route-table",
    "CreateVpcEndpoint": "vpc-endpoint",
}
_USED = {
    "GroupId": "security-group",
    "InstanceIds": "instance",
    "RouteTableId": "route-table",
    "RouteTableIds": "route-table",
    "AddRouteTableIds": "route-table",
    "SubnetId": "subnet",
    "VpcId": "vpc",
    "VpcEndpointId": "vpc-endpoint",
    "VpcEndpointIds": "vpc-endpoint",
}
"""Parameters by which EC2 is told of things that are there."""


@contextmanager
def noted() -> Iterator[list[Request]]:
    """What was asked meanwhile; but not by threads that an earlier test has left behind."""
    from botocore.client import BaseClient

    found: list[Request] = []
    earlier = {*threading.enumerate()} - {threading.current_thread()}
    whole = BaseClient._make_api_call

    def call(self: Any, operation: str, parameters: Any) -> Any:
        if threading.current_thread() not in earlier:
            found.extend(_Asked(self, whole, operation, parameters or {}).requests())
        return whole(self, operation, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", call)
        yield found


class _Asked:
    def __init__(self, client: Any, whole: Any, operation: str, given: Mapping[str, Any]) -> None:
        self._client, self._whole = client, whole
        self._operation, self._given = operation, given
        self._region = client.meta.region_name

    def requests(self) -> list[Request]:
        service = self._client.meta.service_model.signing_name
        name = f"{service}:{self._operation}"
        told = {"ec2": self._ec2, "iam": self._iam, "s3": self._s3}.get(service)
        if told is not None and not self._operation.startswith("Describe"):
            return list(told(name))
        resource = "*"
        if name == "ssm:GetParameter":  # AWS's own belong to no account
            resource = f"arn:aws:ssm:{self._region}::parameter{self._given['Name']}"
        return [Request(each, resource) for each in _NAMED_OTHERWISE.get(name, (name,))]

    def _ask(self, operation: str, **given: Any) -> Any:
        return self._whole(self._client, operation, given)

    # EC2

    def _arn(self, kind: str, id_: str = "*") -> str:
        owner = "" if kind in ("image", "snapshot") else ACCOUNT
        return f"arn:aws:ec2:{self._region}:{owner}:{kind}/{id_}"

    def _ec2(self, name: str) -> Iterator[Request]:
        if self._operation.startswith("Get"):
            yield Request(name, "*")
        elif self._operation == "RunInstances":
            yield from self._run(name)
        elif self._operation == "DeletePlacementGroup":
            group = str(self._given["GroupName"])
            yield Request(name, self._arn("placement-group", group), self._group_tags(group))
        elif self._operation == "DisassociateRouteTable":
            yield Request(name, *self._table_of(self._given["AssociationId"]))
        else:
            kind = _MADE.get(self._operation)
            if kind:
                yield Request(name, self._arn(kind), self._new_tags(kind))
            yield from self._used(name)
        yield from self._tagging()

    def _used(self, name: str) -> Iterator[Request]:
        for key, kind in _USED.items():
            given = self._given.get(key, [])
            for id_ in [given] if isinstance(given, str) else given:
                yield Request(name, self._arn(kind, id_), self._tags(id_))

    def _run(self, name: str) -> Iterator[Request]:
        for kind in ("instance", "volume", "network-interface"):
            yield Request(name, self._arn(kind), self._new_tags(kind))
        if "InstanceMarketOptions" in self._given:
            kind = "spot-instances-request"
            yield Request(name, self._arn(kind), self._new_tags(kind))
        yield Request(name, self._arn("image", self._given["ImageId"]))
        yield Request(name, self._arn("snapshot", "snap-1"))
        for card in self._given["NetworkInterfaces"]:
            yield Request(name, self._arn("subnet", card["SubnetId"]), self._tags(card["SubnetId"]))
            for group in card["Groups"]:
                yield Request(name, self._arn("security-group", group), self._tags(group))
        if "Placement" in self._given:
            group = self._given["Placement"]["GroupName"]
            yield Request(name, self._arn("placement-group", group), self._group_tags(group))
        if "KeyName" in self._given:
            yield Request(name, self._arn("key-pair", self._given["KeyName"]))
        profile = self._given["IamInstanceProfile"]["Name"]
        yield _passed(profile)  # the role has the same name

    def _tagging(self) -> Iterator[Request]:
        for each in self._given.get("TagSpecifications", ()):
            kind = each["ResourceType"]
            context = self._new_tags(kind) | {"ec2:CreateAction": self._operation}
            yield Request("ec2:CreateTags", self._arn(kind), context)

    def _new_tags(self, kind: str) -> dict[str, str]:
        specified = self._given.get("TagSpecifications", ())
        return _keys("Request", [t for s in specified if s["ResourceType"] == kind
                                 for t in s["Tags"]])  # fmt: skip

    def _tags(self, id_: str) -> dict[str, str]:
        filters = [{"Name": "resource-id", "Values": [id_]}]
        return _keys("Resource", self._ask("DescribeTags", Filters=filters)["Tags"])

    def _group_tags(self, group: str) -> dict[str, str]:
        filters = [{"Name": "group-name", "Values": [group]}]
        told = self._ask("DescribePlacementGroups", Filters=filters)["PlacementGroups"]
        return _keys("Resource", told[0]["Tags"] if told else [])

    def _table_of(self, association: str) -> tuple[str, dict[str, str]]:
        for table in self._ask("DescribeRouteTables")["RouteTables"]:
            held = [each.get("RouteTableAssociationId") for each in table["Associations"]]
            if association in held:
                return self._arn("route-table", table["RouteTableId"]), _keys(
                    "Resource", table["Tags"]
                )
        raise AssertionError(association)

    # IAM

    def _iam(self, name: str) -> Iterator[Request]:
        given, iam = self._given, f"arn:aws:iam::{ACCOUNT}"
        if "InstanceProfileName" in given:
            profile = f"{iam}:instance-profile/{given['InstanceProfileName']}"
            yield Request(name, profile)
            if "Tags" in given:
                yield Request("iam:TagInstanceProfile", profile)
            if self._operation == "AddRoleToInstanceProfile":
                yield _passed(given["RoleName"])
        elif "RoleName" in given:
            role = f"{iam}:role/{given['RoleName']}"
            context = {"aws:PrincipalAccount": ACCOUNT} | self._boundary()
            if "PolicyArn" in given:
                context["iam:PolicyARN"] = given["PolicyArn"]
            yield Request(name, role, context)
            if "Tags" in given and self._operation != "TagRole":
                yield Request("iam:TagRole", role)
        else:
            named = f"{iam}:policy/{given.get('PolicyName')}"
            yield Request(name, given.get("PolicyArn", named))
            if "Tags" in given:
                yield Request("iam:TagPolicy", given.get("PolicyArn", named))

    def _boundary(self) -> dict[str, str]:
        """Of the request, or else of the role as it is."""
        if "PermissionsBoundary" in self._given:
            return {"iam:PermissionsBoundary": self._given["PermissionsBoundary"]}
        from botocore.exceptions import ClientError

        try:
            role = self._ask("GetRole", RoleName=self._given["RoleName"])["Role"]
        except ClientError:
            return {}
        within = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
        return {"iam:PermissionsBoundary": within} if within else {}

    # S3

    def _s3(self, name: str) -> Iterator[Request]:
        bucket = f"arn:aws:s3:::{self._given['Bucket']}"
        keys = [each["Key"] for each in self._given.get("Delete", {}).get("Objects", ())]
        keys += [self._given["Key"]] if "Key" in self._given else []
        for action in _NAMED_OTHERWISE.get(name, (name,)):
            for resource in [f"{bucket}/{key}" for key in keys] or [bucket]:
                yield Request(action, resource, {"aws:SecureTransport": "true"})


def _passed(role: str) -> Request:
    context = {"iam:PassedToService": "ec2.amazonaws.com"}
    return Request("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/{role}", context)


def _keys(whose: str, tags: Any) -> dict[str, str]:
    return {f"aws:{whose}Tag/{each['Key']}": each["Value"] for each in tags}
