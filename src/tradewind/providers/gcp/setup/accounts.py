"""Who machines are, what they may, and what their users may: what is missing of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from tradewind.base.errors import InvalidValue, TradewindError
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.changes import Line
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.roles import Grant, Role
from tradewind.providers.gcp.setup.things import Account, Things

_TRIES = 8
Binding = dict[str, Any]


def look_at_account(calls: Calls, wanted: Account) -> Line:
    path = f"/v1/projects/{calls.project}/serviceAccounts"
    found = calls.get("iam", f"{path}/{quote(wanted.email)}", "iam.serviceAccounts.get")
    line = Line("service account", wanted.email, "", found is not None)
    if found is None:
        body = {
            "accountId": wanted.id,
            "serviceAccount": {
                "displayName": wanted.display,
                "description": wanted.description,
            },
        }
        line.add(
            "make it, without a key",
            partial(calls.send, "iam", "POST", path, "iam.serviceAccounts.create", body),
        )
    elif found.get("disabled"):
        raise InvalidValue(
            f"the service account {wanted.email} is disabled: machines would be nobody",
            hint=f"find out who did that; `gcloud iam service-accounts enable {wanted.email}`",
        )
    return line


def look_at_role(calls: Calls, wanted: Role) -> Line:
    """A role that was removed keeps its id for a month, and is taken back."""
    parent = f"/v1/projects/{calls.project}/roles"
    found = calls.get("iam", f"{parent}/{wanted.id}", "iam.roles.get")
    there = found is not None and not found.get("deleted")
    line = Line("role", wanted.id, "", there)
    body = {
        "title": wanted.title,
        "description": wanted.description,
        "includedPermissions": list(wanted.permissions),
        "stage": "GA",
    }

    def mend() -> None:
        calls.send("iam", "PATCH", f"{parent}/{wanted.id}", "iam.roles.update", body)

    if found is None:
        asked = {"roleId": wanted.id, "role": body}
        line.add(
            _words(wanted), partial(calls.send, "iam", "POST", parent, "iam.roles.create", asked)
        )
    elif not there:
        back = partial(
            calls.send, "iam", "POST", f"{parent}/{wanted.id}:undelete", "iam.roles.undelete", {}
        )
        line.add("take it back: it was removed lately", back)
        line.add(_words(wanted), mend)
    elif sorted(found.get("includedPermissions") or ()) != sorted(wanted.permissions):
        line.add(_words(wanted), mend)
    return line


def _words(role: Role) -> str:
    many = len(role.permissions)
    return f"{role.words}: {many} permission{'s' if many > 1 else ''}"


def look_at_grants(calls: Calls, things: Things) -> list[Line]:
    """What machines may, of the bucket and of the project, each under a condition."""
    bucket = things.bucket.name if things.bucket else ""
    policies: dict[str, Policy] = {"bucket": BucketPolicy(calls, bucket)} if bucket else {}
    lines = []
    for on, policy in (policies | {"project": ProjectPolicy(calls)}).items():
        wanted = [grant for grant in things.grants if grant.on == on]
        name = bucket if on == "bucket" else calls.project
        change = partial(granted, calls.project, things.account.email, wanted)
        there = change(policy.bindings()) == policy.bindings()
        line = Line(f"grants on the {on}", name, "", there)
        if not there:
            words = ", ".join(grant.role.rpartition("_")[2] for grant in wanted)
            what = "in its store alone" if on == "bucket" else "of its store alone"
            line.add(f"machines: {words}, {what}", partial(policy.edit, change))
        lines.append(line)
    return lines


def granted(
    project: str, email: str, wanted: Sequence[Grant], bindings: Sequence[Binding]
) -> list[Binding]:
    """With what machines are to be granted, and without what they were granted by our roles
    otherwise. Bindings of others stay as they are."""
    member = f"serviceAccount:{email}"
    asked = [_binding(project, grant) for grant in wanted]
    base = email.partition("@")[0].replace("-", "_")
    made: list[Binding] = []
    for each in bindings:
        members = list(each.get("members") or ())
        ours = str(each.get("role")).startswith(f"projects/{project}/roles/{base}")
        if member in members and ours and not any(_same(each, one) for one in asked):
            members = [name for name in members if name != member]
        if members:
            made.append({**each, "members": members})
    for one in asked:
        there = next((each for each in made if _same(each, one)), None)
        if there is None:
            made.append({**one, "members": [member]})
        elif member not in there["members"]:
            there["members"] = [*there["members"], member]
    return made


def _binding(project: str, grant: Grant) -> Binding:
    return {
        "role": f"projects/{project}/roles/{grant.role}",
        "condition": {"title": grant.title, "expression": grant.condition},
    }


def _same(one: Binding, other: Binding) -> bool:
    def key(each: Binding) -> tuple[str, str]:
        return str(each.get("role")), str((each.get("condition") or {}).get("expression", ""))

    return key(one) == key(other)


class Policy(ABC):
    """Of a bucket or a project: read, changed and written whole, unless somebody was faster."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    @abstractmethod
    def read(self) -> dict[str, Any]: ...

    @abstractmethod
    def write(self, policy: dict[str, Any]) -> None: ...

    def bindings(self) -> list[Binding]:
        return list(self.read().get("bindings") or ())

    def edit(self, change: Callable[[list[Binding]], list[Binding]]) -> None:
        """Where it is refused, the policy is read again: it may have been changed by another since,
        or by us after all. A service account that was just made is not known everywhere yet."""
        for left in reversed(range(_TRIES)):
            before = self.read()
            bindings = list(before.get("bindings") or ())
            after = change(bindings)
            if after == bindings:
                return
            try:
                self.write({**before, "version": 3, "bindings": after})
                return
            except (Refused, OutcomeUnknown) as error:
                if not left or not (self._moved(before) or _young(error)):
                    raise
            self.calls.pause(_TRIES - left)

    def _moved(self, before: dict[str, Any]) -> bool:
        return bool(self.read().get("etag") != before.get("etag"))


class BucketPolicy(Policy):
    def __init__(self, calls: Calls, bucket: str) -> None:
        super().__init__(calls)
        self._path = f"/b/{quote(bucket, safe='')}/iam"

    def read(self) -> dict[str, Any]:
        asked = {"optionsRequestedPolicyVersion": "3"}
        return self.calls.get("storage", self._path, "storage.buckets.getIamPolicy", asked) or {}

    def write(self, policy: dict[str, Any]) -> None:
        self.calls.send("storage", "PUT", self._path, "storage.buckets.setIamPolicy", policy)


class ProjectPolicy(Policy):
    def read(self) -> dict[str, Any]:
        if "cloudresourcemanager" in self.calls.off:
            return {}
        path = f"/v3/projects/{self.calls.project}:getIamPolicy"
        asked = {"options": {"requestedPolicyVersion": 3}}
        permission = "resourcemanager.projects.getIamPolicy"
        return self.calls.send("cloudresourcemanager", "POST", path, permission, asked) or {}

    def write(self, policy: dict[str, Any]) -> None:
        path = f"/v3/projects/{self.calls.project}:setIamPolicy"
        permission = "resourcemanager.projects.setIamPolicy"
        self.calls.send("cloudresourcemanager", "POST", path, permission, {"policy": policy})


def _young(error: TradewindError) -> bool:
    return "does not exist" in error.message
