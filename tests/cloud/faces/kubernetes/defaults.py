"""What the API server fills in."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.kubernetes.resources import Resource
from tests.cloud.faces.kubernetes.store import Obj

MAX_INT32 = 2**31 - 1


def fill(resource: Resource, value: Obj) -> None:
    known = {
        "pods": _pod,
        "jobs.batch": _job,
        "services": _service,
        "namespaces": _namespace,
        "nodes": _node,
        "secrets": _secret,
        "persistentvolumeclaims": _claim,
        "jobsets.jobset.x-k8s.io": _jobset,
        "workloads.kueue.x-k8s.io": _workload,
        "networkpolicies.networking.k8s.io": _network_policy,
        "rolebindings.rbac.authorization.k8s.io": _binding,
        "clusterrolebindings.rbac.authorization.k8s.io": _binding,
    }.get(resource.qualified)
    if known is not None:
        known(value)


def _pod(value: Obj) -> None:
    pod_spec(value.get("spec"))
    value.setdefault("status", {})
    value["status"].setdefault("phase", "Pending")
    if isinstance(value.get("spec"), dict):
        value["status"].setdefault("qosClass", _quality(value["spec"]))


def pod_spec(spec: Any) -> None:
    if not isinstance(spec, dict):
        return
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    if not spec.get("hostNetwork"):
        spec.pop("hostNetwork", None)
    for each in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        if isinstance(each, dict):
            _container(each)
    for each in spec.get("volumes") or ():
        for sort in ("secret", "configMap", "downwardAPI", "projected"):
            if isinstance(each.get(sort), dict):
                each[sort].setdefault("defaultMode", 420)
    for each in spec.get("tolerations") or ():
        if each.get("key"):
            each.setdefault("operator", "Equal")


def _container(each: Obj) -> None:
    each.setdefault("terminationMessagePath", "/dev/termination-log")
    each.setdefault("terminationMessagePolicy", "File")
    resources = each.setdefault("resources", {})
    for name, value in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, value)
    image = str(each.get("image", ""))
    tagged = "@" in image or ":" in image.rpartition("/")[2]
    latest = not tagged or image.endswith(":latest")
    each.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in each.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for one in each.get("env") or ():
        source = one.get("valueFrom") or {}
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")
        elif not source:
            one.setdefault("value", "") if one.get("value") is None and "value" in one else None


def _quality(spec: Obj) -> str:
    tables = [each.get("resources") or {} for each in spec.get("containers") or ()]
    own = ("cpu", "memory")
    if not any(name in (each.get(of) or {}) for each in tables for of in each for name in own):
        return "BestEffort"
    whole = all(
        (each.get("limits") or {}).get(name)
        and (each.get("limits") or {}).get(name) == (each.get("requests") or {}).get(name)
        for each in tables
        for name in own
    )
    return "Guaranteed" if whole else "Burstable"


def _job(value: Obj) -> None:
    job_spec(value.get("spec"), value["metadata"])
    value.setdefault("status", {})


def job_spec(spec: Any, meta: Obj | None = None) -> None:
    if not isinstance(spec, dict):
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    if spec.get("backoffLimit") is None:
        limited = spec.get("backoffLimitPerIndex") is not None
        spec["backoffLimit"] = MAX_INT32 if limited else 6
    fails = spec.get("podFailurePolicy") is not None
    spec.setdefault("podReplacementPolicy", "Failed" if fails else "TerminatingOrFailed")
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for each in rule.get("onPodConditions") or ():
            each.setdefault("status", "True")
    template = spec.get("template")
    if isinstance(template, dict):
        inner = template.get("spec")
        policy = inner.get("restartPolicy") if isinstance(inner, dict) else None
        pod_spec(inner)
        if isinstance(inner, dict) and policy is None:
            inner["restartPolicy"] = "Always"  # which validation refuses, as the real one does
        if meta is not None and not spec.get("manualSelector"):
            own = {"batch.kubernetes.io/controller-uid": meta["uid"]}
            labels = template.setdefault("metadata", {}).setdefault("labels", {})
            labels |= own | {
                "controller-uid": meta["uid"],
                "batch.kubernetes.io/job-name": meta["name"],
                "job-name": meta["name"],
            }
            spec["selector"] = {"matchLabels": own}


def _service(value: Obj) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        if spec.get("clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
    for each in spec.get("ports") or ():
        each.setdefault("protocol", "TCP")
        each.setdefault("targetPort", each.get("port"))
    value.setdefault("status", {"loadBalancer": {}})


def _namespace(value: Obj) -> None:
    labels = value["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = value["metadata"]["name"]
    value.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    value.setdefault("status", {}).setdefault("phase", "Active")


def _node(value: Obj) -> None:
    value.setdefault("spec", {})
    value.setdefault("status", {})


def _secret(value: Obj) -> None:
    import base64

    value.setdefault("type", "Opaque")
    plain = value.pop("stringData", None) or {}
    if plain:
        value.setdefault("data", {})
        for name, text in plain.items():
            value["data"][name] = base64.b64encode(str(text).encode()).decode()


def _claim(value: Obj) -> None:
    value.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    value.setdefault("status", {}).setdefault("phase", "Pending")


def _jobset(value: Obj) -> None:
    spec = value.setdefault("spec", {})
    spec.setdefault("suspend", False)
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for each in spec.get("replicatedJobs") or ():
        each.setdefault("replicas", 1)
        each.setdefault("groupName", "default")
        template = each.get("template")
        inner = template.get("spec") if isinstance(template, dict) else None
        if isinstance(inner, dict):
            if inner.get("completionMode") is None:
                inner["completionMode"] = "Indexed"
            pods = (inner.get("template") or {}).get("spec")
            if isinstance(pods, dict):
                pods.setdefault("restartPolicy", "OnFailure")
            job_spec(inner)
    value.setdefault("status", {})


def _workload(value: Obj) -> None:
    value.setdefault("spec", {}).setdefault("active", True)
    value.setdefault("status", {})


def _network_policy(value: Obj) -> None:
    spec = value.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress"] + (["Egress"] if spec.get("egress") else [])


def _binding(value: Obj) -> None:
    value.setdefault("roleRef", {}).setdefault("apiGroup", "rbac.authorization.k8s.io")
    for each in value.get("subjects") or ():
        if each.get("kind") in ("User", "Group"):
            each.setdefault("apiGroup", "rbac.authorization.k8s.io")
