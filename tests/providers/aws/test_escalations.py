"""What must not come of the printed policies: each way to more rights, to things of others, or into
another's run is asked of a judge of policies, step by step, as whoever holds them would try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.providers.aws.iam import Request, Values, allows
from tradewind.base import signing
from tradewind.controller.loop import LEASE
from tradewind.model import places
from tradewind.providers.aws.footprint import OWNER, name, secrets_path
from tradewind.providers.aws.setup import policies, setter

STORE, OTHER = "s3://my-bucket/tw", "s3://my-bucket/other"
ACCOUNT = "123456789012"
IAM, EC2 = f"arn:aws:iam::{ACCOUNT}", f"arn:aws:ec2:us-east-1:{ACCOUNT}"
ROLE, BOUNDARY = f"{IAM}:role/{name(STORE)}", f"{IAM}:policy/{name(STORE)}-boundary"
ADMIN = "arn:aws:iam::aws:policy/AdministratorAccess"
EVERYTHING = policies.document([policies.allow("All", ["*"], ["*"])])

SETUP = setter.setter(STORE, "us-east-1", private=True, ssm=True)
"""With all options: it allows most."""
USER = policies.user(STORE, "us-east-1", ssm=True)
MACHINE = policies.machines(STORE, "us-east-1")
BOUND = policies.boundary(STORE, "us-east-1")


def may(
    document: Any,
    action: str,
    resource: str,
    context: Mapping[str, Values] | None = None,
    **more: Any,
) -> bool:
    given: dict[str, Values] = {"aws:PrincipalAccount": ACCOUNT, **(context or {})}
    return allows([document], Request(action, resource, given), **more)


def tag(whose: str, owner: str = STORE) -> dict[str, Values]:
    return {f"aws:{whose}Tag/{OWNER}": owner}


@pytest.mark.parametrize("held", [SETUP, USER])
@pytest.mark.parametrize("kind", ["security-group", "vpc", "subnet", "route-table", "instance"])
def test_nothing_of_others_becomes_ours_by_a_tag(held: Any, kind: str) -> None:
    theirs = f"{EC2}:{kind}/x-1"
    for context in ({}, tag("Request"), tag("Request") | {"aws:TagKeys": [OWNER]}):
        assert not may(held, "ec2:CreateTags", theirs, context)
        assert not may(held, "ec2:CreateTags", theirs, context | tag("Resource", OTHER))
        assert not may(held, "ec2:DeleteTags", theirs, context | tag("Resource"))
    created = tag("Request") | {"ec2:CreateAction": "CreateSecurityGroup"}
    assert may(held, "ec2:CreateTags", f"{EC2}:security-group/*", created)


@pytest.mark.parametrize("held", [SETUP, USER])
def test_groups_of_others_are_not_opened_or_deleted(held: Any) -> None:
    group = f"{EC2}:security-group/sg-1"
    for action in ("AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress",
                   "RevokeSecurityGroupIngress", "DeleteSecurityGroup"):  # fmt: skip
        for context in ({}, tag("Resource", OTHER), tag("Request")):
            assert not may(held, f"ec2:{action}", group, context), action
    assert may(held, "ec2:DeleteSecurityGroup", group, tag("Resource"))
    # Nor is one made for another store, or without a tag.
    for context in ({}, tag("Request", OTHER)):
        assert not may(held, "ec2:CreateSecurityGroup", f"{EC2}:security-group/*", context)


def test_networks_of_others_are_not_changed_or_built_in() -> None:
    theirs = tag("Resource", OTHER)
    for kind, actions in {
        "vpc": ["DeleteVpc", "CreateSubnet", "CreateRouteTable", "CreateVpcEndpoint"],
        "subnet": ["DeleteSubnet", "AssociateRouteTable"],
        "route-table": ["DeleteRouteTable", "AssociateRouteTable", "DisassociateRouteTable"],
        "vpc-endpoint": ["DeleteVpcEndpoints", "ModifyVpcEndpoint"],
    }.items():
        for action in actions:
            assert not may(SETUP, f"ec2:{action}", f"{EC2}:{kind}/x-1", theirs), action
            assert not may(SETUP, f"ec2:{action}", f"{EC2}:{kind}/x-1"), action
            assert may(SETUP, f"ec2:{action}", f"{EC2}:{kind}/x-1", tag("Resource")), action
    for action, kind in (("CreateVpc", "vpc"), ("CreateSubnet", "subnet")):
        assert not may(SETUP, f"ec2:{action}", f"{EC2}:{kind}/*")
        assert may(SETUP, f"ec2:{action}", f"{EC2}:{kind}/*", tag("Request"))


WITHIN = {"iam:PermissionsBoundary": BOUNDARY}
ELSEWHERE = [
    {},
    {"iam:PermissionsBoundary": ADMIN},
    {"iam:PermissionsBoundary": f"arn:aws:iam::999999999999:policy/{name(STORE)}-boundary"},
    {"iam:PermissionsBoundary": f"{IAM}:policy/a:policy/{name(STORE)}-boundary"},
]


@pytest.mark.parametrize("action", ["CreateRole", "PutRolePolicy", "PutRolePermissionsBoundary"])
def test_a_role_is_made_and_given_rights_only_inside_the_boundary(action: str) -> None:
    assert may(SETUP, f"iam:{action}", ROLE, WITHIN)
    for context in ELSEWHERE:
        assert not may(SETUP, f"iam:{action}", ROLE, context), context
    assert not may(SETUP, f"iam:{action}", f"{IAM}:role/another", WITHIN)


def test_no_policy_but_that_of_shells_is_attached() -> None:
    core = {"iam:PolicyARN": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}
    assert may(SETUP, "iam:AttachRolePolicy", ROLE, core | WITHIN)
    assert not may(SETUP, "iam:AttachRolePolicy", ROLE, core)
    assert not may(SETUP, "iam:AttachRolePolicy", ROLE, {"iam:PolicyARN": ADMIN} | WITHIN)
    plain = setter.setter(STORE, "us-east-1")
    assert not may(plain, "iam:AttachRolePolicy", ROLE, core | WITHIN)


@pytest.mark.parametrize("held", [SETUP, USER, MACHINE, BOUND])
def test_the_boundary_stays_on_and_as_it_is(held: Any) -> None:
    assert not may(held, "iam:DeleteRolePermissionsBoundary", ROLE, WITHIN)
    for action in ("CreatePolicy", "CreatePolicyVersion", "SetDefaultPolicyVersion",
                   "DeletePolicyVersion", "DeletePolicy"):  # fmt: skip
        assert not may(held, f"iam:{action}", BOUNDARY), action
        assert not may(held, f"iam:{action}", f"{IAM}:policy/another"), action


def test_whoever_sets_up_cannot_change_it_with_other_rights_either() -> None:
    """As when somebody has PowerUserAccess and more besides."""
    both = [SETUP, EVERYTHING]
    for action in ("CreatePolicy", "CreatePolicyVersion", "DeletePolicy"):
        assert not allows(both, Request(f"iam:{action}", BOUNDARY))
    assert not allows(both, Request("iam:DeleteRolePermissionsBoundary", ROLE, WITHIN))


@pytest.mark.parametrize("held", [SETUP, USER])
def test_the_role_is_lent_to_machines_only(held: Any) -> None:
    for service in ("lambda.amazonaws.com", "glue.amazonaws.com", "cloudformation.amazonaws.com"):
        assert not may(held, "iam:PassRole", ROLE, {"iam:PassedToService": service})
    assert not may(held, "iam:PassRole", ROLE)
    to_ec2 = {"iam:PassedToService": "ec2.amazonaws.com"}
    assert may(held, "iam:PassRole", ROLE, to_ec2)
    assert not may(held, "iam:PassRole", f"{IAM}:role/admin", to_ec2)


@pytest.mark.parametrize("held", [SETUP, USER, MACHINE])
@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("iam:UpdateAssumeRolePolicy", ROLE),
        ("sts:AssumeRole", ROLE),
        ("iam:AttachUserPolicy", f"{IAM}:user/me"),
        ("iam:PutUserPolicy", f"{IAM}:user/me"),
        ("iam:CreateAccessKey", f"{IAM}:user/admin"),
        ("iam:CreateUser", f"{IAM}:user/x"),
        ("iam:AddUserToGroup", f"{IAM}:group/admins"),
        ("iam:AddRoleToInstanceProfile", f"{IAM}:instance-profile/another"),
        ("lambda:CreateFunction", "arn:aws:lambda:us-east-1:123456789012:function:x"),
        ("ec2:AssociateIamInstanceProfile", f"{EC2}:instance/i-1"),
        ("ec2:ReplaceIamInstanceProfileAssociation", f"{EC2}:instance/i-1"),
        ("ec2:ModifyInstanceAttribute", f"{EC2}:instance/i-1"),
        ("ec2:ModifyNetworkInterfaceAttribute", f"{EC2}:network-interface/eni-1"),
        ("ssm:SendCommand", f"{EC2}:instance/i-1"),
    ],
)
def test_other_known_ways_up(held: Any, action: str, resource: str) -> None:
    ours = tag("Resource") | tag("Request") | WITHIN
    assert not may(held, action, resource, ours)


def test_whatever_is_put_on_the_role_it_stays_in_its_store() -> None:
    """The inline policy allows everything, and somebody is in its trust: what is it worth?"""

    def worth(action: str, resource: str, context: Mapping[str, Values] | None = None) -> bool:
        return may(EVERYTHING, action, resource, context, boundary=BOUND)

    below = "arn:aws:s3:::my-bucket/tw/runs/a/"
    assert worth("s3:GetObject", below + "logs/x")
    for key in ("journal/00000000000000000001.json", "journal/logs/1.json"):
        assert not worth("s3:PutObject", below + key)
    assert not worth("s3:ListBucket", "arn:aws:s3:::my-bucket", {"s3:prefix": "other/"})
    assert not worth("s3:GetObject", "arn:aws:s3:::another/x")
    assert not worth("s3:PutBucketPolicy", "arn:aws:s3:::my-bucket")
    assert not worth("s3:DeleteObjectVersion", below + "checkpoints/x")
    for action, resource in (
        ("iam:CreateUser", f"{IAM}:user/x"),
        ("iam:PutRolePolicy", ROLE),
        ("iam:PassRole", ROLE),
        ("sts:AssumeRole", f"{IAM}:role/admin"),
        ("ec2:RunInstances", f"{EC2}:instance/*"),
        ("ec2:TerminateInstances", f"{EC2}:instance/i-1"),
        ("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:1:secret:x"),
        ("ssm:GetParameter", f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/password"),
        ("ssm:SendCommand", f"{EC2}:instance/i-1"),
    ):
        assert not worth(action, resource, WITHIN | tag("Resource")), action


def test_machines_lose_nothing_to_the_boundary() -> None:
    """What the role's own policy allows is inside; and what shells need."""
    for statement in MACHINE["Statement"]:
        if statement["Effect"] == "Allow":
            for action in statement["Action"]:
                for pattern in statement["Resource"]:
                    resource = pattern.replace("*", "x")
                    assert may(MACHINE, action, resource, boundary=BOUND), (action, resource)
    assert may(EVERYTHING, "ssmmessages:OpenDataChannel", "*", boundary=BOUND)


def test_others_machines_are_not_ended_or_entered() -> None:
    theirs = f"{EC2}:instance/i-1"
    for context in ({}, tag("Resource", OTHER)):
        assert not may(USER, "ec2:TerminateInstances", theirs, context)
        shell = {key.replace("aws:ResourceTag", "ssm:resourceTag"): v for key, v in context.items()}
        assert not may(USER, "ssm:StartSession", theirs, shell)
    assert may(USER, "ec2:TerminateInstances", theirs, tag("Resource"))
    assert not may(USER, "ec2:StopInstances", theirs, tag("Resource"))


def test_placement_groups_of_others_stay() -> None:
    theirs = f"{EC2}:placement-group/theirs"
    for context in ({}, tag("Resource", OTHER)):
        assert not may(USER, "ec2:DeletePlacementGroup", theirs, context)
    for context in ({}, tag("Request", OTHER)):
        assert not may(USER, "ec2:CreatePlacementGroup", theirs, context)


def test_the_only_service_linked_role_is_that_of_spot() -> None:
    role = f"{IAM}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    spot = {"iam:AWSServiceName": "spot.amazonaws.com"}
    assert may(USER, "iam:CreateServiceLinkedRole", role, spot)
    other = {"iam:AWSServiceName": "organizations.amazonaws.com"}
    assert not may(USER, "iam:CreateServiceLinkedRole", role, other)
    theirs = role.replace("spot.amazonaws.com", "organizations.amazonaws.com")
    assert not may(USER, "iam:CreateServiceLinkedRole", theirs, other)


@pytest.mark.parametrize(
    ("resource", "context"),
    [
        ("network-interface/eni-0123456789abcdef0", tag("Request")),  # there already, of others
        ("network-interface/eni-0123456789abcdef0", tag("Resource")),
        ("network-interface/*", {}),
        ("network-interface/*", tag("Request", OTHER)),
        ("instance/*", {}),
        ("instance/*", tag("Request", OTHER)),
        ("volume/*", {}),
        ("security-group/sg-1", {}),
        ("security-group/sg-1", tag("Resource", OTHER)),
        ("key-pair/theirs", {}),
        ("launch-template/lt-1", tag("Resource")),
    ],
)
def test_machines_are_run_with_nothing_of_others(resource: str, context: dict[str, Values]) -> None:
    assert not may(USER, "ec2:RunInstances", f"{EC2}:{resource}", context)


def test_machines_are_run_with_what_is_ours() -> None:
    for kind in ("instance", "volume", "network-interface"):
        assert may(USER, "ec2:RunInstances", f"{EC2}:{kind}/*", tag("Request"))
    assert may(USER, "ec2:RunInstances", f"{EC2}:security-group/sg-1", tag("Resource"))
    keyed = policies.user(STORE, "us-east-1", key_pair="mine")
    assert may(keyed, "ec2:RunInstances", f"{EC2}:key-pair/mine")
    assert not may(keyed, "ec2:RunInstances", f"{EC2}:key-pair/theirs")


def test_whoever_runs_cannot_set_up() -> None:
    for action in ("PutRolePolicy", "CreateRole", "AttachRolePolicy", "PutRolePermissionsBoundary"):
        assert not may(USER, f"iam:{action}", ROLE, WITHIN)
    for action in ("s3:PutBucketPolicy", "s3:DeleteBucket", "s3:PutBucketVersioning"):
        assert not may(USER, action, "arn:aws:s3:::my-bucket")
    assert not may(USER, "s3:DeleteObjectVersion", "arn:aws:s3:::my-bucket/tw/runs/a/journal/1")
    assert not may(USER, "s3:GetObject", "arn:aws:s3:::my-bucket/other/runs/a/journal/1")


def test_whoever_sets_up_writes_nothing_of_runs() -> None:
    """But for the record of what is set up; teardown may delete. (Until they change the bucket's
    policy, which they may.)"""
    below = "arn:aws:s3:::my-bucket/tw/"
    assert may(SETUP, "s3:PutObject", below + "providers/aws.json")
    for key in (places.live("a"), "runs/a/journal/1.json", places.bundle("a"), "kits/1/kit.tar"):
        assert not may(SETUP, "s3:PutObject", below + key)
    for action in ("s3:GetObject", "s3:DeleteObject", "s3:DeleteObjectVersion"):
        assert not may(SETUP, action, "arn:aws:s3:::my-bucket/other/runs/a/journal/1.json")
    assert not may(SETUP, "s3:DeleteBucket", "arn:aws:s3:::another")


RUN = "run-1"
WRITTEN = [
    places.heartbeat(RUN, "aws-us-east-1-i-1"),
    places.resume(RUN, 1),
    places.address(RUN, 1),
    places.checkpoint(RUN, 1, 10),
    f"{places.shards(RUN)}000001/00000000000000000010-a-000000/__0_0.distcp",
    places.log_piece(RUN, 1, 0, 0),
    places.piece(places.metrics(RUN, 1, 0), 0),
]
KEPT = [
    f"{places.run(RUN)}journal/{0:020d}.json",
    f"{places.run(RUN)}volumes/{0:020d}.jsonl",
    places.bundle(RUN),
    "kits/abc/kit.tar",
    places.live(RUN),
    places.live(RUN, 2),
    "providers/aws.json",
    LEASE,
    signing.SEED,
    # What a pattern with a star would let through, if it were not denied.
    f"{places.run(RUN)}journal/logs/x.json",
    f"{places.run(RUN)}job/shards/x",
]


@pytest.mark.parametrize("store", ["s3://my-bucket", "s3://my-bucket/team/tw"])
def test_machines_write_what_machines_write(store: str) -> None:
    document = policies.machines(store, "us-east-1")
    tls: dict[str, Any] = {"of_resource": [policies.bucket(store, "us-east-1")]}
    below = "arn:aws:s3:::" + store.removeprefix("s3://") + "/"
    secure: dict[str, Values] = {"aws:SecureTransport": "true"}
    for key in WRITTEN:
        assert may(document, "s3:PutObject", below + key, secure, **tls), key
        assert may(document, "s3:GetObject", below + key, secure, **tls), key
        assert not may(
            document, "s3:PutObject", below + key, {"aws:SecureTransport": "false"}, **tls
        )
        assert not may(document, "s3:DeleteObjectVersion", below + key, secure, **tls), key
    for key in KEPT[:4]:
        assert may(document, "s3:GetObject", below + key, secure, **tls), key
    for key in KEPT:
        assert not may(document, "s3:PutObject", below + key, secure, **tls), key
        assert not may(document, "s3:DeleteObject", below + key, secure, **tls), key
        # Whatever else somebody gives them.
        both = [document, EVERYTHING]
        assert not allows(both, Request("s3:PutObject", below + key, secure)), key
    assert not may(document, "s3:GetObject", below + places.live(RUN), secure, **tls)
    assert not allows([document, EVERYTHING], Request("s3:GetObject", below + signing.SEED, secure))
    removable = [key for key in WRITTEN if may(document, "s3:DeleteObject", below + key, secure)]
    assert removable == WRITTEN[3:5]
    assert not may(document, "s3:PutObject", "arn:aws:s3:::my-bucket2/" + WRITTEN[0], secure)
    if store.count("/") > 2:
        assert not may(document, "s3:GetObject", "arn:aws:s3:::my-bucket/" + WRITTEN[0], secure)


def test_machines_read_the_secrets_of_their_store_and_no_others() -> None:
    """Also where AWS's own policy for shells would allow every parameter of the account."""
    path = secrets_path(STORE)
    parameter = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/"
    secret = f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:"
    for held in (MACHINE, EVERYTHING):
        assert may(held, "ssm:GetParameter", f"{parameter}{path}hf", boundary=BOUND)
        assert may(held, "secretsmanager:GetSecretValue", f"{secret}{path}hf-Ab", boundary=BOUND)
        for other in ("prod/db", secrets_path("s3://other") + "hf", path.rstrip("/") + "x/hf"):
            assert not may(held, "ssm:GetParameter", parameter + other, boundary=BOUND)
            assert not may(held, "secretsmanager:GetSecretValue", secret + other, boundary=BOUND)
        assert not may(held, "ssm:PutParameter", f"{parameter}{path}hf", boundary=BOUND)


def test_listing_stays_below_the_prefix() -> None:
    bucket = "arn:aws:s3:::my-bucket"
    for document, below in ((MACHINE, "tw/runs/"), (USER, "tw/")):
        assert may(document, "s3:ListBucket", bucket, {"s3:prefix": below})
        assert not may(document, "s3:ListBucket", bucket, {"s3:prefix": "other/"})
        assert may(document, "s3:ListBucket", bucket)  # as S3 asks before it says 404
