"""The commands: what they show, ask and print, and one line for what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, home, on_a_terminal  # noqa: F401
from tests.providers.aws import account_server as server
from tradewind.providers.aws.footprint import name, secrets_path

STORE = "s3://my-bucket/tw"
SETUP = ("aws", "setup", "--store", STORE)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.served() as found:
        yield found


@pytest.fixture(autouse=True)
def account(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path  # noqa: F811
) -> Iterator[None]:  # fmt: skip
    server.entered(url, monkeypatch, tmp_path)
    yield
    server.REFUSED.clear()


def test_set_up_again_and_removed(cli: Cli) -> None:  # noqa: F811
    asked = cli(*SETUP, "--region", "us-east-1")
    assert asked.code == 2
    assert "add --yes" in asked.err
    assert "all public access blocked" in asked.out  # shown first
    assert server.client("s3").list_buckets()["Buckets"] == []
    done = cli(*SETUP, "--region", "us-east-1", "--yes")
    assert done.code == 0, done.err
    assert "made, and written down in the store" in done.out
    assert f"secrets of jobs: aws-ssm:/{secrets_path(STORE)}" in done.out
    again = cli(*SETUP)
    assert "nothing to do" in again.out
    as_json = cli(*SETUP, "--json").json
    assert as_json["changes"] == 0
    assert as_json["instance_profile"] == name(STORE)
    assert {thing["what"] for thing in as_json["things"]} >= {"bucket", "role", "security group"}
    assert cli("aws", "teardown", "--store", STORE).code == 2
    gone = cli("aws", "teardown", "--store", STORE, "--yes")
    assert "the bucket my-bucket and all in it stay" in gone.out
    assert "nothing to do" in cli("aws", "teardown", "--store", STORE).out


def test_a_policy_is_printed_on_a_terminal_too(home: Path) -> None:  # noqa: F811
    shown = on_a_terminal(home, *SETUP, "--region", "us-east-1", "--print", "policy")
    assert '"Sid": "RunOurs"' in shown


def test_nothing_is_asked_of_aws_to_print(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    for variable in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    assert json.loads(cli(*SETUP, "--print", "policy").out)["Version"] == "2012-10-17"
    assert cli(*SETUP, "--print", "terraform").err.startswith("error: no region is named")
    printed = cli(*SETUP, "--region", "us-east-1", "--print", "terraform").out
    assert 'resource "aws_iam_role" "machines"' in printed
    printed = cli(*SETUP, "--region", "us-east-1", "--print", "cloudformation").out
    assert printed.startswith("AWSTemplateFormatVersion")
    refused = cli(*SETUP)
    assert (refused.code, refused.err.splitlines()[0]) == (5, "error: there are no AWS credentials")


WRONG = [
    (("--store", "az://b", "--region", "us-east-1"), 2, "is not an S3 bucket on AWS"),
    (("--store", "s3://my-bucket/a*", "--region", "us-east-1"), 2, "cannot be set up"),
    (("--store", STORE), 2, "no region is named"),
    (("--store", STORE, "--region", "us-east-9"), 3, "AWS has no region 'us-east-9'"),
    (("--store", STORE, "--region", "me-south-1"), 5, "is not enabled in this account"),
    (("--store", STORE, "--region", "us-east-1", "--image", "ubuntu"), 2, "neither an image"),
    (("--store", STORE, "--region", "us-east-1", "--key-pair", "k"), 3, "there is no key pair 'k'"),
    (
        ("--store", STORE, "--region", "us-east-1", "--region", "us-west-2", "--private"),
        2,
        "could not reach the bucket",
    ),
    (
        ("--store", STORE, "--region", "us-east-1", "--region", "us-west-2", "--image", "ami-1"),
        2,
        "is an image of one region",
    ),
]


@pytest.mark.parametrize(("arguments", "code", "words"), WRONG, ids=[each[2] for each in WRONG])
def test_what_is_wrong_is_said_in_a_line(
    cli: Cli, arguments: tuple[str, ...], code: int, words: str  # noqa: F811
) -> None:  # fmt: skip
    ran = cli("aws", "setup", *arguments, "--yes")
    assert ran.code == code, ran.err
    first, second = ran.err.splitlines()[:2]
    assert first.startswith("error: ")
    assert words in first
    assert second.startswith("hint: ")
    assert server.client("s3").list_buckets()["Buckets"] == []


def test_a_bucket_of_another_region(cli: Cli) -> None:  # noqa: F811
    place = {"LocationConstraint": "eu-west-1"}
    server.client("s3", "eu-west-1").create_bucket(
        Bucket="my-bucket", CreateBucketConfiguration=place
    )
    ran = cli(*SETUP, "--region", "us-east-1", "--yes")
    assert ran.code == 2
    assert "the bucket my-bucket is in eu-west-1" in ran.err
    assert "add --region eu-west-1" in ran.err
    assert cli(*SETUP, "--yes").code == 0  # where it is


def test_a_bucket_of_another_account(cli: Cli) -> None:  # noqa: F811
    server.REFUSED["HEAD /my-bucket"] = "403"
    ran = cli(*SETUP, "--region", "us-east-1", "--yes")
    assert (ran.code, "belongs to another account" in ran.err) == (5, True)


@pytest.mark.parametrize(
    ("action", "code", "permission"),
    [
        ("CreateRole", "AccessDenied", "iam:CreateRole"),
        ("CreateSecurityGroup", "UnauthorizedOperation", "ec2:CreateSecurityGroup"),
        ("DescribeRegions", "UnauthorizedOperation", "ec2:DescribeRegions"),
        ("PUT /my-bucket", "AccessDenied", "s3:CreateBucket"),
    ],
)
def test_a_missing_permission_is_named(
    cli: Cli, action: str, code: str, permission: str  # noqa: F811
) -> None:  # fmt: skip
    server.REFUSED[action] = code
    ran = cli(*SETUP, "--region", "us-east-1", "--yes")
    assert ran.code == 5
    assert f"these credentials may not {permission} in us-east-1" in ran.err
    server.REFUSED.clear()
    assert cli(*SETUP, "--region", "us-east-1", "--yes").code == 0  # it goes on from there


def test_no_default_vpc(cli: Cli) -> None:  # noqa: F811
    ec2 = server.client("ec2", "us-east-1")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    for subnet in ec2.describe_subnets()["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    for gateway in ec2.describe_internet_gateways()["InternetGateways"]:
        ec2.detach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=vpc)
    ec2.delete_vpc(VpcId=vpc)
    ran = cli(*SETUP, "--region", "us-east-1", "--yes")
    assert (ran.code, "us-east-1 has no default VPC" in ran.err) == (3, True)
    assert "--private" in ran.err
    assert cli(*SETUP, "--region", "us-east-1", "--private", "--yes").code == 0


def test_another_account_than_it_was_set_up_in(cli: Cli) -> None:  # noqa: F811
    assert cli(*SETUP, "--region", "us-east-1", "--yes").code == 0
    s3 = server.client("s3")
    key = {"Bucket": "my-bucket", "Key": "tw/providers/aws.json"}
    record = json.loads(s3.get_object(**key)["Body"].read())
    s3.put_object(**key, Body=json.dumps(record | {"account": "999999999999"}).encode())
    for command in ("setup", "teardown"):
        ran = cli("aws", command, "--store", STORE, "--yes")
        assert ran.code == 5
        assert "is set up in account 999999999999" in ran.err
    s3.put_object(**key, Body=b"{}")  # it is found again by its tags, and written again
    assert cli(*SETUP, "--yes").code == 0
    assert json.loads(s3.get_object(**key)["Body"].read()) == record
