"""The role that passes to S3 are made of: what is lent of it by IAM's rules, and that setup makes
and removes it. IAM's rules are those of iam.py; the session policy is also tried on a real server
in tests/store/test_lending.py. None of it proves what AWS does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.providers.aws import account_server as server
from tests.providers.aws.iam import Request, allows
from tests.providers.aws.setups import plan_setup, plan_teardown, written
from tests.providers.aws.test_policies import MOST_INLINE, MOST_MANAGED, _findings
from tradewind import store as stores
from tradewind.api.lending import Lending
from tradewind.base.errors import InvalidValue
from tradewind.providers.aws.cloud import CLOUD
from tradewind.providers.aws.footprint import name
from tradewind.providers.aws.setup import policies, printed, setter
from tradewind.providers.aws.setup.make import Wish
from tradewind.store.lending.s3 import session_policy

STORE, REGION, ACCOUNT = "s3://my-bucket/tw", "us-east-1", "123456789012"
LENT = policies.lend_name(STORE)
RUN = "run-1"


# -- what is lent ----------------------------------------------------------------------------------


def lent(action: str, resource: str, run: str = RUN, **context: str) -> bool:
    """By a session: its role, inside its boundary, and its session policy must all allow it."""
    role = policies.lending(STORE, REGION)
    arn = policies.lend_arn(STORE, REGION, ACCOUNT)
    narrowed = json.loads(session_policy(STORE, run, arn, ours=True))
    request = Request(action, resource, {key.replace("__", ":"): v for key, v in context.items()})
    return allows([role], request, boundary=narrowed)


def thing(key: str) -> str:
    return f"arn:aws:s3:::my-bucket/tw/{key}"


@pytest.mark.parametrize("run", [RUN, "r" * 150])  # with the short policy, too
def test_a_pass_is_for_its_run(run: str) -> None:
    for folder in ("journal", "logs", "job"):
        assert lent("s3:GetObject", thing(f"runs/{run}/{folder}/x"), run)
    assert lent("s3:GetObject", thing(f"passes/{run}/l/000000"), run)
    assert lent("s3:PutObject", thing(f"runs/{run}/machines/m/heartbeat.json"), run)
    assert lent("s3:PutObject", thing(f"runs/{run}/checkpoints/000001/1.json"), run)
    assert lent("s3:DeleteObject", thing(f"runs/{run}/shards/000001/x"), run)
    bucket = "arn:aws:s3:::my-bucket"
    assert lent("s3:ListBucket", bucket, run, s3__prefix=f"tw/runs/{run}/checkpoints/")
    assert lent("s3:ListBucket", bucket, run)  # that a key is not there


@pytest.mark.parametrize("run", [RUN, "r" * 150])
@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("s3:PutObject", "runs/{run}/journal/00000000000000000009.json"),
        ("s3:PutObject", "runs/{run}/journal/logs/x"),
        ("s3:PutObject", "runs/{run}/job/bundle.tar.gz"),
        ("s3:PutObject", "runs/{run}/volumes/1.jsonl"),
        ("s3:DeleteObject", "runs/{run}/logs/000001/0000/1.log"),
        ("s3:PutObject", "live/{run}"),
        ("s3:PutObject", "kits/0/kit.tar"),
        ("s3:PutObject", "passes/{run}/l/000000"),
        ("s3:DeleteObject", "passes/{run}/l/000000"),
        ("s3:GetObject", "keys/seed"),
        ("s3:GetObject", "providers/aws.json"),
        ("s3:GetObject", "runs/{run}0/logs/x"),
        ("s3:PutObject", "runs/{run}0/logs/x"),
        ("s3:GetObject", "passes/{run}0/l/000000"),
    ],
)
def test_and_for_nothing_else(run: str, action: str, key: str) -> None:
    assert not lent(action, thing(key.format(run=run)), run)


def test_other_runs_are_not_listed_and_no_secret_is_read() -> None:
    bucket = "arn:aws:s3:::my-bucket"
    assert not lent("s3:ListBucket", bucket, s3__prefix="tw/runs/run-2/")
    assert not lent("s3:ListBucket", bucket, s3__prefix="tw/passes/")
    assert not lent("s3:ListBucket", "arn:aws:s3:::other")
    secret = f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/{name(STORE).replace('-', '/', 1)}/x"
    assert not lent("ssm:GetParameter", secret)
    assert not allows([policies.lending(STORE, REGION)], Request("ssm:GetParameter", secret))


def test_a_linter_finds_nothing() -> None:
    role = policies.lending(STORE, REGION)
    user = policies.user(STORE, REGION, ssm=True, lend=True)
    who = setter.setter(STORE, REGION, private=True, ssm=True, lend=True)
    session = json.loads(session_policy(STORE, RUN, "arn:aws:iam::1:role/r", ours=True))
    for document in (role, user, who, session):
        assert _findings(document) == []
    assert len(json.dumps(role, separators=(",", ":"))) < min(MOST_MANAGED, MOST_INLINE)
    assert len(json.dumps(user, separators=(",", ":"))) < MOST_MANAGED


# -- who may do what with it -----------------------------------------------------------------------


def test_who_runs_tradewind_lends_it_only_where_that_was_asked_for() -> None:
    asked = Request("sts:AssumeRole", policies.lend_arn(STORE, REGION, ACCOUNT))
    assert allows([policies.user(STORE, REGION, lend=True)], asked)
    assert not allows([policies.user(STORE, REGION)], asked)
    machines = f"arn:aws:iam::{ACCOUNT}:role/{name(STORE)}"
    other = Request("sts:AssumeRole", machines)
    assert not allows([policies.user(STORE, REGION, lend=True)], other)


@pytest.mark.parametrize("action", ["iam:CreateRole", "iam:PutRolePolicy"])
def test_who_sets_it_up_gets_no_rights_by_it(action: str) -> None:
    """Who may put policies on a role that they may assume has them all, without its boundary."""
    held = [setter.setter(STORE, REGION, lend=True)]
    role = policies.lend_arn(STORE, REGION, ACCOUNT)
    own = policies.policy_arn(policies.lend_boundary_name(STORE), REGION, ACCOUNT)
    wide = policies.policy_arn("anything", REGION, ACCOUNT)
    at = {"aws:PrincipalAccount": ACCOUNT}
    assert allows(held, Request(action, role, {**at, "iam:PermissionsBoundary": own}))
    assert not allows(held, Request(action, role, {**at, "iam:PermissionsBoundary": wide}))
    assert not allows(held, Request(action, role, at))
    assert not allows(held, Request("iam:CreatePolicyVersion", own, at))
    assert not allows(held, Request("iam:DeleteRolePermissionsBoundary", role, at))
    assert not allows(held, Request("iam:UpdateAssumeRolePolicy", role, at))
    # Without being asked to, they can only look at it and remove it.
    made = Request("iam:CreateRole", role, {**at, "iam:PermissionsBoundary": own})
    assert not allows([setter.setter(STORE, REGION)], made)


# -- setup -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server.served() as found:
        yield found


@pytest.fixture(autouse=True)
def account(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server.entered(url, monkeypatch, tmp_path)


def wished(**more: Any) -> Any:
    return plan_setup(Wish(store_url=STORE, regions=(REGION,), **more))


def role() -> Any:
    return server.client("iam").get_role(RoleName=LENT)["Role"]


def test_setup_makes_it_when_it_is_asked_for_and_teardown_removes_it() -> None:
    assert wished().carry_out().lending_role == ""
    plan = wished(lend=True)
    shown = {(line.what, line.name) for line in plan.prepared.lines if line.changes}
    assert shown == {("boundary", f"{LENT}-boundary"), ("role", LENT)}
    record = plan.carry_out()
    made = role()
    assert record.lending_role == made["Arn"]
    assert written(STORE, REGION) == record
    assert made["MaxSessionDuration"] == 12 * 3600
    assert made["AssumeRolePolicyDocument"] == policies.trust_account(REGION, ACCOUNT)
    within = made["PermissionsBoundary"]["PermissionsBoundaryArn"]
    assert server.boundary_document(within) == policies.lending(STORE, REGION)
    assert CLOUD.decoded(record.encoded()) == record
    # Again, and without being asked once more: it stays, and there is nothing to do.
    assert wished().recorded
    assert Lending(stores.open(STORE)).lender.longest_s == 12 * 3600
    plan_teardown(STORE).carry_out()
    iam = server.client("iam")
    with pytest.raises(iam.exceptions.NoSuchEntityException):
        role()
    names = {each["PolicyName"] for each in iam.list_policies(Scope="Local")["Policies"]}
    assert f"{LENT}-boundary" not in names


def test_a_trust_policy_that_was_changed_is_refused() -> None:
    wished(lend=True).carry_out()
    wide = policies.trust_account(REGION, "999999999999")
    server.client("iam").update_assume_role_policy(RoleName=LENT, PolicyDocument=json.dumps(wide))
    with pytest.raises(InvalidValue, match="others than this account"):
        wished()
    plan_teardown(STORE).carry_out()


def test_a_pass_is_lent_as_sts_wants_to_be_asked() -> None:
    """The emulator lends whatever it is asked for; botocore checks how it is asked."""
    wished(lend=True).carry_out()
    lending = Lending(stores.open(STORE))
    assert lending.lender.environment["AWS_ENDPOINT_URL_S3"]
    passed = lending(RUN, 7200)
    assert (passed.for_s, passed.run_id) == (7200, RUN)
    assert set(passed.credentials) == {"access_key_id", "secret_access_key", "token"}
    plan_teardown(STORE).carry_out()


def test_a_store_without_a_lending_role_says_what_to_do() -> None:
    wished().carry_out()
    with pytest.raises(InvalidValue, match="there is no role to lend") as caught:
        Lending(stores.open(STORE))(RUN, 3600)
    assert f"tradewind setup aws --store {STORE} --lend" in str(caught.value.hint)
    plan_teardown(STORE).carry_out()


def test_printed() -> None:
    given = {"lend": True}
    assert "LendPasses" in printed.printed("policy", STORE, [REGION], given)
    assert "LentInBoundary" in printed.printed("setup-policy", STORE, [REGION], given)
    boundary = json.loads(printed.printed("boundary", STORE, [REGION], given))
    assert boundary == policies.lending(STORE, REGION)
    for kind in ("terraform", "cloudformation"):
        with pytest.raises(InvalidValue, match="it names the account"):
            printed.printed(kind, STORE, [REGION], given)
