"""Rules that the schemas do not have, told as validation tells them. Names and labels are here, and
what is wrong with a pod or a Job in checks_pods.py and checks_jobs.py.

Known lies: only what people trip over is checked: a manifest that passes here may still be refused
by the real server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.cloud.faces.kubernetes import checks_jobs, checks_pods
from tests.cloud.faces.kubernetes.names import dns_label, dns_subdomain, label_key, label_value
from tests.cloud.faces.kubernetes.problems import (
    Cause,
    invalid,
    refused_field,
    required,
    unsupported,
)
from tests.cloud.faces.kubernetes.quantities import amount
from tests.cloud.faces.kubernetes.resources import Resource
from tests.cloud.faces.kubernetes.store import Obj

_LABELS = ("namespaces", "services")
_PATHS = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")


def object_faults(resource: Resource, value: Obj) -> list[Cause]:
    found = list(_meta(resource, value["metadata"]))
    check = {
        "pods": checks_pods.pod,
        "jobs.batch": checks_jobs.job,
        "services": _service,
        "secrets": _secret,
        "configmaps": _keys,
        "resourcequotas": _quota,
        "jobsets.jobset.x-k8s.io": _jobset,
        "networkpolicies.networking.k8s.io": _network_policy,
        "poddisruptionbudgets.policy": _budget,
        "roles.rbac.authorization.k8s.io": _role,
        "clusterroles.rbac.authorization.k8s.io": _role,
        "rolebindings.rbac.authorization.k8s.io": _binding,
        "clusterrolebindings.rbac.authorization.k8s.io": _binding,
        "podgroups.scheduling.volcano.sh": _nothing,
    }.get(resource.qualified, _nothing)
    return found + list(check(value))


def change_faults(resource: Resource, old: Obj, new: Obj) -> list[Cause]:
    """What may not be changed."""
    check = {
        "pods": checks_pods.changed,
        "jobs.batch": checks_jobs.changed,
        "jobsets.jobset.x-k8s.io": checks_jobs.jobset_changed,
        "secrets": _kept_secret,
        "configmaps": _kept_secret,
        "rolebindings.rbac.authorization.k8s.io": _kept_binding,
        "clusterrolebindings.rbac.authorization.k8s.io": _kept_binding,
        "services": _kept_service,
        "localqueues.kueue.x-k8s.io": _kept_queue,
    }.get(resource.qualified)
    return list(check(old, new)) if check is not None else []


def _nothing(_: Obj) -> Iterator[Cause]:
    return iter(())


def _meta(resource: Resource, meta: Obj) -> Iterator[Cause]:
    name = str(meta.get("name", ""))
    if resource.plural in _PATHS:
        words = (
            "" if name and not re.search(r"[/%]", name) and name not in (".", "..") else "may not"
        )
    elif resource.plural in _LABELS:
        words = dns_label(name)
    else:
        words = dns_subdomain(name)
    if words:
        yield invalid("metadata.name", name, words)
    for each, value in (meta.get("labels") or {}).items():
        if wrong := label_key(each):
            yield invalid("metadata.labels", each, wrong)
        if wrong := label_value(value):
            yield invalid("metadata.labels", value, wrong)
    size = 0
    for each, value in (meta.get("annotations") or {}).items():
        if wrong := label_key(each.lower()):
            yield invalid("metadata.annotations", each, wrong)
        size += len(each.encode()) + len(str(value).encode())
    if size > 262144:
        yield Cause(
            "metadata.annotations",
            "Too long: may not be more than 262144 bytes",
            "FieldValueTooLong",
        )
    for at, each in enumerate(meta.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not each.get(field):
                yield required(f"metadata.ownerReferences[{at}].{field}", "must not be empty")
    for each in meta.get("finalizers") or ():
        if wrong := label_key(each):
            yield invalid("metadata.finalizers", each, wrong)


def _service(value: Obj) -> Iterator[Cause]:
    spec = value["spec"]
    if not spec.get("ports") and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    names = [each.get("name") for each in spec.get("ports") or ()]
    for at, each in enumerate(spec.get("ports") or ()):
        if not 1 <= (each.get("port") or 0) <= 65535:
            yield invalid(
                f"spec.ports[{at}].port", each.get("port"), "must be between 1 and 65535, inclusive"
            )
        if len(names) > 1 and not each.get("name"):
            yield required(f"spec.ports[{at}].name")
    if spec.get("type") not in ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"):
        known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]
        yield unsupported("spec.type", spec.get("type"), known)


def _keys(value: Obj) -> Iterator[Cause]:
    size = 0
    for part in ("data", "binaryData"):
        for each, text in (value.get(part) or {}).items():
            size += len(str(text))
            if not re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", each):
                yield invalid(
                    f"{part}[{each}]",
                    each,
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
                    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation "
                    "is '[-._a-zA-Z0-9]+')",
                )
    if size > 1048576 * 4 // 3:
        yield Cause("data", "Too long: may not be more than 1048576 bytes", "FieldValueTooLong")


def _secret(value: Obj) -> Iterator[Cause]:
    yield from _keys(value)
    if value["type"] == "kubernetes.io/tls":
        for each in ("tls.crt", "tls.key"):
            if each not in (value.get("data") or {}):
                yield required(f"data[{each}]")


def _kept_secret(old: Obj, new: Obj) -> Iterator[Cause]:
    if old.get("immutable"):
        for part in ("data", "binaryData", "immutable"):
            if old.get(part) != new.get(part):
                yield refused_field(part, "field is immutable when `immutable` is set")
    if old.get("type") != new.get("type"):
        yield invalid("type", new.get("type"), "field is immutable")


def _quota(value: Obj) -> Iterator[Cause]:
    for each, most in (value["spec"].get("hard") or {}).items():
        if amount(most) < 0:
            yield invalid(f"spec.hard[{each}]", most, "must be greater than or equal to 0")
        bare = each.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")
        if "/" in bare and each == bare:
            yield invalid(f"spec.hard[{each}]", each, "must be a standard resource for quota")
    scopes = value["spec"].get("scopes") or ()
    if value.get("spec", {}).get("scopeSelector") and scopes:
        yield invalid("spec.scopes", scopes, "must not be given with a scopeSelector")


def _jobset(value: Obj) -> Iterator[Cause]:
    yield from checks_jobs.jobset(value)


def _network_policy(value: Obj) -> Iterator[Cause]:
    for each in value["spec"].get("policyTypes") or ():
        if each not in ("Ingress", "Egress"):
            yield unsupported("spec.policyTypes", each, ["Egress", "Ingress"])
    for side, ways in (("ingress", "from"), ("egress", "to")):
        for at, rule in enumerate(value["spec"].get(side) or ()):
            for number, peer in enumerate(rule.get(ways) or ()):
                path = f"spec.{side}[{at}].{ways}[{number}]"
                if not peer:
                    yield required(path, "must specify a peer")
                if "ipBlock" in peer and len(peer) > 1:
                    yield refused_field(path, "may not specify both ipBlock and another peer")


def _budget(value: Obj) -> Iterator[Cause]:
    spec = value["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("spec", "", "minAvailable and maxUnavailable cannot be both set")


def _role(value: Obj) -> Iterator[Cause]:
    for at, each in enumerate(value.get("rules") or ()):
        path = f"rules[{at}]"
        if not each.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if each.get("nonResourceURLs"):
            if value["metadata"].get("namespace"):
                yield invalid(
                    f"{path}.nonResourceURLs",
                    each["nonResourceURLs"],
                    "namespaced rules cannot apply to non-resource URLs",
                )
            continue
        if not each.get("apiGroups"):
            words = "resource rules must supply at least one api group"
            yield required(f"{path}.apiGroups", words)
        if not each.get("resources"):
            words = "resource rules must supply at least one resource"
            yield required(f"{path}.resources", words)


def _binding(value: Obj) -> Iterator[Cause]:
    kinds = ("Role", "ClusterRole") if value["metadata"].get("namespace") else ("ClusterRole",)
    if value["roleRef"].get("kind") not in kinds:
        yield unsupported("roleRef.kind", value["roleRef"].get("kind"), kinds)
    for at, each in enumerate(value.get("subjects") or ()):
        if each.get("kind") not in ("User", "Group", "ServiceAccount"):
            known = ["Group", "ServiceAccount", "User"]
            yield unsupported(f"subjects[{at}].kind", each.get("kind"), known)
        if each.get("kind") == "ServiceAccount" and not each.get("namespace"):
            yield required(f"subjects[{at}].namespace")


def _kept_binding(old: Obj, new: Obj) -> Iterator[Cause]:
    if old["roleRef"] != new["roleRef"]:
        yield invalid("roleRef", new["roleRef"], "cannot change roleRef")


def _kept_service(old: Obj, new: Obj) -> Iterator[Cause]:
    before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if before and after != before:
        yield invalid("spec.clusterIPs[0]", after, "may not change once set")


def _kept_queue(old: Obj, new: Obj) -> Iterator[Cause]:
    before: Any = old["spec"].get("clusterQueue")
    if before != new["spec"].get("clusterQueue"):
        yield invalid("spec.clusterQueue", new["spec"].get("clusterQueue"), "field is immutable")
