"""Teardown against an emulated account: nothing is left, and nothing of others is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, WAY
from tests.providers.aws import account_server as server
from tests.providers.aws.setups import plan_setup, plan_teardown, written
from tradewind import store as stores
from tradewind.base import clock, steps
from tradewind.base.errors import InvalidValue
from tradewind.controller.controller import Controller
from tradewind.controller.drive import performer
from tradewind.providers.aws.footprint import OWNER, name
from tradewind.providers.aws.setup import policies
from tradewind.providers.aws.setup.make import Wish

STORE, OTHER, WAITING = (f"s3://my-bucket/{each}" for each in ("tw", "other", "waits"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.served() as found:
        yield found


@pytest.fixture(scope="module")
def watched(url: str) -> Iterator[server.Watched]:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        server.entered(url, patch, Path(home))
        yield server.Watched()


@pytest.fixture(autouse=True)
def account(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server.entered(url, monkeypatch, tmp_path)


def made(account: server.Watched, *regions: str, store: str = STORE, **more: Any) -> Any:
    wish = Wish(store_url=store, regions=regions, **more)
    return plan_setup(wish, account.again()).carry_out()


def removed(account: server.Watched, store: str = STORE, **more: Any) -> int:
    plan = plan_teardown(store, account=account, **more)
    plan.carry_out()
    return plan.changes


def left(store: str, *regions: str) -> list[Any]:
    """What is there of a store."""
    networks = [server.network_state(region, store) for region in regions]
    found: list[Any] = [part for network in networks for part in network.values() if part]
    iam = server.client("iam")
    with suppress(iam.exceptions.NoSuchEntityException):
        found.append(server.roles_state(name(store)))
    local = [each["PolicyName"] for each in iam.list_policies(Scope="Local")["Policies"]]
    return found + [each for each in local if each == policies.boundary_name(store)]


def test_nothing_is_left_and_another_store_is_untouched(watched: server.Watched) -> None:
    made(watched, "us-east-1", "us-west-2")
    made(watched, "us-east-1", store=OTHER)
    before = left(OTHER, "us-east-1")
    assert removed(watched) > 0
    assert left(STORE, "us-east-1", "us-west-2") == []
    assert left(OTHER, "us-east-1") == before
    assert len(before) == 3
    assert server.bucket_state("my-bucket", "us-east-1")["keys"] == ["other/providers/aws.json"]
    assert removed(watched) == 0
    made(watched, "us-east-1")  # and all over again
    assert left(STORE, "us-east-1") != []


def test_a_run_that_waits_for_machines_keeps_its_setup(watched: server.Watched) -> None:
    """It has none up, and what it needs to get one would be gone."""
    made(watched, "us-east-1", store=WAITING)
    store = stores.open(WAITING)
    controller = Controller("ctl", ("aws",), clock=clock.epoch, watch=clock.epoch)
    spec = replace(SPEC, ways=(replace(WAY, provider="aws"),))
    assert steps.run(controller.submit("lora-1", spec), performer(store, {}))
    with pytest.raises(InvalidValue, match="go on: lora-1") as told:
        removed(watched, store=WAITING)
    assert "tradewind stop lora-1 --store s3://my-bucket/waits" in str(told.value.hint)
    assert left(WAITING, "us-east-1") != []
    for key in store.list_after("live/"):  # as when it is closed
        store.delete(key)
    assert removed(watched, store=WAITING) > 0


def test_a_private_network_goes_too(watched: server.Watched) -> None:
    made(watched, "eu-west-1", private=True)
    vpcs = server.client("ec2", "eu-west-1").describe_vpcs()["Vpcs"]
    assert len(vpcs) == 2
    removed(watched)
    assert left(STORE, "eu-west-1") == []
    vpcs = server.client("ec2", "eu-west-1").describe_vpcs()["Vpcs"]
    assert [vpc["IsDefault"] for vpc in vpcs] == [True]


def test_it_is_refused_while_machines_are_up(watched: server.Watched) -> None:
    record = made(watched, "us-east-1")
    ec2 = server.client("ec2", "us-east-1")
    image = "ami-0123456789abcdef0"
    tags = [{"ResourceType": "instance", "Tags": [{"Key": OWNER, "Value": STORE}]}]
    network = record.regions["us-east-1"]
    machine = ec2.run_instances(
        ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags,
        SecurityGroupIds=[network.security_group], SubnetId=min(network.subnets.values()),
    )["Instances"][0]["InstanceId"]  # fmt: skip
    with pytest.raises(InvalidValue, match=machine):
        plan_teardown(STORE, account=watched)
    plan_teardown(OTHER, account=watched)  # which is none of its
    assert left(STORE, "us-east-1") != []
    ec2.terminate_instances(InstanceIds=[machine])
    removed(watched)
    assert left(STORE, "us-east-1") == []


def test_a_bucket_goes_only_when_asked_for_and_with_every_version(watched: server.Watched) -> None:
    made(watched, "eu-central-1", store="s3://whole")
    s3 = server.client("s3", "eu-central-1")
    for number in range(3):
        s3.put_object(Bucket="whole", Key="runs/a/logs/x", Body=str(number).encode())
    s3.delete_object(Bucket="whole", Key="runs/a/logs/x")
    s3.create_multipart_upload(Bucket="whole", Key="runs/a/shards/y")
    removed(watched, "s3://whole", delete_bucket=True)
    assert left("s3://whole", "eu-central-1") == []
    assert [each["Name"] for each in s3.list_buckets()["Buckets"]] == []
    assert removed(watched, "s3://whole", regions=("eu-central-1",), delete_bucket=True) == 0


def test_a_bucket_with_more_in_it_or_of_others_stays(watched: server.Watched) -> None:
    made(watched, "us-east-1")
    made(watched, "us-east-1", store=OTHER)
    made(watched, "us-east-1", store="s3://my-bucket")
    s3 = server.client("s3", "us-east-1")
    for store in (STORE, "s3://my-bucket"):
        with pytest.raises(InvalidValue, match="holds more than"):
            plan_teardown(store, delete_bucket=True, account=watched)
    s3.create_bucket(Bucket="someones")
    with pytest.raises(InvalidValue, match="setup did not make it"):
        plan_teardown("s3://someones", delete_bucket=True, account=watched)
    assert len(s3.list_buckets()["Buckets"]) == 2


def test_a_lost_record_loses_nothing(watched: server.Watched) -> None:
    made(watched, "us-east-1", "us-west-2")
    s3 = server.client("s3", "us-east-1")
    s3.delete_object(Bucket="my-bucket", Key="tw/providers/aws.json")
    removed(watched, regions=("us-west-2",))
    assert left(STORE, "us-east-1", "us-west-2") == []


@pytest.mark.system
@pytest.mark.parametrize("private", [False, True])
def test_cut_off_anywhere_it_goes_on(url: str, watched: server.Watched, private: bool) -> None:
    after = 1
    while True:
        server.emptied(url)
        made(watched, "eu-west-1", private=private)
        watched.again(cut_after=after)
        try:
            removed(watched, regions=("eu-west-1",))
            break
        except server.Cut:
            pass
        removed(watched.again(), regions=("eu-west-1",))
        assert left(STORE, "eu-west-1") == [], f"cut off after {after} changes"
        assert written(STORE, "eu-west-1") is None
        after += 1
    assert after > (12 if private else 5)


def test_an_administrators_boundary_stays(watched: server.Watched) -> None:
    text = json.dumps(policies.boundary(STORE, "us-east-1"))
    given = {"PolicyName": policies.boundary_name(STORE), "PolicyDocument": text}
    server.client("iam").create_policy(**given)
    made(watched, "us-east-1")
    plan = plan_teardown(STORE, account=watched)
    plan.carry_out()
    assert left(STORE, "us-east-1") == [policies.boundary_name(STORE)]
    assert plan.lines[-1].remark.startswith("left: an administrator made it")


def test_who_may_not_remove_the_boundary_removes_the_rest(
    watched: server.Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(watched, "us-east-1")
    for action in ("ListPolicyVersions", "DeletePolicy"):
        monkeypatch.setitem(server.REFUSED, action, "AccessDenied")
    removed(watched)
    assert left(STORE, "us-east-1") == [policies.boundary_name(STORE)]


def test_a_boundary_with_older_versions_goes(watched: server.Watched) -> None:
    made(watched, "us-east-1")
    arn = policies.policy_arn(policies.boundary_name(STORE), "us-east-1", "123456789012")
    text = json.dumps(policies.boundary(STORE, "us-east-1"))
    server.client("iam").create_policy_version(
        PolicyArn=arn, PolicyDocument=text, SetAsDefault=True
    )
    removed(watched)
    assert left(STORE, "us-east-1") == []


def test_groups_of_legs_go_too(watched: server.Watched) -> None:
    record = made(watched, "us-east-1")
    ec2 = server.client("ec2", "us-east-1")
    for called, owner in (("tradewind-r-1", STORE), ("tradewind-r-2", OTHER), ("mine", STORE)):
        tags = [{"ResourceType": "security-group", "Tags": [{"Key": OWNER, "Value": owner}]}]
        ec2.create_security_group(
            GroupName=called, Description="x", VpcId=record.regions["us-east-1"].vpc,
            TagSpecifications=tags,
        )  # fmt: skip
    removed(watched)
    groups = ec2.describe_security_groups()["SecurityGroups"]
    assert {"tradewind-r-2", "mine"} == {each["GroupName"] for each in groups} - {"default"}


def test_a_role_of_that_name_that_is_not_ours_stays(watched: server.Watched) -> None:
    made(watched, "us-east-1")
    iam = server.client("iam")
    iam.untag_role(RoleName=name(STORE), TagKeys=[OWNER])
    plan = plan_teardown(STORE, account=watched)
    plan.carry_out()
    assert iam.get_role(RoleName=name(STORE))["Role"]["RoleName"] == name(STORE)
    assert next(line.remark for line in plan.lines if line.what == "role").startswith("left")
