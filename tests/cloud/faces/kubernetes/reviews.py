"""Reviews: who am I, may I, what may I."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.kubernetes import schemas
from tests.cloud.faces.kubernetes.problems import bad_request
from tests.cloud.faces.kubernetes.rbac import Ask, User
from tests.cloud.faces.kubernetes.registry import Registry
from tests.cloud.faces.kubernetes.resources import Resource
from tests.cloud.faces.kubernetes.store import Obj


def answered(registry: Registry, resource: Resource, user: User, body: Any) -> Obj:
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    schemas.check(resource.schema, resource.kind, resource.version, body)
    value = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}, **body}
    spec = body.get("spec") or {}
    if resource.kind == "SelfSubjectReview":
        told = {"username": user.name, "groups": list(user.all_groups)}
        return value | {"status": {"userInfo": told}}
    if resource.kind == "SelfSubjectRulesReview":
        rules = registry.rights.rules(user, spec.get("namespace", ""))
        if "system:masters" in user.groups:
            rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        status = {
            "resourceRules": [each for each in rules if "nonResourceURLs" not in each],
            "nonResourceRules": [each for each in rules if "nonResourceURLs" in each],
            "incomplete": False,
        }
        return value | {"status": status}
    if resource.kind == "SubjectAccessReview":
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()))
    asked = spec.get("resourceAttributes")
    if asked is not None:
        sub = f"/{asked['subresource']}" if asked.get("subresource") else ""
        ask = Ask(
            asked.get("verb", ""),
            asked.get("group", ""),
            asked.get("resource", "") + sub,
            asked.get("namespace", ""),
            asked.get("name", ""),
        )
    else:
        path = spec.get("nonResourceAttributes") or {}
        ask = Ask(path.get("verb", ""), path=path.get("path", ""))
    may = registry.rights.may(user, ask)
    return value | {"status": {"allowed": may} | ({} if may else {"reason": ""})}
