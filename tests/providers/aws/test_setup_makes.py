"""Setup against an emulated account: what is there afterwards, and that it may be cut off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.providers.aws import account_server as server
from tests.providers.aws.setups import plan_setup, written
from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.providers.aws.footprint import name
from tradewind.providers.aws.setup import policies
from tradewind.providers.aws.setup.bucket import CLOSED
from tradewind.providers.aws.setup.make import Wish

STORE = "s3://my-bucket/tw"
CALLED = name(STORE)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.served() as found:
        yield found


@pytest.fixture(autouse=True)
def account(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server.entered(url, monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def watched(url: str) -> Iterator[server.Watched]:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as home:
        server.entered(url, patch, Path(home))
        yield server.Watched()


def made(*regions: str, store: str = STORE, **wishes: Any) -> Any:
    return plan_setup(Wish(store_url=store, regions=regions, **wishes)).carry_out()


def test_all_of_it_is_made_as_it_should_be() -> None:
    record = made("us-west-2", "us-east-1")
    bucket = server.bucket_state("my-bucket", "us-west-2")
    assert bucket["versioning"] == "Enabled"
    assert bucket["encryption"] == "AES256"
    assert bucket["closed"] == CLOSED
    assert bucket["ownership"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert bucket["policy"] == policies.bucket(STORE, "us-west-2")
    assert bucket["tags"] == [{"Key": "tradewind:owner", "Value": "s3://my-bucket"}]
    assert bucket["keys"] == ["tw/providers/aws.json"]
    role = server.roles_state(CALLED)
    assert role["trust"]["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com"}
    assert role["policies"] == {"store": policies.machines(STORE, "us-west-2")}
    assert role["attached"] == []
    assert role["profile"] == [CALLED]
    assert role["boundary"] == f"arn:aws:iam::123456789012:policy/{CALLED}-boundary"
    assert role["bounded"] == policies.boundary(STORE, "us-west-2")
    for region in ("us-west-2", "us-east-1"):
        network = server.network_state(region, STORE)
        assert network["vpcs"] == []
        out = [("-1", "0.0.0.0/0")]
        assert network["groups"] == [{"name": CALLED, "in": [], "out": out}]
        kept = record.regions[region]
        assert kept.public
        assert {"usw2-az1", "use1-az1"} & kept.subnets.keys()
        found = server.client("ec2", region).describe_subnets(SubnetIds=[*kept.subnets.values()])
        assert {each["VpcId"] for each in found["Subnets"]} == {kept.vpc}
    assert written(STORE, "us-west-2") == record
    assert (record.bucket, record.bucket_region) == ("my-bucket", "us-west-2")


def test_what_expires_and_what_never_does() -> None:
    made("us-west-2")
    rules = {rule["ID"]: rule for rule in server.bucket_state("my-bucket", "us-west-2")["rules"]}
    assert all(rule["Status"] == "Enabled" for rule in rules.values())
    current = [rule for rule in rules.values() if "Days" in rule.get("Expiration", {})]
    assert [rule["Filter"] for rule in current] == [{"Prefix": "tw/kits/"}]
    assert rules[f"{CALLED}-unfinished"]["AbortIncompleteMultipartUpload"] == {
        "DaysAfterInitiation": 7
    }
    pruned = rules[f"{CALLED}-pruned"]
    assert pruned["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert pruned["Filter"]["And"]["ObjectSizeGreaterThan"] == 1 << 20
    assert rules[f"{CALLED}-replaced"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 7}


def test_a_private_network_reaches_s3_and_nothing_else(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.with_managed_policies(url, monkeypatch)
    record = made("eu-west-1", private=True, ssm=True)
    network = server.network_state("eu-west-1", STORE)
    assert network["vpcs"] == ["10.77.0.0/16"]
    assert [zone for zone, _ in network["subnets"]] == ["euw1-az1", "euw1-az2", "euw1-az3"]
    assert network["routed"] == [3]
    assert network["endpoints"] == [("com.amazonaws.eu-west-1.s3", 1)]
    assert server.roles_state(CALLED)["attached"] == ["AmazonSSMManagedInstanceCore"]
    kept = record.regions["eu-west-1"]
    assert not kept.public
    ec2 = server.client("ec2", "eu-west-1")
    inside = [{"Name": "vpc-id", "Values": [kept.vpc]}]
    group = ec2.describe_security_groups(GroupIds=[kept.security_group])["SecurityGroups"][0]
    assert group["VpcId"] == kept.vpc
    gateways = ec2.describe_internet_gateways(
        Filters=[{"Name": "attachment.vpc-id", "Values": [kept.vpc]}]
    )
    assert gateways["InternetGateways"] == []
    assert ec2.describe_nat_gateways(Filters=inside)["NatGateways"] == []


@pytest.mark.parametrize("private", [False, True])
def test_a_second_time_changes_nothing(watched: server.Watched, private: bool) -> None:
    made("eu-west-1", private=private)
    again = plan_setup(Wish(store_url=STORE), watched.again())
    assert again.prepared.changes == 0
    assert again.recorded
    again.carry_out()
    assert watched.reads > 10
    assert watched.changed == []


def test_a_region_is_added_later_and_what_was_said_stays() -> None:
    server.client("ec2", "us-east-1").create_key_pair(KeyName="mine")
    made("us-east-1", image="/my/image", key_pair="mine")
    record = made("us-west-2")
    assert sorted(record.regions) == ["us-east-1", "us-west-2"]
    assert (record.bucket_region, record.image, record.key_pair) == (
        "us-east-1",
        "/my/image",
        "mine",
    )


def test_what_others_have_set_on_a_bucket_stays() -> None:
    s3 = server.client("s3", "us-east-1")
    s3.create_bucket(Bucket="my-bucket")
    theirs = {
        "Sid": "Theirs",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
        "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::my-bucket/data/*",
    }
    policy = {"Version": "2012-10-17", "Statement": [theirs]}
    s3.put_bucket_policy(Bucket="my-bucket", Policy=json.dumps(policy))
    s3.put_bucket_tagging(Bucket="my-bucket", Tagging={"TagSet": [{"Key": "team", "Value": "x"}]})
    rule = {
        "ID": "theirs",
        "Status": "Enabled",
        "Filter": {"Prefix": "data/"},
        "Expiration": {"Days": 9},
    }
    s3.put_bucket_lifecycle_configuration(
        Bucket="my-bucket", LifecycleConfiguration={"Rules": [rule]}
    )
    made("us-east-1")
    made("us-east-1", store="s3://my-bucket/other")
    state = server.bucket_state("my-bucket", "us-east-1")
    assert [each["Sid"] for each in state["policy"]["Statement"]] == ["Theirs", policies.TLS_ONLY]
    assert {each["ID"] for each in state["rules"]} >= {"theirs", f"{CALLED}-kits"}
    assert len(state["rules"]) == 1 + 4 + 4
    assert {"Key": "team", "Value": "x"} in state["tags"]
    assert plan_setup(Wish(store_url=STORE)).recorded


def test_who_may_not_make_the_boundary_is_told_who_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is made."""
    monkeypatch.setitem(server.REFUSED, "CreatePolicy", "AccessDenied")
    with pytest.raises(
        NoAccess, match=f"the permissions boundary {CALLED}-boundary is not"
    ) as told:
        made("us-west-2")
    hint = str(told.value.hint)
    assert f"--store {STORE} --region us-west-2 --print boundary > boundary.json" in hint
    assert f"aws iam create-policy --policy-name {CALLED}-boundary" in hint
    assert server.client("s3").list_buckets()["Buckets"] == []


def test_what_an_administrator_has_made_of_the_boundary_stays(watched: server.Watched) -> None:
    iam = server.client("iam")
    more = policies.boundary(STORE, "us-west-2")
    more["Statement"].append(policies.allow("Data", ["s3:GetObject"], ["arn:aws:s3:::data/*"]))
    given = {"PolicyName": f"{CALLED}-boundary", "PolicyDocument": json.dumps(more)}
    iam.create_policy(**given)
    plan = plan_setup(Wish(store_url=STORE, regions=("us-west-2",)), watched.again())
    line = plan.prepared.lines[0]
    assert (line.what, line.there, line.changes) == ("boundary", True, [])
    assert "not what --print boundary prints" in line.remark
    plan.carry_out()
    assert server.roles_state(CALLED)["bounded"] == more
    assert "CreatePolicyVersion" not in watched.changed


def test_a_boundary_of_others_on_the_role_stays() -> None:
    made("us-west-2")
    iam = server.client("iam")
    text = json.dumps(policies.document([policies.allow("All", ["*"], ["*"])]))
    theirs = iam.create_policy(PolicyName="of-all", PolicyDocument=text)["Policy"]["Arn"]
    iam.put_role_permissions_boundary(RoleName=CALLED, PermissionsBoundary=theirs)
    lines = plan_setup(Wish(store_url=STORE)).prepared.lines
    (role,) = [line for line in lines if line.what == "role"]
    assert role.changes == []
    assert theirs in role.remark


def test_a_role_that_others_may_assume_is_refused() -> None:
    """It would not be mended for good: whoever did it may do it again."""
    made("us-west-2")
    trust = policies.trust("us-west-2")
    trust["Statement"].append(
        {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    )
    server.client("iam").update_assume_role_policy(
        RoleName=CALLED, PolicyDocument=json.dumps(trust)
    )
    with pytest.raises(InvalidValue, match="may be assumed by others than EC2") as told:
        plan_setup(Wish(store_url=STORE))
    assert "teardown" in str(told.value.hint)


def test_a_group_of_that_name_that_is_not_ours_is_not_made_ours() -> None:
    record = made("us-west-2")
    group = record.regions["us-west-2"].security_group
    ec2 = server.client("ec2", "us-west-2")
    ec2.delete_tags(Resources=[group], Tags=[{"Key": "tradewind:owner"}])
    with pytest.raises(InvalidValue, match=f"{group} in us-west-2 has the name {CALLED}") as told:
        plan_setup(Wish(store_url=STORE))
    assert f"delete-security-group --region us-west-2 --group-id {group}" in str(told.value.hint)


def test_rules_of_others_on_the_group_stay() -> None:
    group = made("us-west-2").regions["us-west-2"].security_group
    ec2 = server.client("ec2", "us-west-2")
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22,
           "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}  # fmt: skip
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[ssh])
    lines = plan_setup(Wish(store_url=STORE)).prepared.lines
    (line,) = [line for line in lines if line.what == "security group"]
    assert line.changes == []
    assert "lets others in too" in line.remark


def cut_off(account: server.Watched, **wishes: Any) -> bool:
    """Whether it was; else it had fewer changes to make."""
    try:
        plan_setup(Wish(store_url=STORE, **wishes), account).carry_out()
    except server.Cut:
        return True
    return False


@pytest.mark.system
@pytest.mark.parametrize("private", [False, True])
def test_cut_off_anywhere_it_goes_on(url: str, watched: server.Watched, private: bool) -> None:
    wishes: dict[str, Any] = {"regions": ("eu-west-1",), "private": private}

    def state() -> list[Any]:
        return [
            server.bucket_state("my-bucket", "eu-west-1"),
            server.roles_state(CALLED),
            server.network_state("eu-west-1", STORE),
        ]

    plan_setup(Wish(store_url=STORE, **wishes), watched.again()).carry_out()
    whole = state()
    after = 1
    while True:
        server.emptied(url)
        if not cut_off(watched.again(cut_after=after), **wishes):
            break
        if after > 1:  # the record comes last
            assert written(STORE, "eu-west-1") is None
        record = plan_setup(Wish(store_url=STORE, **wishes), watched.again()).carry_out()
        assert state() == whole, f"cut off after {after} changes"
        assert written(STORE, "eu-west-1") == record
        assert record.regions["eu-west-1"].security_group.startswith("sg-")
        assert len(record.regions["eu-west-1"].subnets) == 3
        after += 1
    assert after > (22 if private else 14)
