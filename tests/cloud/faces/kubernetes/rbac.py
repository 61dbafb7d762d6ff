"""Who may do what: Roles and ClusterRoles by their bindings, and that nobody grants what they have
not got.

Known lies: `system:masters` may do all, and of the roles that a cluster has from its start only
cluster-admin, admin, edit, view, system:basic-user and system:discovery are there; ClusterRoles are
not aggregated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.cloud.faces.kubernetes.problems import Problem, forbidden
from tests.cloud.faces.kubernetes.resources import (
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    ROLES,
    Resource,
)
from tests.cloud.faces.kubernetes.store import Obj, Store

_RBAC = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_EDITED = [
    {
        "apiGroups": [""],
        "resources": [
            *("pods", "pods/log", "pods/exec", "pods/eviction", "configmaps", "services", "events"),
            *("persistentvolumeclaims", "serviceaccounts", "serviceaccounts/token", "secrets"),
        ],
        "verbs": _READ + _WRITE,
    },
    {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": _READ + _WRITE},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": _READ + _WRITE},
    {
        "apiGroups": ["networking.k8s.io"],
        "resources": ["networkpolicies"],
        "verbs": _READ + _WRITE,
    },
    {
        "apiGroups": [""],
        "resources": ["resourcequotas", "limitranges", "namespaces"],
        "verbs": _READ,
    },
]
_VIEWED = [
    {
        "apiGroups": [""],
        "resources": [
            *("pods", "pods/log", "configmaps", "services", "events", "persistentvolumeclaims"),
            *("serviceaccounts", "resourcequotas", "limitranges", "namespaces"),
        ],
        "verbs": _READ,
    },
    {"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": _READ},
]
_ADMIN = [
    *_EDITED,
    {"apiGroups": [_RBAC], "resources": ["roles", "rolebindings"], "verbs": _READ + _WRITE},
    {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["localsubjectaccessreviews"],
        "verbs": ["create"],
    },
]
FIRST_ROLES: dict[str, list[Any]] = {
    "cluster-admin": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "admin": _ADMIN,
    "edit": _EDITED,
    "view": _VIEWED,
    "system:basic-user": [
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        },
        {
            "apiGroups": ["authentication.k8s.io"],
            "resources": ["selfsubjectreviews"],
            "verbs": ["create"],
        },
    ],
    "system:discovery": [
        {
            "nonResourceURLs": [
                *("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi"),
                *("/openapi/*", "/readyz", "/version", "/version/"),
            ],
            "verbs": ["get"],
        }
    ],
}
FIRST_BINDINGS = {
    "cluster-admin": "system:masters",
    "system:basic-user": "system:authenticated",
    "system:discovery": "system:authenticated",
}


@dataclass(frozen=True)
class User:
    name: str
    groups: tuple[str, ...] = ()

    @property
    def all_groups(self) -> tuple[str, ...]:
        if self.name == "system:anonymous":
            return ("system:unauthenticated",)
        return (*self.groups, "system:authenticated")


SYSTEM = User("system:controllers", ("system:masters",))
ANONYMOUS = User("system:anonymous")


@dataclass(frozen=True)
class Ask:
    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource: pods/log."""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """Of what is no resource."""


def fill(store: Store, stamp: str) -> None:
    for name, rules in FIRST_ROLES.items():
        store.add(
            CLUSTER_ROLES,
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": name, "creationTimestamp": stamp},
                "rules": rules,
            },
        )
    for name, group in FIRST_BINDINGS.items():
        store.add(
            CLUSTER_BINDINGS,
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name, "creationTimestamp": stamp},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "Group", "name": group, "apiGroup": _RBAC}],
            },
        )


class Rights:
    def __init__(self, store: Store) -> None:
        self._store = store

    def rules(self, user: User, namespace: str) -> list[Obj]:
        """Those of the whole cluster, and of the namespace where one is given."""
        found: list[Obj] = []
        bound = [*self._store.all(CLUSTER_BINDINGS)]
        if namespace:
            bound += self._store.all(BINDINGS, namespace)
        for each in bound:
            if any(_is(one, user, each) for one in each.get("subjects") or ()):
                found += self._role(each["roleRef"], each["metadata"].get("namespace", ""))
        return found

    def _role(self, ref: Obj, namespace: str) -> list[Obj]:
        kind = CLUSTER_ROLES if ref["kind"] == "ClusterRole" else ROLES
        role = self._store.get(kind, "" if kind is CLUSTER_ROLES else namespace, ref["name"])
        return list((role or {}).get("rules") or ())

    def may(self, user: User, ask: Ask) -> bool:
        if "system:masters" in user.groups:
            return True
        return any(covers(each, ask) for each in self.rules(user, ask.namespace))

    def refusal(self, user: User, ask: Ask, resource: Resource | None) -> Problem:
        if resource is None:
            words = f'forbidden: User "{user.name}" cannot {ask.verb} path "{ask.path}"'
            return Problem(403, words, details={})
        where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
        return forbidden(
            resource,
            ask.name,
            f'User "{user.name}" cannot {ask.verb} resource "{ask.resource}" in API group '
            f'"{ask.group}" {where}',
        )

    # -- granting ----------------------------------------------------------------------------------

    def check_grant(self, user: User, resource: Resource, value: Obj) -> None:
        if "system:masters" in user.groups:
            return
        meta = value["metadata"]
        namespace = meta.get("namespace", "")
        if resource in (ROLES, CLUSTER_ROLES):
            verb, rules, plural, name = (
                "escalate",
                value.get("rules"),
                resource.plural,
                meta["name"],
            )
        elif resource in (BINDINGS, CLUSTER_BINDINGS):
            ref = value["roleRef"]
            rules = self._role(ref, namespace)
            plural = "clusterroles" if ref["kind"] == "ClusterRole" else "roles"
            verb, name = "bind", ref["name"]
        else:
            return
        if self.may(user, Ask(verb, _RBAC, plural, namespace, name)):
            return
        own = self.rules(user, namespace)
        lacking = [each for each in rules or () if not _held(own, each)]
        if lacking:
            told = "\n".join(map(_told, lacking))
            groups = " ".join(f'"{each}"' for each in user.all_groups)
            raise forbidden(
                resource,
                meta["name"],
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions '
                f"not currently held:\n{told}",
            )


def covers(rule: Obj, ask: Ask) -> bool:
    if not {ask.verb, "*"} & set(rule.get("verbs") or ()):
        return False
    if ask.path:
        return any(
            each in ("*", ask.path) or (each.endswith("*") and ask.path.startswith(each[:-1]))
            for each in rule.get("nonResourceURLs") or ()
        )
    if not {ask.group, "*"} & set(rule.get("apiGroups") or ()):
        return False
    resources, sub = set(rule.get("resources") or ()), ask.resource.partition("/")[2]
    if not {ask.resource, "*"} & resources and not (sub and f"*/{sub}" in resources):
        return False
    names = rule.get("resourceNames")
    return not names or ask.name in names


def _is(subject: Obj, user: User, binding: Obj) -> bool:
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    if subject["kind"] == "Group":
        return subject["name"] in user.all_groups
    namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
    return user.name == f"system:serviceaccount:{namespace}:{subject['name']}"


def _held(own: list[Obj], rule: Obj) -> bool:
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            if not any(covers(each, Ask(verb, path=path)) for each in own):
                return False
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or [""]:
                    ask = Ask(verb, group, resource, "", name)
                    if not any(covers(each, ask) for each in own):
                        return False
    return True


def _told(rule: Obj) -> str:
    parts = []
    for name, title in (
        ("apiGroups", "APIGroups"),
        ("resources", "Resources"),
        ("resourceNames", "ResourceNames"),
        ("nonResourceURLs", "NonResourceURLs"),
        ("verbs", "Verbs"),
    ):
        if rule.get(name):
            words = " ".join(f'"{each}"' for each in rule[name])
            parts.append(f"{title}:[{words}]")
    return "{" + ", ".join(parts) + "}"
