"""Printed policies against what is really asked: each permission that is needed is in them, and
none that nothing needs, but for those with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ec2.control import Control
from tests.ec2.server import running
from tests.providers.aws import account_server as server
from tests.providers.aws import machines
from tests.providers.aws.asked import noted
from tradewind.api.aws.setup import plan_setup, plan_teardown
from tradewind.model.run import Request
from tradewind.providers.aws.checks.account import checks
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits.usable import usable
from tradewind.providers.aws.provider import AwsProvider
from tradewind.providers.aws.setup import policies, setter
from tradewind.providers.aws.setup.make import Wish

BY_THE_STORE = {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"}
"""Asked without boto3: the record that setup keeps, and all of a run."""


def allowed(document: Any) -> set[str]:
    return {action for each in document["Statement"] for action in each["Action"]}


SETTER_FOR = {
    "ec2:DescribeKeyPairs": "--key-pair",
    "ec2:ModifyVpcEndpoint": "an endpoint that somebody has changed is mended",
    "iam:UpdateAssumeRolePolicy": "a role that somebody has changed is mended",
}


@pytest.mark.parametrize("more", [{}, {"ssm": True}, {"private": True}])
def test_setup_and_teardown(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = "s3://my-bucket/tw"
    with server.served() as url:
        server.entered(url, monkeypatch, tmp_path)
        server.with_managed_policies(url, monkeypatch)
        with noted() as needed:
            wish = Wish(store_url=store, regions=("us-east-1",), **more)
            for _ in range(2):  # made, and found
                plan_setup(wish).carry_out()
            s3 = server.client("s3")
            s3.create_multipart_upload(Bucket="my-bucket", Key="tw/runs/x")
            needed.discard("s3:CreateMultipartUpload")  # that was us
            plan_teardown(store, delete_bucket=True).carry_out()
    may = allowed(setter.setter(store, "us-east-1", **more))
    assert needed <= may
    reasons = dict(SETTER_FOR)
    if not more.get("private"):
        del reasons["ec2:ModifyVpcEndpoint"]
    assert may - needed - BY_THE_STORE == set(reasons)


USER_FOR = {
    "ec2:DescribeCapacityReservations": "machines of a reservation",
    "iam:CreateServiceLinkedRole": "EC2 asks for it, with the first spot machine of an account",
    "s3:ListBucket": "asked without boto3",
    "servicequotas:ListServiceQuotas": "quotas whose code AWS does not list",
    "sts:DecodeAuthorizationMessage": "what a refusal means",
}


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    with running(tmp_path / "ec2", bodies="none") as control:
        for name, value in control.env.items():
            monkeypatch.setenv(name, value)
        yield control


def test_running_and_looking(cloud: Control) -> None:
    store = "s3://my-bucket/tw"
    record = machines.footprint(cloud)
    with noted() as needed:
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
    may = allowed(policies.user(store, "us-east-1"))
    assert needed <= may
    assert may - needed - BY_THE_STORE == set(USER_FOR)
