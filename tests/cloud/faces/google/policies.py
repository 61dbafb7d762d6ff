"""Who may do what: roles, bindings, conditions; and which permission was asked for in which call.

Bindings of a project count for everything in it; buckets, service accounts and secrets have their
own besides. Known lies: of predefined roles only those below exist, some a little wider than the
real ones; there are no folders, no organisation, no deny policies, no groups; of conditions, names,
types, services and the prefix of a listing are understood, and nothing else.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.cloud.faces.google.identity import Who
from tests.cloud.faces.google.problems import Problem

ROLES: dict[str, tuple[str, ...]] = {
    "roles/owner": ("*",),
    "roles/editor": (
        "compute.*",
        "tpu.*",
        "storage.buckets.*",
        "serviceusage.*",
        "*.get",
        "*.list",
    ),
    "roles/viewer": ("*.get", "*.list"),
    "roles/compute.admin": ("compute.*", "resourcemanager.projects.get", "serviceusage.*.list"),
    "roles/compute.instanceAdmin.v1": (
        "compute.instances.*",
        "compute.disks.*",
        "compute.*.get",
        "compute.*.list",
        "compute.*.use*",
        "compute.resourcePolicies.*",
    ),
    "roles/compute.networkAdmin": (
        "compute.networks.*",
        "compute.subnetworks.*",
        "compute.firewalls.*",
        "compute.routers.*",
        "compute.*Operations.*",
    ),
    "roles/compute.viewer": ("compute.*.get", "compute.*.list"),
    "roles/tpu.admin": ("tpu.*",),
    "roles/tpu.viewer": ("tpu.*.get", "tpu.*.list"),
    "roles/iam.serviceAccountUser": (
        "iam.serviceAccounts.actAs",
        "iam.serviceAccounts.get",
        "iam.serviceAccounts.list",
    ),
    "roles/iam.serviceAccountTokenCreator": (
        "iam.serviceAccounts.getAccessToken",
        "iam.serviceAccounts.signBlob",
        "iam.serviceAccounts.signJwt",
    ),
    "roles/iam.workloadIdentityUser": ("iam.serviceAccounts.getAccessToken",),
    "roles/iam.serviceAccountAdmin": ("iam.serviceAccounts.*",),
    "roles/iam.roleAdmin": ("iam.roles.*",),
    "roles/resourcemanager.projectIamAdmin": ("resourcemanager.projects.*",),
    "roles/serviceusage.serviceUsageAdmin": ("serviceusage.*",),
    "roles/storage.admin": ("storage.*",),
    "roles/storage.objectAdmin": ("storage.objects.*", "storage.multipartUploads.*"),
    "roles/storage.objectUser": ("storage.objects.*", "storage.multipartUploads.*"),
    "roles/storage.objectCreator": ("storage.objects.create", "storage.multipartUploads.*"),
    "roles/storage.objectViewer": ("storage.objects.get", "storage.objects.list"),
    "roles/storage.legacyBucketReader": ("storage.buckets.get", "storage.objects.list"),
    "roles/storage.legacyBucketOwner": (
        "storage.buckets.get*",
        "storage.buckets.setIamPolicy",
        "storage.buckets.update",
        "storage.objects.create",
        "storage.objects.delete",
        "storage.objects.list",
    ),
    "roles/secretmanager.secretAccessor": ("secretmanager.versions.access",),
    "roles/secretmanager.admin": ("secretmanager.*",),
    "roles/iap.tunnelResourceAccessor": ("iap.tunnelInstances.accessViaIAP",),
    "roles/logging.logWriter": ("logging.logEntries.create",),
}


@dataclass
class Policies:
    roles: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Custom ones, by their full names."""
    of: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Policies, by resource: projects/P, projects/P/serviceAccounts/E, projects/_/buckets/B, …"""
    asked: list[dict[str, Any]] = field(default_factory=list)
    """Every permission that was looked at: permission, resource, member, granted, by which call."""

    def get(self, resource: str) -> dict[str, Any]:
        policy = self.of.setdefault(resource, {"version": 1, "bindings": []})
        return {**policy, "etag": _etag(policy)}

    def put(self, resource: str, policy: dict[str, Any]) -> dict[str, Any]:
        """Whoever read an older one must read again (409)."""
        now = self.get(resource)
        if policy.get("etag") and policy["etag"] != now["etag"]:
            raise Problem(
                409,
                "There were concurrent policy changes. Please retry the whole read-modify-write"
                " with exponential backoff.",
                "aborted",
                "ABORTED",
            )
        bindings = policy.get("bindings", [])
        for binding in bindings:
            self._check(binding, int(policy.get("version", 1)))
        kept = [each for each in bindings if each.get("members")]
        self.of[resource] = {"version": policy.get("version", 1), "bindings": kept}
        return self.get(resource)

    def _check(self, binding: dict[str, Any], version: int) -> None:
        role = binding.get("role", "")
        if role not in ROLES and not (role in self.roles and not self.roles[role].get("deleted")):
            raise Problem(400, f"Role {role} is not supported for this resource.")
        for member in binding.get("members", []):
            if not re.match(
                r"(user|serviceAccount|group|domain|deleted|principal)\w*:|all\w+$", member
            ):
                raise Problem(400, f"Invalid member: {member}")
        if binding.get("condition") and version < 3:
            raise Problem(
                400,
                "A policy with conditions must have version 3 (set policy.version to 3)",
            )

    def grant(self, resource: str, role: str, member: str) -> None:
        policy = self.of.setdefault(resource, {"version": 1, "bindings": []})
        policy["bindings"].append({"role": role, "members": [member]})

    def has(
        self, who: Who, permission: str, resources: list[str], seen: dict[str, str] | None = None
    ) -> bool:
        """By a binding of any of these: the resource, and what it is in. `seen`: what conditions
        look at."""
        for resource in resources:
            for binding in self.of.get(resource, {}).get("bindings", []):
                members = binding.get("members", [])
                if not {who.member, "allUsers", "allAuthenticatedUsers"} & set(members):
                    continue
                if not self._includes(binding["role"], permission):
                    continue
                condition = binding.get("condition", {}).get("expression", "")
                if not condition or holds(condition, seen or {"name": resources[0]}):
                    return True
        return False

    def ask(
        self,
        who: Who,
        permission: str,
        resources: list[str],
        call: str,
        seen: dict[str, str] | None = None,
    ) -> bool:
        granted = self.has(who, permission, resources, seen)
        told = {"permission": permission, "resource": resources[0], "member": who.member}
        self.asked.append({**told, "granted": granted, "call": call})
        return granted

    def _includes(self, role: str, permission: str) -> bool:
        if role in self.roles:
            told = self.roles[role]
            return not told.get("deleted") and permission in told.get("includedPermissions", [])
        return any(fnmatch.fnmatchcase(permission, each) for each in ROLES.get(role, ()))


def bounded(
    rules: Iterable[dict[str, Any]], permission: str, bucket: str, seen: dict[str, str]
) -> bool:
    """Whether a credential access boundary leaves it: rights are those of the account and these."""
    for rule in rules:
        if rule["availableResource"].rpartition("/")[2] != bucket:
            continue
        roles = [each.removeprefix("inRole:") for each in rule["availablePermissions"]]
        patterns = [each for role in roles for each in ROLES.get(role, ())]
        condition = rule.get("availabilityCondition", {}).get("expression", "")
        if any(fnmatch.fnmatchcase(permission, each) for each in patterns) and (
            not condition or holds(condition, seen)
        ):
            return True
    return False


def _etag(policy: dict[str, Any]) -> str:
    text = json.dumps(policy, sort_keys=True).encode()
    return "Bw" + hashlib.sha256(text).hexdigest()[:10]


# -- conditions ------------------------------------------------------------------------------------


class _Text(str):
    def startsWith(self, prefix: str) -> bool:  # noqa: N802
        return self.startswith(prefix)

    def endsWith(self, suffix: str) -> bool:  # noqa: N802
        return self.endswith(suffix)

    def matches(self, pattern: str) -> bool:
        return re.search(pattern, self) is not None

    def extract(self, template: str) -> _Text:
        before, _, after = template.partition("{")
        after = after.partition("}")[2]
        start = self.find(before)
        if start < 0:
            return _Text("")
        rest = self[start + len(before) :]
        found, behind, _ = rest.partition(after) if after else (rest, "x", "")
        return _Text(found if behind else "")


class _Resource:
    def __init__(self, seen: dict[str, str]) -> None:
        self.name = _Text(seen.get("name", ""))
        self.type = _Text(seen.get("type", ""))
        self.service = _Text(seen.get("service", ""))


class _Api:
    def __init__(self, seen: dict[str, str]) -> None:
        self._seen = seen

    def getAttribute(self, name: str, default: str) -> _Text:  # noqa: N802
        return _Text(self._seen.get(name, default))


def holds(expression: str, seen: dict[str, str]) -> bool:
    """Of CEL as much as conditions need; what cannot be understood holds for nobody."""
    text = expression.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)
    names = {"resource": _Resource(seen), "api": _Api(seen), "__builtins__": {}}
    try:
        return bool(eval(text, names))
    except Exception:
        return False
