"""Teardown: removes what setup made for a store, by its name and its tag, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_names
from tradewind.providers.aws.footprint import KEY, OWNER, PREFIX, bucket_of, name, owned, tags_of
from tradewind.providers.aws.setup import policies
from tradewind.providers.aws.setup.calls import DENIED, Calls
from tradewind.providers.changes import Line

_NONE = ("NoSuchEntity",)
_BUSY = ("DependencyViolation", "DeleteConflict", "OperationAborted", "BucketNotEmpty")
"""For a moment, until what was removed before is gone everywhere."""
_GONE = (
    "InvalidGroup.NotFound",
    "InvalidVpcEndpointId.NotFound",
    "InvalidSubnetID.NotFound",
    "InvalidRouteTableID.NotFound",
    "InvalidAssociationID.NotFound",
    "InvalidVpcID.NotFound",
)
_UP = ("pending", "running", "shutting-down", "stopping", "stopped")
_AT_ONCE = 1000


def look(calls: Calls, store_url: str, regions: Sequence[str], home: str) -> list[Line]:
    """In the order in which it can be removed. `home` is where IAM is asked."""
    _refuse_while_up(calls, store_url, regions)
    lines = []
    for region in regions:
        lines += _networks(calls, store_url, region)
    lines += _role(calls, policies.lend_name(store_url), store_url, home)
    lines += _profile(calls, name(store_url), home) + _role(calls, name(store_url), store_url, home)
    boundaries = (policies.lend_boundary_name(store_url), policies.boundary_name(store_url))
    return [*lines, *(each for b in boundaries for each in _boundary(calls, b, store_url, home))]


def _refuse_while_up(calls: Calls, store_url: str, regions: Sequence[str]) -> None:
    up = []
    for region in regions:
        filters = [*owned(store_url), {"Name": "instance-state-name", "Values": list(_UP)}]
        found = calls.pages("ec2", region, "describe_instances", "Reservations", Filters=filters)
        up += [
            f"{each['InstanceId']} ({region}, {each['State']['Name']})"
            for reservation in found
            for each in reservation["Instances"]
        ]
    if up:
        raise InvalidValue(
            f"machines of {store_url} are up: {format_names(up, 10)}",
            hint="tradewind ps and tradewind stop end runs; tradewind sweep ends what none claims",
        )


def _networks(calls: Calls, store_url: str, region: str) -> list[Line]:
    """Groups before networks: one may be in the default VPC, one in ours."""
    lines: list[Line] = []

    def find(what: str, describe: str, key: str, id_: str, delete: str, *, many: bool) -> None:
        found = calls("ec2", region, describe, Filters=owned(store_url))[key]
        for each in sorted(found, key=lambda one: str(one[id_])):
            if each.get("State") in ("deleted", "deleting"):
                continue
            # Setup's, and those of legs. Others may have put our tag on theirs.
            if what == "security group" and not each["GroupName"].startswith(PREFIX):
                continue
            label = each.get("GroupName") or each[id_]
            line = Line(what, label, region, True)
            given: dict[str, Any] = {id_ + "s" if many else id_: [each[id_]] if many else each[id_]}
            joined = [
                one["RouteTableAssociationId"]
                for one in each.get("Associations", [])
                if not one.get("Main")
            ]
            line.add("remove", partial(_remove, calls, region, delete, given, joined))
            lines.append(line)

    ends = ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", "delete_vpc_endpoints")
    find("endpoint", *ends, many=True)
    tables = ("describe_route_tables", "RouteTables", "RouteTableId", "delete_route_table")
    find("route table", *tables, many=False)
    find("subnet", "describe_subnets", "Subnets", "SubnetId", "delete_subnet", many=False)
    groups = ("describe_security_groups", "SecurityGroups", "GroupId", "delete_security_group")
    find("security group", *groups, many=False)
    find("vpc", "describe_vpcs", "Vpcs", "VpcId", "delete_vpc", many=False)
    return lines


def _remove(
    calls: Calls, region: str, delete: str, given: dict[str, Any], joined: Sequence[str]
) -> None:
    """What a route table serves is let go of first."""
    for each in joined:
        calls("ec2", region, "disassociate_route_table", AssociationId=each, fine=_GONE)
    calls("ec2", region, delete, fine=_GONE, again=_BUSY, **given)


def _profile(calls: Calls, called: str, region: str) -> list[Line]:
    profile = calls("iam", region, "get_instance_profile", InstanceProfileName=called, fine=_NONE)
    if profile is None:
        return []
    line = Line("instance profile", called, "", True)
    holding = [role["RoleName"] for role in profile["InstanceProfile"]["Roles"]]
    line.add("remove", lambda: _remove_profile(calls, called, holding, region))
    return [line]


def _role(calls: Calls, called: str, store_url: str, region: str) -> list[Line]:
    role = calls("iam", region, "get_role", RoleName=called, fine=_NONE)
    if role is None:
        return []
    line = Line("role", called, "", True)
    if tags_of(role["Role"].get("Tags")).get(OWNER) != store_url:
        line.remark = f"left: it has no tag {OWNER}, so it belongs to someone else"
        return [line]
    inline = calls("iam", region, "list_role_policies", RoleName=called)["PolicyNames"]
    listed = calls("iam", region, "list_attached_role_policies", RoleName=called)
    attached = [each["PolicyArn"] for each in listed["AttachedPolicies"]]
    line.add("remove", lambda: _remove_role(calls, called, inline, attached, region))
    return [line]


def _remove_profile(calls: Calls, called: str, holding: Sequence[str], region: str) -> None:
    given = {"InstanceProfileName": called}
    for role in holding:
        calls(
            "iam", region, "remove_role_from_instance_profile", RoleName=role, fine=_NONE, **given
        )
    calls("iam", region, "delete_instance_profile", fine=_NONE, again=_BUSY, **given)


def _remove_role(
    calls: Calls, called: str, inline: Sequence[str], attached: Sequence[str], region: str
) -> None:
    """With what others have given it: policies of their own stay theirs, and are let go."""
    given = {"RoleName": called}
    for policy in inline:
        calls("iam", region, "delete_role_policy", PolicyName=policy, fine=_NONE, **given)
    for arn in attached:
        calls("iam", region, "detach_role_policy", PolicyArn=arn, fine=_NONE, **given)
    calls("iam", region, "delete_role", fine=_NONE, again=_BUSY, **given)


def _boundary(calls: Calls, called: str, store_url: str, region: str) -> list[Line]:
    """Only where setup made it itself, and only by credentials that may."""
    arn = policies.policy_arn(called, region, calls.account.number())
    found = calls("iam", region, "get_policy", PolicyArn=arn, fine=_NONE)
    if found is None:
        return []
    line = Line("boundary", called, "", True)
    if tags_of(found["Policy"].get("Tags")).get(OWNER) != store_url:
        line.remark = "left: an administrator made it (`aws iam delete-policy` removes it)"
    else:
        line.add("remove, if these credentials may", lambda: _remove_boundary(calls, arn, region))
    return [line]


def _remove_boundary(calls: Calls, arn: str, region: str) -> None:
    """It stays where the policy that setup prints is all that somebody has: that may not touch
    it."""
    given = {"PolicyArn": arn}
    fine = (*DENIED, *_NONE)
    told = calls("iam", region, "list_policy_versions", fine=fine, **given) or {"Versions": []}
    for each in told["Versions"]:
        if not each["IsDefaultVersion"]:
            version = each["VersionId"]
            calls("iam", region, "delete_policy_version", VersionId=version, fine=fine, **given)
    calls("iam", region, "delete_policy", fine=fine, again=_BUSY, **given)


def look_at_bucket(calls: Calls, store_url: str, region: str) -> Line:
    """Only a bucket that setup tagged, and in which nothing is but this store."""
    bucket, prefix = bucket_of(store_url)
    told = calls("s3", region, "get_bucket_tagging", Bucket=bucket, fine=("NoSuchTagSet",)) or {}
    if tags_of(told.get("TagSet")).get(OWNER) != f"s3://{bucket}":
        raise InvalidValue(
            f"the bucket {bucket} has no tag {OWNER}=s3://{bucket}: setup did not make it",
            hint="leave out --delete-bucket",
        )
    versions = _versions(calls, bucket, region)
    others = [key for key, _ in versions if not key.startswith(prefix)]
    others += [key for key, _ in versions if key.endswith(f"/{KEY}") and key != prefix + KEY]
    if others:
        raise InvalidValue(
            f"the bucket {bucket} holds more than {store_url}: {others[0]}, for example",
            hint="leave out --delete-bucket, or remove that first",
        )
    line = Line("bucket", bucket, region, True, last=True)
    words = f"remove, and {len(versions):,} objects and versions in it"
    line.add(words, lambda: _remove_bucket(calls, bucket, region))
    return line


def _versions(calls: Calls, bucket: str, region: str) -> list[tuple[str, str]]:
    """With the marks of deletions, which are versions too."""
    found = []
    for key in ("Versions", "DeleteMarkers"):
        pages = calls.pages("s3", region, "list_object_versions", key, Bucket=bucket)
        found += [(each["Key"], each["VersionId"]) for each in pages]
    return found


def _remove_bucket(calls: Calls, bucket: str, region: str) -> None:
    for upload in calls.pages("s3", region, "list_multipart_uploads", "Uploads", Bucket=bucket):
        calls(
            "s3", region, "abort_multipart_upload", Bucket=bucket, Key=upload["Key"],
            UploadId=upload["UploadId"], fine=("NoSuchUpload",),
        )  # fmt: skip
    versions = _versions(calls, bucket, region)
    for start in range(0, len(versions), _AT_ONCE):
        some = [{"Key": k, "VersionId": v} for k, v in versions[start : start + _AT_ONCE]]
        calls(
            "s3", region, "delete_objects", Bucket=bucket, Delete={"Objects": some, "Quiet": True}
        )
    calls("s3", region, "delete_bucket", Bucket=bucket, fine=("NoSuchBucket",), again=_BUSY)
