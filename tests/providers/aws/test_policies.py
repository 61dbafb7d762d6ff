"""Policies: what a linter finds in them, and what they allow, judged as IAM would by its pattern
rules. Neither proves what AWS does with them."""

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

from tradewind.model import places
from tradewind.providers.aws.footprint import secrets_path
from tradewind.providers.aws.setup import policies, setter

STORES = ["s3://my-bucket", "s3://my-bucket/team/tw"]
MOST_MANAGED, MOST_INLINE = 6_144, 10_240
"""Characters without blanks: what IAM takes."""


@pytest.mark.parametrize("store", STORES)
def test_a_linter_finds_nothing(store: str) -> None:
    user = policies.user(store, "us-east-1", ssm=True)
    machines = policies.machines(store, "us-east-1")
    both = setter.setter(store, "us-east-1", private=True, ssm=True)
    least = setter.setter(store, "us-east-1")
    for document in (user, machines, policies.user(store, "us-east-1"), both, least):
        assert _findings(document) == []
    assert len(json.dumps(both, separators=(",", ":"))) < MOST_MANAGED
    assert len(json.dumps(user, separators=(",", ":"))) < MOST_MANAGED
    assert len(json.dumps(machines, separators=(",", ":"))) < MOST_INLINE


def test_the_linter_would_find_something() -> None:
    wrong = {"Effect": "Allow", "Action": ["s3:GetObjekt"], "Resource": ["*"]}
    assert _findings({"Version": "2012-10-17", "Statement": [wrong]}) == ["UNKNOWN_ACTION"]
    wrong = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": ["arn:aws:s3:::b/x"]}
    assert _findings({"Version": "2012-10-17", "Statement": [wrong]}) == ["RESOURCE_MISMATCH"]


def _findings(document: Any) -> list[str]:
    """RunInstances is allowed for its kinds of resources in several statements, each with its own
    condition: the linter wants all of them in each, so they are looked at as one."""
    split = [each for each in document["Statement"] if each["Action"] == ["ec2:RunInstances"]]
    rest = [each for each in document["Statement"] if each not in split]
    if split:
        resources = [arn for each in split for arn in each["Resource"]]
        rest.append({"Effect": "Allow", "Action": ["ec2:RunInstances"], "Resource": resources})
    parliament = _linter()
    found = parliament.analyze_policy_string(json.dumps(document | {"Statement": rest})).findings
    return [finding.issue for finding in found]


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


def _may(document: Any, action: str, resource: str) -> bool:
    """Without conditions: a statement denies or allows what its patterns fit."""

    def matches(arns: list[str]) -> bool:
        patterns = [re.escape(each).replace(r"\*", ".*") for each in arns]
        return any(re.fullmatch(p, resource) for p in patterns)

    def fits(statement: Any) -> bool:
        if action not in statement["Action"]:
            return False
        if "NotResource" in statement:
            return not matches(statement["NotResource"])
        return matches(statement["Resource"])

    effects = {each["Effect"] for each in document["Statement"] if fits(each)}
    return effects == {"Allow"}


@pytest.mark.parametrize("store", STORES)
def test_machines_write_what_machines_write(store: str) -> None:
    document = policies.machines(store, "us-east-1")
    below = "arn:aws:s3:::" + store.removeprefix("s3://") + "/"
    run, put, get, delete = "run-1", "s3:PutObject", "s3:GetObject", "s3:DeleteObject"
    written = [
        places.heartbeat(run, "aws-us-east-1-i-1"),
        places.resume(run, 1),
        places.address(run, 1),
        places.checkpoint(run, 1, 10),
        f"{places.shards(run)}000001/00000000000000000010-a-000000/__0_0.distcp",
        places.log_piece(run, 1, 0, 0),
        places.piece(places.metrics(run, 1, 0), 0),
    ]
    journal = f"{places.run(run)}journal/{0:020d}.json"
    read = [journal, f"{places.run(run)}volumes/{0:020d}.jsonl", places.bundle(run)]
    kit = "kits/abc/kit.tar"
    for key in written:
        assert _may(document, put, below + key), key
        assert _may(document, get, below + key), key
    for key in (*read, kit):
        assert _may(document, get, below + key), key
    never = [*read, kit, places.live(run), places.live(run, 2), "providers/aws.json"]
    # What a pattern with a star would let through, if it were not denied.
    never += [f"{places.run(run)}journal/logs/x.json", f"{places.run(run)}job/shards/x"]
    for key in never:
        assert not _may(document, put, below + key), key
        assert not _may(document, delete, below + key), key
    assert not _may(document, get, below + places.live(run))
    removable = [key for key in written if _may(document, delete, below + key)]
    assert removable == written[3:5]
    elsewhere = "arn:aws:s3:::my-bucket2/" + written[0]
    assert not _may(document, put, elsewhere)
    if store.count("/") > 2:
        assert not _may(document, get, "arn:aws:s3:::my-bucket/" + written[0])


def test_machines_read_the_secrets_of_their_store_and_no_others() -> None:
    store, region = "s3://my-bucket/tw", "us-east-1"
    document = policies.machines(store, region)
    shells = policies.document([policies.allow("AwsOwn", ["ssm:GetParameter"], ["*"])])
    both = policies.document(document["Statement"] + shells["Statement"])
    path = secrets_path(store)
    parameter = "arn:aws:ssm:us-east-1:123456789012:parameter/"
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:"
    for granted in (document, both):
        assert _may(granted, "ssm:GetParameter", f"{parameter}{path}hf")
        for other in ("prod/db", secrets_path("s3://other") + "hf", path.rstrip("/") + "x/hf"):
            assert not _may(granted, "ssm:GetParameter", parameter + other)
        assert not _may(granted, "ssm:PutParameter", f"{parameter}{path}hf")
    assert _may(document, "secretsmanager:GetSecretValue", f"{secret}{path}hf-AbCdEf")
    assert not _may(document, "secretsmanager:GetSecretValue", f"{secret}prod/db-AbCdEf")


def test_who_runs_it_may_touch_only_what_is_ours() -> None:
    store = "s3://my-bucket/tw"
    statements = {each["Sid"]: each for each in policies.user(store, "us-east-1")["Statement"]}
    ours = {"StringEquals": {"aws:ResourceTag/tradewind:owner": store}}
    born = {"StringEquals": {"aws:RequestTag/tradewind:owner": store}}
    assert statements["RunOurs"]["Condition"] == born
    assert statements["EndOurs"]["Condition"] == ours
    assert statements["RunBehindOurGroup"]["Condition"] == ours
    assert statements["LendOurRole"]["Condition"] == {
        "StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}
    }
    for sid, each in statements.items():  # what may be done to anything changes nothing
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
