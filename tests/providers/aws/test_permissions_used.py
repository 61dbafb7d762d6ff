"""Printed policies against what is really asked: each request would be allowed, with its resource
and its tags, and no permission is in them that nothing needs, but for those with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.faces.ec2.control import Control, running
from tests.providers.aws import account_server as server
from tests.providers.aws import iam, machines
from tests.providers.aws.asked import noted
from tests.providers.aws.setups import plan_setup, plan_teardown
from tradewind.model.run import Request
from tradewind.providers.aws.checks.account import checks
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, name
from tradewind.providers.aws.limits.usable import usable
from tradewind.providers.aws.provider import AwsProvider
from tradewind.providers.aws.setup import policies, setter
from tradewind.providers.aws.setup.make import Wish

pytestmark = pytest.mark.slow

BY_THE_STORE = {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
"""Asked without boto3: the record that setup keeps, and all of a run."""


def allowed(document: Any) -> set[str]:
    statements = [each for each in document["Statement"] if each["Effect"] == "Allow"]
    return {action for each in statements for action in each["Action"]}


def refused(document: Any, asked: Sequence[iam.Request]) -> list[iam.Request]:
    return [each for each in asked if not iam.allows([document], each)]


SETTER_FOR = {
    "ec2:AuthorizeSecurityGroupEgress": "a group that someone changed is mended",
    "ec2:DescribeKeyPairs": "--key-pair",
    "ec2:ModifyVpcEndpoint": "an endpoint that someone changed is mended",
    "ec2:RevokeSecurityGroupIngress": "a group of an earlier version is mended",
    "iam:PutRolePermissionsBoundary": "a role of an earlier version is put inside the boundary",
}


@pytest.mark.parametrize("more", [{}, {"ssm": True}, {"private": True}, {"lend": True}])
def test_setup_and_teardown(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = "s3://my-bucket/tw"
    with server.served() as url:
        server.entered(url, monkeypatch, tmp_path)
        server.with_managed_policies(url, monkeypatch)
        _bounded(store)
        with noted() as asked:
            wish = Wish(store_url=store, regions=("us-east-1",), **more)
            for _ in range(2):  # made, and found
                plan_setup(wish).carry_out()
            s3 = server.client("s3")
            s3.create_multipart_upload(Bucket="my-bucket", Key="tw/runs/x")
            asked.pop()  # that was us
            plan_teardown(store, delete_bucket=True).carry_out()
    policy = setter.setter(store, "us-east-1", **more)
    assert refused(policy, asked) == []
    may, needed = allowed(policy), {each.action for each in asked}
    reasons = dict(SETTER_FOR)
    if not more.get("private"):
        del reasons["ec2:ModifyVpcEndpoint"]
    assert may - needed - BY_THE_STORE == set(reasons)


def _bounded(store: str) -> None:
    """An administrator has made the boundaries, as docs/aws.md says."""
    for called, document in (
        (policies.boundary_name(store), policies.boundary(store, "us-east-1")),
        (policies.lend_boundary_name(store), policies.lending(store, "us-east-1")),
    ):
        text = json.dumps(document)
        server.client("iam").create_policy(PolicyName=called, PolicyDocument=text)


def test_what_an_earlier_version_made_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role without a boundary, and a group that lets every machine of the store in."""
    store = "s3://my-bucket/tw"
    with server.served() as url:
        server.entered(url, monkeypatch, tmp_path)
        _bounded(store)
        wish = Wish(store_url=store, regions=("us-east-1",))
        group = plan_setup(wish).carry_out().regions["us-east-1"].security_group
        roles, ec2 = server.client("iam"), server.client("ec2")
        roles.delete_role_permissions_boundary(RoleName=name(store))
        itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=itself)
        with noted() as asked:
            plan = plan_setup(wish)
            words = [change.words for line in plan.prepared.lines for change in line.changes]
            assert words == ["inside the boundary", "no longer inbound from itself"]
            plan.carry_out()
        assert server.network_state("us-east-1", store)["groups"][0]["in"] == []
        role = roles.get_role(RoleName=name(store))["Role"]
        assert role["PermissionsBoundary"]["PermissionsBoundaryArn"].endswith("-boundary")
        assert plan_setup(wish).recorded
    assert refused(setter.setter(store, "us-east-1"), asked) == []


USER_FOR = {
    "ec2:DescribeCapacityReservations": "machines of a reservation",
    "iam:CreateServiceLinkedRole": "EC2 asks for it, with the first spot machine of an account",
    "s3:ListBucket": "asked without boto3",
    "servicequotas:ListServiceQuotas": "quotas whose code AWS does not list",
    "sts:DecodeAuthorizationMessage": "what a refusal means",
}


NOT_NEEDED = {"iam:GetRole", "iam:GetRolePolicy", "s3:GetBucketPolicy"}
"""Doctor compares policies where it may look, and else says so."""


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    with running(tmp_path / "ec2", bodies="none") as control:
        for name, value in control.env.items():
            monkeypatch.setenv(name, value)
        yield control


def _as_set_up(cloud: Control, store: str) -> Footprint:
    """With names and tags of setup: policies are about those."""
    return machines.footprint(cloud, store_url=store)


def test_running_and_looking(cloud: Control) -> None:
    store = "s3://my-bucket/tw"
    record = _as_set_up(cloud, store)
    with noted() as asked:
        account = Account()
        provider = AwsProvider(account, record, store, machines.packed)
        ways = [
            machines.way(market="spot"),
            machines.way(),
            machines.way(instance_type="p4d.24xlarge", nodes=2, market="spot"),
        ]
        usable(account, record, ways)
        list(checks(account, record, store_url=store))
        for leg, way in enumerate(ways, 1):
            request = Request(launch_id=f"l{leg}", run_id="run", leg=leg, way=way, hard_stop_s=3600)
            provider.launch(request, 1)
        provider.terminate([each.machine_id for each in provider.list_machines().machines])
        cloud.advance(600)
        assert all(each.ended_s is not None for each in provider.list_machines().machines)
        for leftover in provider.leftovers():
            assert provider.remove(leftover)
    # Doctor tries to end a machine where there is none, of which a refusal says nothing.
    asked = [each for each in asked if not each.resource.endswith("/i-00000000000000000")]
    asked = [each for each in asked if each.action not in NOT_NEEDED]
    policy = policies.user(store, "us-east-1")
    assert refused(policy, asked) == []
    may, needed = allowed(policy), {each.action for each in asked}
    assert may - needed - BY_THE_STORE == set(USER_FOR)
