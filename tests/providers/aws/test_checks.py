"""`tradewind doctor aws`, against an account that is set up, and against what can be wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest
from msgspec import structs

from tests.providers.aws.cloud import Answer, Asked, Cloud, error, json_error, quotas_of, xml
from tests.providers.aws.conftest import HERE, OURS, QUOTAS
from tradewind.base import clock
from tradewind.model.finding import BROKEN, OK, WARNING, Finding
from tradewind.providers.aws.checks.account import checks
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import OWNER, Footprint
from tradewind.providers.aws.setup import policies


def _wrong(findings: list[Finding]) -> list[tuple[str, str]]:
    assert all(finding.about == "aws" for finding in findings)
    bad = [finding for finding in findings if finding.level != OK]
    assert all(finding.why and finding.todo for finding in bad)
    assert not any("doctor" in finding.todo for finding in bad)
    return [(finding.level, finding.what) for finding in bad]


def _look(account: Account, footprint: Footprint | None) -> list[Finding]:
    return list(checks(account, footprint, store_url=OURS))


def test_all_is_well(cloud: Cloud, account: Account, footprint: Footprint) -> None:
    found = _look(account, footprint)
    assert _wrong(found) == []
    image, _, _, quota = (finding.what for finding in found[-4:])
    assert [finding.what for finding in found] == [
        "account 123456789012, as user/moto",
        "this computer's clock agrees with AWS's",
        "machines have the role ours",
        "machines may do what this version of Tradewind needs, and no more",
        image,
        "us-east-1: 2 subnets with free addresses, and no one is let in",
        "us-east-1: machines may be launched, listed, terminated",
        quota,
    ]
    assert image.startswith("us-east-1: image ami-")
    assert quota.startswith("us-east-1: vCPUs: Running On-Demand G and VT instances 192; ")
    # Nothing was bought, and what would be carries our owner and role, in both markets.
    launches = [asked for _, name, asked in cloud.asked if name == "RunInstances"]
    assert [asked["DryRun"] for asked in launches] == ["true", "true"]
    assert launches[1]["InstanceMarketOptions.MarketType"] == "spot"
    for asked in launches:
        assert asked["IamInstanceProfile.Name"] == "ours"
        assert asked["TagSpecification.1.Tag.2.Key"] == OWNER
        assert asked["TagSpecification.1.Tag.2.Value"] == OURS
        assert not asked["ClientToken"].startswith("tw-")
    assert not account.client("ec2", HERE).describe_instances()["Reservations"]


def test_disks_by_a_key_of_the_account_s_own(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    """Who launches may not be allowed to use it, and EC2 does not say so."""
    own = "arn:aws:kms:us-east-1:123456789012:key/1234"
    cloud.on("GetEbsDefaultKmsKeyId", xml("GetEbsDefaultKmsKeyId", kmsKeyId=own))
    found = _look(account, footprint)
    what = f"us-east-1: disks are encrypted by {own}, a key of the account's own"
    assert _wrong(found) == [(WARNING, what)]
    (told,) = (finding for finding in found if finding.what == what)
    assert "kms:CreateGrant" in told.todo
    usual = "arn:aws:kms:us-east-1:123456789012:alias/aws/ebs"
    cloud.on("GetEbsDefaultKmsKeyId", xml("GetEbsDefaultKmsKeyId", kmsKeyId=usual))
    assert _wrong(_look(account, footprint)) == []
    # It is asked where that is allowed, and not held against anybody where it is not.
    cloud.on("GetEbsDefaultKmsKeyId", error("UnauthorizedOperation", status=403))
    assert _wrong(_look(account, footprint)) == []


def test_a_role_that_may_do_more_than_it_should(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    iam, s3 = account.client("iam", HERE), account.client("s3", HERE)
    iam.delete_role_permissions_boundary(RoleName="ours")
    trust = policies.trust(HERE)
    trust["Statement"].append(
        {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}
    )
    iam.update_assume_role_policy(RoleName="ours", PolicyDocument=json.dumps(trust))
    more = policies.machines(OURS, HERE)
    more["Statement"].append(policies.allow("More", ["s3:*"], ["*"]))
    given = {"PolicyName": "store", "PolicyDocument": json.dumps(more)}
    iam.put_role_policy(RoleName="ours", **given)
    s3.delete_bucket_policy(Bucket="bucket")
    found = _look(account, footprint)
    assert _wrong(found) == [
        (WARNING, "the role ours may be assumed by others than EC2"),
        (WARNING, "the role ours has no permissions boundary"),
        (WARNING, "the policy of the role ours is not the one that this version prints"),
        (WARNING, "the bucket bucket takes requests without TLS"),
    ]
    assert not any("no more" in finding.what for finding in found)


def test_a_group_of_an_earlier_version(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    group = footprint.regions[HERE].security_group
    pairs = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2 = account.client("ec2", HERE)
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=pairs)
    what = f"us-east-1: {group} lets every machine of the store in"
    assert _wrong(_look(account, footprint)) == [(WARNING, what)]


def test_a_policy_of_before_does_not_make_security_groups(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    cloud.on("CreateSecurityGroup", error("UnauthorizedOperation", status=403))
    what = "us-east-1: we may not make security groups, for several machines that work together"
    assert _wrong(_look(account, footprint)) == [(WARNING, what)]
    groups = account.client("ec2", HERE).describe_security_groups()["SecurityGroups"]
    assert "tradewind-doctor" not in {each["GroupName"] for each in groups}


def test_whoever_may_only_run_is_told_that_policies_were_not_compared(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    cloud.on("GetRole", error("AccessDenied", status=403))
    cloud.on("GetRolePolicy", error("AccessDenied", status=403))
    found = _look(account, footprint)
    assert _wrong(found) == []
    (told,) = (finding for finding in found if "compared" in finding.what)
    assert told.what.endswith("these credentials may not iam:GetRole, iam:GetRolePolicy")


def test_a_role_to_lend_is_assumed_on_trial(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    name = policies.lend_name(OURS)
    lends = structs.replace(footprint, lending_role=policies.lend_arn(OURS, HERE, "123456789012"))
    gone = (BROKEN, f"the lending role {name} is not there")
    found = _look(account, lends)
    assert _wrong(found) == [gone]
    (told,) = (finding for finding in found if finding.level == BROKEN)
    assert told.todo == f"tradewind setup aws --store {OURS} --lend"
    trust = json.dumps(policies.trust(HERE))
    account.client("iam", HERE).create_role(RoleName=name, AssumeRolePolicyDocument=trust)
    found = _look(account, lends)
    assert _wrong(found) == []
    assert f"passes can be lent by the role {name}" in [finding.what for finding in found]
    (asked,) = (asked for _, what, asked in cloud.asked if what == "AssumeRole")
    assert json.loads(asked["Policy"])["Statement"][0]["Effect"] == "Deny"  # of no use to anybody
    cloud.on("AssumeRole", error("AccessDenied", status=403))
    found = _look(account, lends)
    assert _wrong(found) == [(BROKEN, f"the lending role {name} may not be assumed")]
    (told,) = (finding for finding in found if finding.level == BROKEN)
    assert f"tradewind setup aws --store {OURS} --lend --print policy" in told.todo
    cloud.on("GetRole", error("AccessDenied", status=403))  # whoever only runs may not look
    cloud.on("AssumeRole", error("ServiceUnavailable", status=503))
    found = _look(account, lends)
    assert _wrong(found) == [(WARNING, f"the lending role {name} could not be assumed")]


def test_before_setup(cloud: Cloud, account: Account) -> None:
    quotas_of(cloud, QUOTAS | {"L-417A185B": 0.0, "L-C4BD4855": 0.0})
    found = _look(account, None)
    assert _wrong(found) == [
        (WARNING, "nothing is set up for this store"),
        (
            WARNING,
            "us-east-1: no vCPUs at all: Running On-Demand P instances (L-417A185B); "
            "All P5 Spot Instance Requests (L-C4BD4855)",
        ),
    ]
    assert "--quota-code L-417A185B --desired-value 192" in found[-1].todo
    assert "https://us-east-1.console.aws.amazon.com/servicequotas" in found[-1].todo


def test_keys_that_are_refused(cloud: Cloud, account: Account, footprint: Footprint) -> None:
    cloud.on("GetCallerIdentity", _sts("InvalidClientTokenId"))
    found = _look(account, footprint)
    assert _wrong(found) == [(BROKEN, "the credentials are not accepted")]
    assert "aws sso login" in found[0].todo
    assert cloud.actions()[-1] == "GetCallerIdentity"


def test_keys_of_another_account(account: Account, footprint: Footprint) -> None:
    other = structs.replace(footprint, account="999999999999")
    assert _wrong(_look(account, other)) == [
        (
            BROKEN,
            "the credentials are of account 123456789012, and the store's machines of 999999999999",
        )
    ]


def _sts(code: str) -> Answer:
    return Answer(
        f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>"
        "<RequestId>1</RequestId></ErrorResponse>",
        403,
    )


@pytest.mark.parametrize(("off_s", "words"), [(400.0, "ahead"), (-400.0, "behind")])
def test_a_clock_that_is_wrong(account: Account, off_s: float, words: str) -> None:
    found = list(checks(account, None, now_s=lambda: clock.epoch() + off_s))
    (level, what), *_ = _wrong(found)
    assert level == BROKEN
    assert what.startswith("this computer's clock is ")
    assert what.endswith(f" s {words}")
    assert found[1].measured["skew_s"] == pytest.approx(off_s, abs=30)
    assert len(found) == 2


def test_a_clock_for_which_we_are_refused(cloud: Cloud, account: Account) -> None:
    """AWS says that the keys are wrong; by the date of its answer we know better."""
    cloud.on("GetCallerIdentity", _sts("RequestExpired"))
    found = list(checks(account, None, now_s=lambda: clock.epoch() + 3600))
    assert [level for level, _ in _wrong(found)] == [BROKEN, BROKEN]
    assert found[0].what == "the credentials are not accepted"
    assert found[1].measured["skew_s"] == pytest.approx(3600, abs=30)


def test_what_setup_made_is_gone(account: Account, footprint: Footprint) -> None:
    ec2, iam = account.client("ec2", HERE), account.client("iam", HERE)
    network = footprint.regions[HERE]
    lost = next(iter(network.subnets.values()))
    ec2.delete_subnet(SubnetId=lost)
    ec2.delete_security_group(GroupId=network.security_group)
    iam.remove_role_from_instance_profile(InstanceProfileName="ours", RoleName="ours")
    found = _look(account, footprint)
    assert _wrong(found)[:2] == [
        (BROKEN, "the instance profile ours has no role"),
        (
            BROKEN,
            f"us-east-1: security group {network.security_group}, subnet {lost} are not there",
        ),
    ]
    iam.delete_instance_profile(InstanceProfileName="ours")
    assert _wrong(_look(account, footprint))[0] == (
        BROKEN,
        "the instance profile ours is not there",
    )


def test_a_group_that_lets_the_world_in(account: Account, footprint: Footprint) -> None:
    network = footprint.regions[HERE]
    account.client("ec2", HERE).authorize_security_group_ingress(
        GroupId=network.security_group,
        IpPermissions=[
            {
                "IpProtocol": "tcp",
                "FromPort": 22,
                "ToPort": 22,
                "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
                "Ipv6Ranges": [{"CidrIpv6": "::/0"}],
            }
        ],
    )
    assert _wrong(_look(account, footprint)) == [
        (WARNING, f"us-east-1: {network.security_group} lets 0.0.0.0/0, ::/0 in")
    ]


def test_addresses_that_run_out(account: Account, footprint: Footprint) -> None:
    ec2, network = account.client("ec2", HERE), footprint.regions[HERE]
    small = ec2.create_subnet(
        VpcId=network.vpc, CidrBlock="10.0.9.0/28", AvailabilityZone="us-east-1c"
    )["Subnet"]
    subnets = {small["AvailabilityZoneId"]: small["SubnetId"]}
    fewer = structs.replace(footprint, regions={HERE: structs.replace(network, subnets=subnets)})
    ((level, what),) = _wrong(_look(account, fewer))
    assert level == WARNING
    assert what == f"us-east-1: few addresses are left: 11 in {small['SubnetId']}"


def _only(refused: str, answer: Answer) -> Callable[[str, Asked], Answer | None]:
    return lambda region, asked: answer if refused in asked else None


_NOT_ALLOWED = error(
    "UnauthorizedOperation",
    "You are not authorized to perform: iam:PassRole. Encoded authorization failure message: xYz",
    403,
)


def test_what_we_may_not(cloud: Cloud, account: Account, footprint: Footprint) -> None:
    cloud.on("RunInstances", _only("InstanceMarketOptions.MarketType", _NOT_ALLOWED))
    cloud.on("TerminateInstances", _NOT_ALLOWED)
    cloud.on("CreatePlacementGroup", error("InternalError", status=500))
    cloud.on("GetInstanceProfile", _sts("AccessDenied"))
    found = _look(account, footprint)
    groups = "make placement groups, for several machines close together"
    assert _wrong(found) == [
        (WARNING, "the instance profile ours could not be looked at"),
        (BROKEN, "us-east-1: we may not launch machines (spot)"),
        (WARNING, f"us-east-1: whether we may {groups} could not be learned"),
    ]
    launch = next(finding for finding in found if "launch machines" in finding.what)
    assert "iam:PassRole" in launch.why
    assert "Encoded" not in launch.why


def test_without_a_machine_a_refusal_says_nothing(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    """What may be terminated is told by tags, and there is nothing that has any."""
    cloud.on("TerminateInstances", _NOT_ALLOWED)
    found = _look(account, footprint)
    assert _wrong(found) == []
    assert found[-2].what == "us-east-1: machines may be launched, listed"
    group = next(asked for _, name, asked in cloud.asked if name == "CreatePlacementGroup")
    assert (group["DryRun"], group["TagSpecification.1.Tag.1.Value"]) == ("true", OURS)


def test_a_machine_of_ours_tells_for_sure(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    ec2 = account.client("ec2", HERE)
    tags = [{"ResourceType": "instance", "Tags": [{"Key": OWNER, "Value": OURS}]}]
    image = ec2.register_image(Name="any")["ImageId"]
    launched = ec2.run_instances(
        ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1, TagSpecifications=tags
    )
    machine = launched["Instances"][0]["InstanceId"]
    cloud.on("TerminateInstances", _NOT_ALLOWED)
    assert _wrong(_look(account, footprint)) == [
        (BROKEN, "us-east-1: we may not terminate machines")
    ]
    asked = next(fields for _, name, fields in cloud.asked if name == "TerminateInstances")
    assert (asked["InstanceId.1"], asked["DryRun"]) == (machine, "true")


def test_no_image_and_no_quotas(cloud: Cloud, account: Account, footprint: Footprint) -> None:
    cloud.on("GetParameter", json_error("AccessDeniedException", "ssm:GetParameter"))
    cloud.on("GetServiceQuota", json_error("AccessDeniedException", "no"))
    found = _look(account, footprint)
    assert _wrong(found) == [
        (BROKEN, "us-east-1: there is no image to start from"),
        (WARNING, "us-east-1: quotas could not be read"),
    ]
    assert found[-2].what == "us-east-1: machines may be listed, terminated"


def test_a_region_that_does_not_answer(
    cloud: Cloud, account: Account, footprint: Footprint
) -> None:
    over = threading.Event()

    def slow(region: str, asked: Asked) -> Answer | None:
        over.wait(60)
        return None

    cloud.on("GetParameter", slow)
    try:
        found = list(checks(account, footprint, patience_s=0.5))
    finally:
        over.set()
    assert _wrong(found) == [(WARNING, "us-east-1 has not answered within 0.5 s")]
