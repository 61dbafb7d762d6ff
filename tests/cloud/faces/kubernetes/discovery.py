"""What the server tells of itself: groups, versions, kinds."""

from __future__ import annotations

import re
from typing import Any

from tests.cloud.faces.kubernetes.cluster import ClusterDials
from tests.cloud.faces.kubernetes.requests import installed
from tests.cloud.faces.kubernetes.resources import VERBS, Resource


def told(path: str, dials: ClusterDials) -> Any:
    """None for what is not there."""
    found, path = installed(dials), path.rstrip("/")
    if path in ("/healthz", "/livez", "/readyz"):
        return "ok"
    if path == "/version":
        return _version(dials.version)
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    groups = sorted({each.group for each in found if each.group})
    if path == "/apis":
        many = [_group(each, found) for each in groups]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": many}
    if path == "/api/v1":
        return _resources("", "v1", found)
    match = re.fullmatch(r"/apis/([^/]+)(?:/([^/]+))?", path)
    if match and match[1] in groups:
        if match[2] is None:
            return {"kind": "APIGroup", "apiVersion": "v1"} | _group(match[1], found)
        if match[2] in _versions(match[1], found):
            return _resources(match[1], match[2], found)
    return None


def _version(text: str) -> dict[str, str]:
    major, minor = text.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": text,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.25",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _versions(group: str, found: list[Resource]) -> list[str]:
    return list(
        dict.fromkeys(
            version
            for each in found
            if each.group == group
            for version in (each.version, *each.others)
        )
    )


def _group(group: str, found: list[Resource]) -> dict[str, Any]:
    versions = [
        {"groupVersion": f"{group}/{each}", "version": each} for each in _versions(group, found)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resources(group: str, version: str, found: list[Resource]) -> dict[str, Any]:
    many = []
    for each in found:
        if each.group != group or version not in (each.version, *each.others):
            continue
        verbs = ["create"] if each.review else list(VERBS)
        one: dict[str, Any] = {
            "name": each.plural,
            "singularName": each.kind.lower(),
            "namespaced": each.namespaced,
            "kind": each.kind,
            "verbs": verbs,
        }
        if each.short:
            one["shortNames"] = list(each.short)
        many.append(one)
        for sub in each.subresources:
            verbs = ["get", "patch", "update"] if sub == "status" else ["create"]
            part = one | {"name": f"{each.plural}/{sub}", "singularName": "", "verbs": verbs}
            part.pop("shortNames", None)
            many.append(part)
    told = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "groupVersion": told, "resources": many}
