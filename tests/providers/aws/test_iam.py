"""The judge of policies, by what the IAM User Guide says of its examples: on condition operators,
evaluation logic, variables, keys with several values, and permissions boundaries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.aws.iam import Request, Values, allows, effect

READ, BUCKET = "s3:GetObject", "arn:aws:s3:::amzn-s3-demo-bucket"


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    usual = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [usual | each for each in statements]}


def holds(condition: dict[str, Any], /, **context: Values) -> bool:
    """Keys are written with two underscores for the colon, and one for a dash or slash."""
    given = {key.replace("__", ":"): value for key, value in context.items()}
    asked = Request(READ, f"{BUCKET}/x", given)
    return effect(policy({"Condition": condition}), asked) == "Allow"


def test_nothing_is_allowed_unless_it_is_and_a_deny_wins() -> None:
    asked = Request(READ, f"{BUCKET}/x")
    assert not allows([], asked)
    assert allows([policy({})], asked)
    assert not allows([policy({}), policy({"Effect": "Deny", "Action": "s3:Get*"})], asked)
    assert allows([policy({}), policy({"Effect": "Deny", "Action": "s3:Put*"})], asked)
    assert not allows([policy({})], asked, of_resource=[policy({"Effect": "Deny"})])


def test_a_boundary_and_a_policy_must_both_allow() -> None:
    """Of Shirley Rodriguez, who may create users and is bounded to S3, CloudWatch and EC2."""
    bound = policy({"Action": ["s3:*", "cloudwatch:*", "ec2:*"]})
    asked = Request("iam:CreateUser", "arn:aws:iam::123456789012:user/x")
    may = policy({"Action": "iam:CreateUser"})
    assert allows([may], asked)
    assert not allows([may], asked, boundary=bound)
    assert not allows([], Request(READ, f"{BUCKET}/x"), boundary=bound)  # it allows nothing itself
    assert allows([policy({"Action": "s3:*"})], Request(READ, f"{BUCKET}/x"), boundary=bound)
    denying = policy({}, {"Effect": "Deny", "Action": READ})
    assert not allows([policy({})], Request(READ, f"{BUCKET}/x"), boundary=denying)


def test_actions_and_resources_have_wildcards() -> None:
    def fits(resource: str, asked: str) -> bool:
        return effect(policy({"Resource": resource}), Request(READ, asked)) == "Allow"

    assert fits(f"{BUCKET}/*", f"{BUCKET}/a/b:c")
    assert not fits(f"{BUCKET}/*", BUCKET)
    assert not fits(f"{BUCKET}/?", f"{BUCKET}/ab")
    user = "arn:aws:iam::123456789012:user/*"
    assert fits(user, "arn:aws:iam::123456789012:user/division/x")
    # A star stays in its part.
    any_account = "arn:aws:iam::*:policy/bound"
    assert fits(any_account, "arn:aws:iam::123456789012:policy/bound")
    assert not fits(any_account, "arn:aws:iam::123456789012:policy/a:policy/bound")
    assert effect(policy({"Action": "S3:getobject"}), Request(READ, BUCKET)) == "Allow"
    assert effect(policy({"Action": "s3:Get"}), Request(READ, BUCKET)) == ""


def test_a_variable_stands_for_what_the_request_has() -> None:
    home = policy({"Resource": [f"{BUCKET}/home/${{aws:username}}/*", f"{BUCKET}/${{*}}"]})

    def may(key: str, **context: str) -> bool:
        given = {name.replace("_", ":"): value for name, value in context.items()}
        return effect(home, Request(READ, f"{BUCKET}/{key}", given)) == "Allow"

    assert may("home/bob/x", aws_username="bob")
    assert not may("home/bob/x", aws_username="eve")
    assert not may("home/bob/x", aws_username="*")  # in it there are no wildcards
    assert not may("home//x")
    assert may("*")
    assert not may("x")


def test_strings() -> None:
    assert holds({"StringEquals": {"aws:PrincipalTag/dept": ["finance", "hr"]}},
                 **{"aws:PrincipalTag/dept": "hr"})  # fmt: skip
    assert not holds({"StringEquals": {"aws:username": "Bob"}}, aws__username="bob")
    assert not holds({"StringEquals": {"aws:username": "b*"}}, aws__username="bob")
    assert holds({"StringEquals": {"aws:username": "b*"}}, aws__username="b*")
    assert holds({"StringLike": {"s3:prefix": ["", "home/", "home/?ob/*"]}}, s3__prefix="home/bob/")
    assert not holds({"StringEquals": {"aws:username": "bob"}})  # the key is missing
    assert holds({"StringNotEquals": {"aws:username": ["a", "b"]}}, aws__username="c")
    assert not holds({"StringNotEquals": {"aws:username": ["a", "b"]}}, aws__username="b")
    assert holds({"StringNotEquals": {"aws:username": "a"}})
    both = {"StringEquals": {"aws:username": "bob"}, "Bool": {"aws:SecureTransport": "true"}}
    assert holds(both, aws__username="bob", aws__SecureTransport="true")
    assert not holds(both, aws__username="bob", aws__SecureTransport="false")
    own = {"StringEquals": {"aws:ResourceAccount": "${aws:PrincipalAccount}"}}
    assert holds(own, aws__ResourceAccount="1", aws__PrincipalAccount="1")
    assert not holds(own, aws__ResourceAccount="1", aws__PrincipalAccount="2")
    assert not holds(own, aws__ResourceAccount="1")


def test_if_exists() -> None:
    """RunInstances asks for more than instances, and only those have a type."""
    cheap = {"StringLikeIfExists": {"ec2:InstanceType": ["t1.*", "t2.*", "m3.*"]}}
    assert holds(cheap, ec2__InstanceType="t2.micro")
    assert not holds(cheap, ec2__InstanceType="p5.48xlarge")
    assert holds(cheap)


def test_null_and_bool() -> None:
    permanent = {"Null": {"aws:TokenIssueTime": "true"}}
    assert holds(permanent)
    assert not holds(permanent, aws__TokenIssueTime="2026-01-01T00:00:00Z")
    assert holds({"Null": {"aws:TokenIssueTime": "false"}}, aws__TokenIssueTime="x")
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    assert holds(plain, aws__SecureTransport="false")
    assert not holds(plain, aws__SecureTransport="true")
    assert not holds(plain)


def test_arns_are_compared_part_by_part() -> None:
    like = {"ArnLike": {"aws:SourceArn": "arn:aws:sns:*:123456789012:topic*"}}
    assert holds(like, aws__SourceArn="arn:aws:sns:us-east-1:123456789012:topic-1")
    assert not holds(like, aws__SourceArn="arn:aws:sns:us-east-1:x:123456789012:topic-1")
    assert not holds(like, aws__SourceArn="topic")


def test_sets() -> None:
    tags = {"ForAllValues:StringEquals": {"aws:TagKeys": ["environment", "cost-center"]}}
    assert holds(tags, aws__TagKeys=["environment"])
    assert not holds(tags, aws__TagKeys=["environment", "other"])
    assert holds(tags)  # as the guide warns
    some = {"ForAnyValue:StringEquals": {"aws:TagKeys": ["environment", "cost-center"]}}
    assert holds(some, aws__TagKeys=["environment", "other"])
    assert not holds(some, aws__TagKeys=["other"])
    assert not holds(some)


def test_what_it_does_not_know_is_an_error() -> None:
    asked = Request(READ, f"{BUCKET}/x")
    for unknown in (
        policy({"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}),
        policy({"NotAction": "iam:*"}),
        policy({"Principal": {"AWS": "123456789012"}}),
        policy({}) | {"Version": "2008-10-17"},
    ):
        with pytest.raises(NotImplementedError):
            effect(unknown, asked)
    with pytest.raises(NotImplementedError):
        allows([], asked, of_resource=[policy({})])
