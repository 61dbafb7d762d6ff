from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache, partial

import pytest

from tests.providers.aws.cloud import KEYS, Answer, Cloud, error, quotas_of, xml
from tests.providers.aws.machines import with_role
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, Network
from tradewind.providers.aws.setup import policies

HERE, OURS = "us-east-1", "s3://bucket/runs"
QUOTAS = dict.fromkeys("L-DB2E81BA L-3819A6DF L-417A185B L-7212CCBC L-C4BD4855".split(), 192.0)
_DRY = error("DryRunOperation", "Request would have succeeded", 412)


@pytest.fixture(scope="package")
def _running() -> Iterator[Cloud]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # two seconds
        with Cloud() as running:
            yield running


@pytest.fixture
def cloud(_running: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", _running.url)
    _running.forget()
    return _running


@pytest.fixture
def account(cloud: Cloud) -> Account:
    return Account()


@pytest.fixture
def footprint(cloud: Cloud, account: Account) -> Footprint:
    """An account as setup leaves it."""
    ec2, iam = account.client("ec2", HERE), account.client("iam", HERE)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {}
    for number, zone in enumerate(["us-east-1a", "us-east-1b"]):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{number}.0/24", AvailabilityZone=zone)[
            "Subnet"
        ]
        subnets[made["AvailabilityZoneId"]] = made["SubnetId"]
    group = ec2.create_security_group(GroupName="ours", Description="ours", VpcId=vpc)["GroupId"]
    with_role(iam, "ours", OURS)
    s3 = account.client("s3", HERE)
    s3.create_bucket(Bucket="bucket")
    s3.put_bucket_policy(Bucket="bucket", Policy=json.dumps(policies.bucket(OURS, HERE)))
    image = ec2.register_image(Name="Deep Learning AMI")["ImageId"]
    cloud.on("GetParameter", Answer(json.dumps({"Parameter": {"Value": image}})))
    cloud.on("CreatePlacementGroup", _DRY)
    key = xml("GetEbsDefaultKmsKeyId", kmsKeyId="alias/aws/ebs")  # which moto does not have
    cloud.on("GetEbsDefaultKmsKeyId", key)
    quotas_of(cloud, QUOTAS)
    return Footprint(
        account="123456789012",
        bucket="bucket",
        bucket_region=HERE,
        instance_profile="ours",
        regions={HERE: Network(vpc=vpc, security_group=group, subnets=subnets)},
    )


@pytest.fixture(scope="session", autouse=True)
def descriptions() -> Iterator[None]:
    """botocore's files about AWS, megabytes of JSON, are read once and not by every session."""
    from botocore.loaders import JSONFileLoader

    read = cache(partial(JSONFileLoader.load_file, JSONFileLoader()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", lambda self, path: read(path))
        yield
