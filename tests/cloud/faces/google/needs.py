"""Which permissions a call needs, and for what: from the pages "Permissions" of each method in
Google's reference (compute, TPU, IAM, Resource Manager, Service Usage, Secret Manager).

`needed` gives pairs of permission and resource; `parents` what else a resource's rights come from.
Known lies: queued resources need what nodes do, since no role has permissions under their own name,
and nobody says which they need; what insert needs for what it refers to (images, reservations) is
asked for of the caller's own project only.

A login of a person names a project that its requests count for (X-Goog-User-Project): that has to
let it be used for that, besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.cloud.faces.google.discovery import Method

Needs = list[tuple[str, str]]

_VERBS = {
    "insert": "create",
    "bulkInsert": "create",
    "aggregatedList": "list",
    "patch": "update",
    "getFromFamily": "getFromFamily",
    "getSerialPortOutput": "getSerialPortOutput",
    "wait": "get",
}
_NAMED: dict[str, str] = {
    "cloudresourcemanager.projects.get": "resourcemanager.projects.get",
    "cloudresourcemanager.projects.getIamPolicy": "resourcemanager.projects.getIamPolicy",
    "cloudresourcemanager.projects.setIamPolicy": "resourcemanager.projects.setIamPolicy",
    "cloudresourcemanager.projects.testIamPermissions": "",
    "cloudresourcemanager.projects.list": "",
    "cloudresourcemanager.projects.search": "",
    "iam.projects.serviceAccounts.testIamPermissions": "",
    "iam.permissions.queryTestablePermissions": "",
    "iam.roles.get": "",
    "iam.roles.list": "",
    "iam.projects.serviceAccounts.patch": "iam.serviceAccounts.update",
    "iam.projects.serviceAccounts.keys.create": "iam.serviceAccountKeys.create",
    "iam.projects.serviceAccounts.keys.list": "iam.serviceAccountKeys.list",
    "iam.projects.roles.patch": "iam.roles.update",
    "iamcredentials.projects.serviceAccounts.signBlob": "iam.serviceAccounts.signBlob",
    "iamcredentials.projects.serviceAccounts.signJwt": "iam.serviceAccounts.signJwt",
    "iamcredentials.projects.serviceAccounts.generateAccessToken": (
        "iam.serviceAccounts.getAccessToken"
    ),
    "serviceusage.services.batchEnable": "serviceusage.services.enable",
    "serviceusage.services.batchGet": "serviceusage.services.get",
    "serviceusage.services.consumerQuotaMetrics.list": "serviceusage.quotas.get",
    "cloudquotas.projects.locations.services.quotaInfos.get": "cloudquotas.quotas.get",
    "cloudbilling.projects.getBillingInfo": "resourcemanager.projects.get",
    "secretmanager.projects.secrets.versions.access": "secretmanager.versions.access",
    "secretmanager.projects.secrets.addVersion": "secretmanager.versions.add",
    "tpu.projects.locations.queuedResources.reset": "tpu.nodes.reset",
    "tpu.projects.locations.acceleratorTypes.list": "tpu.acceleratortypes.list",
    "tpu.projects.locations.acceleratorTypes.get": "tpu.acceleratortypes.get",
    "tpu.projects.locations.runtimeVersions.list": "tpu.runtimeversions.list",
    "tpu.projects.locations.runtimeVersions.get": "tpu.runtimeversions.get",
    "tpu.projects.locations.nodes.patch": "tpu.nodes.update",
    "compute.projects.get": "compute.projects.get",
}


def needed(method: Method, params: Mapping[str, str], body: Any, project: str) -> Needs:
    if method.api == "compute":
        return _compute(method, params, body, project)
    resource = _resource(params, project)
    if method.id in _NAMED:
        named = _NAMED[method.id]
        return [(named, resource)] if named else []
    parts = method.id.split(".")
    if method.api == "tpu":
        what = "nodes" if parts[-2] == "queuedResources" else parts[-2].lower()
        found = [(f"tpu.{what}.{parts[-1]}", resource)]
        if parts[-1] == "create":
            found += _acts_as(_tpu_accounts(body), project)
        return found
    if method.api == "secretmanager":
        return [(f"secretmanager.{parts[-2]}.{parts[-1]}", resource)]
    return [(f"{method.api}.{parts[-2]}.{parts[-1]}", resource)]


def _compute(method: Method, params: Mapping[str, str], body: Any, project: str) -> Needs:
    _, collection, verb = method.id.split(".")
    if method.id in _NAMED:
        return [(_NAMED[method.id], f"projects/{project}")]
    collection = "instances" if collection == "regionInstances" else collection
    resource = _link(method, params, project)
    if verb == "insert" and isinstance(body, dict) and body.get("name"):
        resource = f"{resource}/{body['name']}"
    found: Needs = [(f"compute.{collection}.{_VERBS.get(verb, verb)}", resource)]
    if verb == "aggregatedList":
        found = [(f"compute.{collection}.list", f"projects/{project}")]
        if collection == "globalOperations":
            every = ("globalOperations", "regionOperations", "zoneOperations")
            found = [(f"compute.{each}.list", f"projects/{project}") for each in every]
    if verb in ("insert", "bulkInsert") and collection == "instances":
        found += _of_instance(body, params, project)
    elif (
        (verb == "insert" and collection == "subnetworks")
        or (verb == "insert" and collection == "firewalls")
        or (verb == "delete" and collection == "firewalls")
    ):
        found.append(("compute.networks.updatePolicy", f"projects/{project}"))
    elif verb == "patch" and collection == "firewalls":
        found.append(("compute.firewalls.get", resource))
        found.append(("compute.networks.updatePolicy", f"projects/{project}"))
    return found


def _of_instance(body: Any, params: Mapping[str, str], project: str) -> Needs:
    told = body.get("instanceProperties", body) if isinstance(body, dict) else {}
    where = f"projects/{project}"
    found: Needs = []
    if any("initializeParams" in each for each in told.get("disks", [])):
        found.append(("compute.disks.create", where))
    own = (f"projects/{project}/", "global/images/")
    for each in told.get("disks", []):
        if str(each.get("initializeParams", {}).get("sourceImage", "")).startswith(own):
            found.append(("compute.images.useReadOnly", where))
    for each in told.get("disks", []):
        if each.get("initializeParams", {}).get("labels"):
            found.append(("compute.disks.setLabels", where))
    each_own = (body or {}).get("perInstanceProperties") or {}
    if told.get("metadata", {}).get("items") or any(
        "metadata" in each for each in each_own.values()
    ):
        found.append(("compute.instances.setMetadata", where))
    if told.get("labels"):
        found.append(("compute.instances.setLabels", where))
    if told.get("tags", {}).get("items"):
        found.append(("compute.instances.setTags", where))
    for each in told.get("networkInterfaces", []):
        if each.get("subnetwork"):
            found.append(("compute.subnetworks.use", where))
        elif each.get("network"):
            found.append(("compute.networks.use", where))
        if each.get("accessConfigs"):
            found.append(("compute.subnetworks.useExternalIp", where))
    if told.get("resourcePolicies"):
        found.append(("compute.resourcePolicies.use", where))
    if told.get("serviceAccounts"):
        found.append(("compute.instances.setServiceAccount", where))
        found += _acts_as([str(each.get("email", "")) for each in told["serviceAccounts"]], project)
    return list(dict.fromkeys(found))


def _acts_as(emails: list[str], project: str) -> Needs:
    named = [each for each in emails if each]
    return [
        ("iam.serviceAccounts.actAs", f"projects/{project}/serviceAccounts/{each}")
        for each in named
    ]


def _tpu_accounts(body: Any) -> list[str]:
    if not isinstance(body, dict):
        return []
    nodes = [each.get("node", {}) for each in body.get("tpu", {}).get("nodeSpec", [])] or [body]
    return [str(each.get("serviceAccount", {}).get("email", "")) for each in nodes]


def _link(method: Method, params: Mapping[str, str], project: str) -> str:
    path = method.path.removeprefix("/compute/v1/")
    path = re.sub(r"\{(\w+)\}", lambda found: params.get(found[1], ""), path)
    for tail in ("/bulkInsert", "/serialPort", "/wait", "/setLabels", "/setPrivateIpGoogleAccess"):
        path = path.removesuffix(tail)
    return path


def _resource(params: Mapping[str, str], project: str) -> str:
    for name in ("name", "parent", "resource"):
        if params.get(name):
            text = re.sub(r":\w+$", "", params[name])
            if "/" not in text:
                return f"projects/{text}"
            text = text.replace("projects/-/", f"projects/{project}/")
            if "/secrets/" in text:
                return re.sub(r"/versions/.*", "", text)
            return re.sub(r"/keys(/.*)?$", "", text)
    return f"projects/{project}"


def parents(resource: str, project: str) -> list[str]:
    found = [resource]
    if resource != f"projects/{project}":
        found.append(f"projects/{project}")
    return found
