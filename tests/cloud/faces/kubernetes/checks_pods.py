"""What is wrong with a pod, beyond its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tests.cloud.faces.kubernetes.names import dns_label, dns_subdomain, label_key, label_value
from tests.cloud.faces.kubernetes.problems import (
    Cause,
    duplicate,
    invalid,
    refused_field,
    required,
    unsupported,
)
from tests.cloud.faces.kubernetes.quantities import amount
from tests.cloud.faces.kubernetes.store import Obj, copied

_SOURCES = (
    *("emptyDir", "hostPath", "secret", "configMap", "downwardAPI", "projected", "csi", "nfs"),
    *("persistentVolumeClaim", "ephemeral", "image", "iscsi", "fc", "glusterfs", "cephfs", "rbd"),
)
_OWN = ("cpu", "memory", "ephemeral-storage")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pod(value: Obj) -> Iterator[Cause]:
    yield from spec(value.get("spec") or {}, "spec")


def template(value: Obj, path: str) -> Iterator[Cause]:
    for each, text in ((value.get("metadata") or {}).get("labels") or {}).items():
        if wrong := label_key(each):
            yield invalid(f"{path}.labels", each, wrong)
        if wrong := label_value(text):
            yield invalid(f"{path}.labels", text, wrong)
    if not isinstance(value.get("spec"), dict):
        yield required(f"{path}.spec.containers")
        return
    yield from spec(value["spec"], f"{path}.spec")


def spec(value: Obj, path: str) -> Iterator[Cause]:
    if not value.get("containers"):
        yield required(f"{path}.containers")
    if value.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        known = ["Always", "OnFailure", "Never"]
        yield unsupported(f"{path}.restartPolicy", value.get("restartPolicy"), known)
    if value.get("dnsPolicy") not in ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"):
        known = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
        yield unsupported(f"{path}.dnsPolicy", value.get("dnsPolicy"), known)
    seconds = value.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds < 2**31:
        words = "must be between 1 and 2147483647, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", seconds, words)
    for field in ("hostname", "subdomain"):
        if value.get(field) and (wrong := dns_label(value[field])):
            yield invalid(f"{path}.{field}", value[field], wrong)
    volumes = set()
    for at, each in enumerate(value.get("volumes") or ()):
        yield from _volume(each, f"{path}.volumes[{at}]")
        if each.get("name") in volumes:
            yield duplicate(f"{path}.volumes[{at}].name", each.get("name"))
        volumes.add(each.get("name"))
    names: set[str] = set()
    for part in ("initContainers", "containers"):
        for at, each in enumerate(value.get(part) or ()):
            yield from _container(each, f"{path}.{part}[{at}]", volumes)
            if each.get("name") in names:
                yield duplicate(f"{path}.{part}[{at}].name", each.get("name"))
            names.add(str(each.get("name")))
    for each, text in (value.get("nodeSelector") or {}).items():
        if wrong := label_key(each) or label_value(text):
            yield invalid(f"{path}.nodeSelector", each, wrong)
    yield from _tolerations(value.get("tolerations") or (), f"{path}.tolerations")
    yield from _affinity(value.get("affinity") or {}, f"{path}.affinity")


def _volume(each: Obj, path: str) -> Iterator[Cause]:
    if wrong := dns_label(str(each.get("name", ""))):
        yield invalid(f"{path}.name", each.get("name"), wrong)
    sources = [name for name in each if name != "name"]
    if not sources:
        yield required(path, "must specify a volume type")
    if len(sources) > 1:
        yield refused_field(f"{path}.{sources[1]}", "may not specify more than 1 volume type")
    unknown = [name for name in sources if name not in _SOURCES]
    if unknown:
        yield unsupported(path, unknown[0], _SOURCES)
    if "secret" in each and not each["secret"].get("secretName"):
        yield required(f"{path}.secret.secretName")
    if "configMap" in each and not each["configMap"].get("name"):
        yield required(f"{path}.configMap.name")
    claim = each.get("persistentVolumeClaim")
    if claim is not None and not claim.get("claimName"):
        yield required(f"{path}.persistentVolumeClaim.claimName")
    medium = (each.get("emptyDir") or {}).get("medium", "")
    if medium not in ("", "Memory") and not medium.startswith("HugePages"):
        yield unsupported(f"{path}.emptyDir.medium", medium, ["", "HugePages", "Memory"])


def _container(each: Obj, path: str, volumes: set[Any]) -> Iterator[Cause]:
    if wrong := dns_label(str(each.get("name", ""))):
        yield invalid(f"{path}.name", each.get("name"), wrong)
    if not each.get("image"):
        yield required(f"{path}.image")
    elif str(each["image"]).strip() != each["image"]:
        words = "must not have leading or trailing whitespace"
        yield invalid(f"{path}.image", each["image"], words)
    for at, one in enumerate(each.get("env") or ()):
        name = str(one.get("name", ""))
        if not re.fullmatch(r"[ -<>-~]+", name):
            yield invalid(f"{path}.env[{at}].name", name, "a valid environment variable name")
        if one.get("value") and one.get("valueFrom"):
            words = "may not be specified when `value` is not empty"
            yield invalid(f"{path}.env[{at}].valueFrom", "", words)
        field = ((one.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if field is not None and not _field_path(field):
            words = "error converting fieldPath: field label not supported: " + field
            yield invalid(f"{path}.env[{at}].valueFrom.fieldRef.fieldPath", field, words)
    paths = set()
    for at, one in enumerate(each.get("volumeMounts") or ()):
        if one.get("name") not in volumes:
            yield Cause(
                f"{path}.volumeMounts[{at}].name",
                f'Not found: "{one.get("name")}"',
                "FieldValueNotFound",
            )
        if one.get("mountPath") in paths:
            words = "must be unique"
            yield invalid(f"{path}.volumeMounts[{at}].mountPath", one.get("mountPath"), words)
        paths.add(one.get("mountPath"))
    yield from _resources(each.get("resources") or {}, f"{path}.resources")
    policy = each.get("imagePullPolicy")
    if policy not in ("Always", "IfNotPresent", "Never"):
        yield unsupported(f"{path}.imagePullPolicy", policy, ["Always", "IfNotPresent", "Never"])
    context = each.get("securityContext") or {}
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        words = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(f"{path}.securityContext", context, words)


def _field_path(text: str) -> bool:
    plain = (
        *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
        *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
        "status.podIPs",
    )
    return text in plain or bool(re.fullmatch(r"metadata\.(labels|annotations)\['[^']+'\]", text))


def _resources(table: Obj, path: str) -> Iterator[Cause]:
    limits, requests = table.get("limits") or {}, table.get("requests") or {}
    for part, found in (("limits", limits), ("requests", requests)):
        for name, value in found.items():
            if amount(value) < 0:
                words = "must be greater than or equal to 0"
                yield invalid(f"{path}.{part}[{name}]", value, words)
            if name not in _OWN and "/" not in name and not name.startswith("hugepages-"):
                words = "must be a standard resource type or fully qualified"
                yield invalid(f"{path}.{part}[{name}]", name, words)
            if "/" in name and amount(value).denominator != 1:
                yield invalid(f"{path}.{part}[{name}]", value, "must be an integer")
    for name, value in requests.items():
        if name not in limits:
            if "/" in name:
                words = "Limit must be set for non overcommitable resources"
                yield required(f"{path}.limits", words)
        elif "/" in name and amount(value) != amount(limits[name]):
            words = f"must be equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", value, words)
        elif amount(value) > amount(limits[name]):
            words = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", value, words)


def _tolerations(found: Any, path: str) -> Iterator[Cause]:
    for at, each in enumerate(found):
        operator = each.get("operator", "Equal")
        if operator not in ("Equal", "Exists", "Lt", "Gt"):
            yield unsupported(f"{path}[{at}].operator", operator, ["Equal", "Exists"])
        if not each.get("key") and operator != "Exists":
            words = (
                'operator must be Exists when `key` is empty, which means "match all values '
                'and all keys"'
            )
            yield invalid(f"{path}[{at}].operator", operator, words)
        if operator == "Exists" and each.get("value"):
            words = "value must be empty when `operator` is 'Exists'"
            yield invalid(f"{path}[{at}].operator", each["value"], words)
        if each.get("effect") and each["effect"] not in _EFFECTS:
            yield unsupported(f"{path}[{at}].effect", each["effect"], _EFFECTS)
        if each.get("tolerationSeconds") is not None and each.get("effect") != "NoExecute":
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{path}[{at}].effect", each.get("effect"), words)


def _affinity(found: Obj, path: str) -> Iterator[Cause]:
    node = found.get("nodeAffinity") or {}
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = node.get(name)
    if terms is not None and not terms.get("nodeSelectorTerms"):
        words = "must have at least one node selector term"
        yield required(f"{path}.nodeAffinity.{name}.nodeSelectorTerms", words)
    for term in (terms or {}).get("nodeSelectorTerms") or ():
        for each in term.get("matchExpressions") or ():
            known = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
            if each.get("operator") not in known:
                yield unsupported(f"{path}.nodeAffinity.{name}", each.get("operator"), known)
            if each.get("operator") in ("In", "NotIn") and not each.get("values"):
                words = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required(f"{path}.nodeAffinity.{name}", words)


def changed(old: Obj, new: Obj) -> Iterator[Cause]:
    """Only images, gates, tolerations and the deadline of a pod may be changed."""
    before, after = copied(old["spec"]), copied(new["spec"])
    for each in (before, after):
        each.pop("activeDeadlineSeconds", None)
        each.pop("tolerations", None)
        each.pop("schedulingGates", None)
        if old["spec"].get("schedulingGates"):
            each.pop("nodeSelector", None)
            each.pop("affinity", None)
        for one in [*(each.get("containers") or ()), *(each.get("initContainers") or ())]:
            one.pop("image", None)
    if before != after:
        yield refused_field(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
            "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
            "be set to 1 if it was previously negative)",
        )
    gates = {each["name"] for each in old["spec"].get("schedulingGates") or ()}
    more = {each["name"] for each in new["spec"].get("schedulingGates") or ()} - gates
    if more:
        words = f"only deletion is allowed, but found new scheduling gate '{min(more)}'"
        yield refused_field("spec.schedulingGates", words)


def subdomain_faults(text: str) -> str:
    return dns_subdomain(text)
