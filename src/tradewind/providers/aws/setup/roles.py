"""The role of a store's machines, its permissions boundary and its instance profile: what they
lack."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from urllib.parse import unquote

from tradewind.base.errors import InvalidValue, NoAccess
from tradewind.providers.aws.footprint import tag_list, tags_of
from tradewind.providers.aws.setup import policies
from tradewind.providers.aws.setup.calls import Calls
from tradewind.providers.aws.setup.things import Role
from tradewind.providers.changes import Line

_NONE = ("NoSuchEntity",)
_MADE = ("EntityAlreadyExists",)


def look(calls: Calls, wanted: Role, region: str) -> list[Line]:
    """`region` is only where IAM is asked: it is the same everywhere."""
    return [look_at_role(calls, wanted, region), _profile(calls, wanted, region)]


def look_at_role(calls: Calls, wanted: Role, region: str) -> Line:
    boundary = policies.policy_arn(wanted.boundary_name, region, calls.account.number())
    return _role(calls, wanted, boundary, region)


def look_at_boundary(calls: Calls, wanted: Role, store_url: str, region: str) -> Line:
    """It is made where there is none, and never changed: whoever may change it may have everything.
    What an administrator has made of it stays."""
    arn = policies.policy_arn(wanted.boundary_name, region, calls.account.number())
    found = calls("iam", region, "get_policy", PolicyArn=arn, fine=_NONE)
    line = Line("boundary", wanted.boundary_name, "", found is not None)
    if found is None:
        line.add(
            "make it: the most that the role may ever do",
            lambda: _make_boundary(calls, wanted, store_url, region),
        )
        return line
    version = found["Policy"]["DefaultVersionId"]
    told = calls("iam", region, "get_policy_version", PolicyArn=arn, VersionId=version)
    if document(told["PolicyVersion"]["Document"]) != wanted.boundary:
        line.remark = "left as an administrator has it, which is not what --print boundary prints"
    return line


def _make_boundary(calls: Calls, wanted: Role, store_url: str, region: str) -> None:
    try:
        calls(
            "iam", region, "create_policy", PolicyName=wanted.boundary_name, fine=_MADE,
            PolicyDocument=json.dumps(wanted.boundary), Tags=tag_list(wanted.tags),
            Description="The most that the role of the same name may do",
        )  # fmt: skip
    except NoAccess as error:
        raise NoAccess(
            f"the permissions boundary {wanted.boundary_name} is not there, and these credentials"
            f" may not make it ({error.message})",
            hint="an administrator makes it, once:"
            f" `tradewind setup aws --store {store_url} --region {region}{_asked(wanted)}"
            " --print boundary"
            f" > boundary.json` and `aws iam create-policy --policy-name {wanted.boundary_name}"
            " --policy-document file://boundary.json`",
        ) from error


def _asked(wanted: Role) -> str:
    return " --lend" if wanted.name.endswith("-lend") else ""


def _role(calls: Calls, wanted: Role, boundary: str, region: str) -> Line:
    def call(method: str, **more: Any) -> Any:
        # A role that is a moment old is not yet known to every part of IAM.
        again = () if method.startswith(("get", "list")) else _NONE
        return calls("iam", region, method, RoleName=wanted.name, again=again, **more)

    found = calls("iam", region, "get_role", RoleName=wanted.name, fine=_NONE)
    line = Line("role", wanted.name, "", found is not None)
    trust = json.dumps(wanted.trust)
    if found is None:
        line.add(
            f"make it, for {wanted.whose} alone",
            # A boundary that is a moment old is not yet known to every part of IAM either.
            lambda: calls(
                "iam", region, "create_role", RoleName=wanted.name, fine=_MADE, again=_NONE,
                AssumeRolePolicyDocument=trust, Tags=tag_list(wanted.tags),
                Description=wanted.description,
                PermissionsBoundary=boundary, MaxSessionDuration=wanted.longest_s,
            ),
        )  # fmt: skip
        own, attached = None, set()
    else:
        role = found["Role"]
        if document(role["AssumeRolePolicyDocument"]) != wanted.trust:
            raise InvalidValue(
                f"the role {wanted.name} may be assumed by others than {wanted.whose}: someone"
                " changed its trust policy",
                hint="find out who did; then remove it with tradewind teardown aws, and run setup"
                " again",
            )
        within = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn", "")
        if not within:
            line.add(
                "inside the boundary",
                lambda: call("put_role_permissions_boundary", PermissionsBoundary=boundary),
            )
        elif within != boundary:
            line.remark = f"inside another boundary, which is left: {within}"
        tags = tags_of(role.get("Tags"))
        if any(tags.get(key) != value for key, value in wanted.tags.items()):
            line.add("tagged as ours", lambda: call("tag_role", Tags=tag_list(wanted.tags)))
        own = call("get_role_policy", PolicyName=wanted.policy_name, fine=_NONE)
        listed = call("list_attached_role_policies")["AttachedPolicies"]
        attached = {each["PolicyArn"] for each in listed}
    if own is None or document(own["PolicyDocument"]) != wanted.policy:
        text = json.dumps(wanted.policy)
        line.add(
            "reads and writes what machines do, in its store",
            lambda: call("put_role_policy", PolicyName=wanted.policy_name, PolicyDocument=text),
        )
    for arn in wanted.managed:
        if arn not in attached:
            words = f"{arn.rpartition('/')[2]}, for shells"
            line.add(words, partial(call, "attach_role_policy", PolicyArn=arn))
    return line


def _profile(calls: Calls, wanted: Role, region: str) -> Line:
    name = {"InstanceProfileName": wanted.name}
    found = calls("iam", region, "get_instance_profile", fine=_NONE, **name)
    line = Line("instance profile", wanted.name, "", found is not None)
    if found is None:
        line.add(
            "make it",
            lambda: calls(
                "iam", region, "create_instance_profile", fine=_MADE,
                Tags=tag_list(wanted.tags), **name,
            ),
        )  # fmt: skip
    roles = [role["RoleName"] for role in found["InstanceProfile"]["Roles"]] if found else []
    if wanted.name not in roles:
        line.add("hands out the role", lambda: _hand(calls, wanted, region, name))
    return line


def _hand(calls: Calls, wanted: Role, region: str, name: dict[str, str]) -> None:
    """A profile takes one role. That it has one already is told as a limit: then it is ours, unless
    another is in the way."""
    calls(
        "iam", region, "add_role_to_instance_profile", RoleName=wanted.name, again=_NONE,
        fine=("LimitExceeded",), **name,
    )  # fmt: skip


def document(told: Any) -> Any:
    """boto3 decodes policies; where it does not, they come as text of a URL."""
    return json.loads(unquote(told)) if isinstance(told, str) else told
