"""Policies: what a linter finds in them, and how they are put together. What they allow is judged
in test_escalations.py and test_permissions_used.py. None of it proves what AWS does with them."""

from __future__ import annotations

import json
import re
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tradewind.providers.aws.setup import policies, setter

STORES = ["s3://my-bucket", "s3://my-bucket/team/tw"]
MOST_MANAGED, MOST_INLINE = 6_144, 10_240
"""Characters without blanks: what IAM takes."""
SPLIT = {
    "ec2:RunInstances",
    "ec2:CreateRouteTable",
    "ec2:CreateSecurityGroup",
    "ec2:CreateSubnet",
    "ec2:CreateVpcEndpoint",
}


@pytest.mark.parametrize("store", STORES)
def test_a_linter_finds_nothing(store: str) -> None:
    user = policies.user(store, "us-east-1", ssm=True)
    machines = policies.machines(store, "us-east-1")
    both = setter.setter(store, "us-east-1", private=True, ssm=True)
    least = setter.setter(store, "us-east-1")
    boundary = policies.boundary(store, "us-east-1")
    for document in (user, machines, policies.user(store, "us-east-1"), both, least, boundary):
        assert _findings(document) == []
    assert len(json.dumps(boundary, separators=(",", ":"))) < MOST_MANAGED
    assert len(json.dumps(both, separators=(",", ":"))) < MOST_MANAGED
    assert len(json.dumps(user, separators=(",", ":"))) < MOST_MANAGED
    assert len(json.dumps(machines, separators=(",", ":"))) < MOST_INLINE


def test_the_linter_would_find_something() -> None:
    wrong = {"Effect": "Allow", "Action": ["s3:GetObjekt"], "Resource": ["*"]}
    assert _findings({"Version": "2012-10-17", "Statement": [wrong]}) == ["UNKNOWN_ACTION"]
    wrong = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": ["arn:aws:s3:::b/x"]}
    assert _findings({"Version": "2012-10-17", "Statement": [wrong]}) == ["RESOURCE_MISMATCH"]


def _findings(document: Any) -> list[str]:
    """What launches and makes things is allowed for its kinds of resources in several statements,
    each with its own condition: the linter wants all of them in each, so they are looked at as
    one."""
    resources: dict[str, list[str]] = {}
    rest = []
    for each in document["Statement"]:
        split = [action for action in each["Action"] if action in SPLIT]
        for action in split:
            resources.setdefault(action, []).extend(each["Resource"])
        kept = [action for action in each["Action"] if action not in SPLIT]
        rest += [each | {"Action": kept}] if kept else []
    rest += [policies.allow("Split", [action], arns) for action, arns in resources.items()]
    rest = [each | {"Sid": f"S{number}"} for number, each in enumerate(rest)]
    parliament = _linter()
    found = parliament.analyze_policy_string(json.dumps(document | {"Statement": rest})).findings
    # Whoever sets up may set the policy of this one bucket, as docs/aws.md says.
    known = [each for each in found if each.issue == "RESOURCE_POLICY_PRIVILEGE_ESCALATION"]
    assert all("arn:aws:s3:::my-bucket due to" in str(each.detail) for each in known)
    return [finding.issue for finding in found if finding not in known]


def _linter() -> Any:
    """It finds its own files by a module that setuptools no longer has, and leaves them open."""
    if "parliament" not in sys.modules:
        finding = ModuleType("pkg_resources")
        vars(finding)["resource_filename"] = lambda name, path: str(
            Path(str(find_spec(name).origin)).parent / path  # type: ignore[union-attr]
        )
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setitem(sys.modules, "pkg_resources", finding)
            import_module("parliament")
    return sys.modules["parliament"]


def test_what_may_be_done_to_anything_changes_nothing() -> None:
    statements = {
        each["Sid"]: each for each in policies.user("s3://my-bucket", "us-east-1")["Statement"]
    }
    assert "*" in statements["Look"]["Resource"]
    for sid, each in statements.items():
        if "*" in each["Resource"]:
            verbs = [action.partition(":")[2] for action in each["Action"]]
            assert all(verb.startswith(("Describe", "Get", "List", "Decode")) for verb in verbs), (
                sid
            )


def test_every_action_is_one_that_boto3_knows() -> None:
    """As an operation, but for permissions that have a name of their own."""
    import botocore.session

    session = botocore.session.get_session()
    own = {"iam:PassRole", "s3:ListBucket", "s3:GetBucketLocation"}
    services = {"servicequotas": "service-quotas"}
    seen = 0
    for each in policies.user("s3://b-b", "us-east-1", ssm=True)["Statement"]:
        for action in each["Action"]:
            service, _, operation = action.partition(":")
            model = session.get_service_model(services.get(service, service))
            assert action in own or operation in model.operation_names, action
            seen += 1
    assert seen > 30


@pytest.mark.parametrize(
    ("region", "world"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_other_worlds_have_arns_of_their_own(region: str, world: str) -> None:
    text = json.dumps(
        [policies.user("s3://b-b", region, ssm=True), policies.machines("s3://b-b", region)]
    )
    assert set(re.findall(r'"arn:([^:]+):', text)) == {world}


OF_SETUP = {"bucket", "roles", "network", "calls", "setup", "teardown"}


def test_who_runs_it_may_call_what_is_called() -> None:
    """Everything of EC2 and the quotas that the provider calls, but for setup, which needs more."""
    import botocore.session
    from botocore import xform_name

    allowed = {
        a for each in policies.user("s3://b-b", "us-east-1")["Statement"] for a in each["Action"]
    }
    folder = Path(policies.__file__).parent
    sources = [path for path in folder.glob("*.py") if path.stem not in OF_SETUP]
    text = "\n".join(path.read_text() for path in sources)
    called = set(re.findall(r"\.(\w+)\(", text)) | set(re.findall(r'paginator\("(\w+)"\)', text))
    session = botocore.session.get_session()
    for service, model in (("ec2", "ec2"), ("servicequotas", "service-quotas"), ("ssm", "ssm")):
        for operation in session.get_service_model(model).operation_names:
            if xform_name(operation) in called:
                assert f"{service}:{operation}" in allowed
    assert len(sources) > 5


def test_only_the_images_own_parameter_is_read() -> None:
    def read(image: str = "") -> list[str]:
        statements = policies.user("s3://b-b", "us-east-1", image=image)["Statement"]
        return next(each["Resource"] for each in statements if each["Sid"] == "Images")

    public = [f"arn:aws:ssm:*:{account}:parameter/aws/service/*" for account in ("", "*")]
    assert read() == read("ami-1") == public
    assert read("/our/image") == [*public, "arn:aws:ssm:*:*:parameter/our/image"]
