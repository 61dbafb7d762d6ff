"""A pod: one rank of a leg. It satisfies the strictest level of the pod security standards
("restricted"): no root, no privilege, nothing of the root file system can be written. What it is
told lies in a Secret, mounted; the API server it never talks to.
"""

from __future__ import annotations

from typing import Any

from tradewind.providers.boot import told
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.aboard import GRACE, SECRETS
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.gates import GATE
from tradewind.providers.kubernetes.manifests.order import Order
from tradewind.providers.kubernetes.manifests.placement import as_requests

CONTAINER = "job"
HOME, TOLD, USER_HOME = "/var/lib/tradewind", "/etc/tradewind", "/home/tradewind"
USER = 1000
"""Whoever it is in the image: files that the job needs to read must be readable by all."""
SPOT_S = {"gke": 15, "aks": 30, "eks": 120}
"""What pods of a spot node have at most, whatever they ask for, by whose cluster it is: GKE's
kubelet keeps half of its 30 seconds for critical pods; the others are their clouds' notices."""
_ZONE = "topology.kubernetes.io/zone"
_AZURE = "azure.workload.identity/use"
_VOLCANO = "scheduling.k8s.io/group-name"
_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
_KARPENTER = "karpenter.sh/do-not-disrupt"
_AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""To autoscalers: a node is not emptied only to pack pods closer. A PodDisruptionBudget would hold
up drains by people too, and those get a checkpoint at SIGTERM."""


def template(order: Order) -> dict[str, Any]:
    """Of all pods of a Job."""
    cluster, stamps, marks = order.cluster, order.stamps | _stay(order), order.labels
    if cluster.queue and cluster.topology and order.nodes > 1:
        stamps[_TOPOLOGY] = cluster.topology
    if cluster.volcano:
        stamps[_VOLCANO] = order.name
    if cluster.identity_of == "aks" and cluster.identity == "workload":
        marks[_AZURE] = "true"
    return {"metadata": {"labels": marks, "annotations": stamps}, "spec": _spec(order)}


def _stay(order: Order) -> dict[str, str]:
    """Pods that are not to be disrupted Karpenter does not evict from a spot machine that is being
    taken either: there its taint is the only notice (marks.py), which takes reading nodes."""
    stays = {_AUTOSCALER: "false"}
    if order.request.way.market != "spot" or order.cluster.nodes:
        stays[_KARPENTER] = "true"
    return stays


def _spec(order: Order) -> dict[str, Any]:
    cluster, placed = order.cluster, order.placement
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": order.request.hard_stop_s + told.SPARE_S,
        "terminationGracePeriodSeconds": cluster.grace_s,
        "serviceAccountName": cluster.service_account or "default",
        # Identities of clouds bring a token of their own; this one is for the API server.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(order)],
        "volumes": _volumes(order),
    }
    if cluster.python_image:
        spec["initContainers"] = [_injecting(order)]
    if placed.selector:
        spec["nodeSelector"] = placed.selector
    if placed.tolerations:
        spec["tolerations"] = placed.tolerations
    if affinity := _affinity(order):
        spec["affinity"] = affinity
    if order.nodes > 1:
        spec["subdomain"] = order.name
    if cluster.host_network:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if cluster.volcano:
        spec["schedulerName"] = "volcano"
    if cluster.gates and order.nodes > 1:
        spec["schedulingGates"] = [{"name": GATE}]
    if cluster.priority and not cluster.queue:
        spec["priorityClassName"] = cluster.priority
    return spec


def _affinity(order: Order) -> dict[str, Any]:
    made = _together(order) if order.nodes > 1 else {}
    if absent := order.placement.absent:
        without = [{"key": each, "operator": "DoesNotExist"} for each in absent]
        terms = {"nodeSelectorTerms": [{"matchExpressions": without}]}
        made["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return made


def _together(order: Order) -> dict[str, Any]:
    """In one zone, if that can be: between zones it is slower, and costs."""
    term = {"labelSelector": {"matchLabels": order.selector}, "topologyKey": _ZONE}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _container(order: Order) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": CONTAINER,
        "image": order.placement.image,
        "command": ["/bin/sh", f"{TOLD}/{told.START}"],
        "env": _variables(order),
        "securityContext": _unprivileged(),
        # Where nothing else was said, the end of its log tells why it ended.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(order),
    }
    if resources := as_requests(order.placement.resources):
        made["resources"] = resources
    if order.cluster.identity == "secret":
        made["envFrom"] = [{"secretRef": {"name": order.cluster.store_secret}}]
    return made


def _injecting(order: Order) -> dict[str, Any]:
    """Brings a Python where the job's image may have none."""
    plain = {k: v for k, v in order.placement.resources.items() if k in ("cpu", "memory")}
    made: dict[str, Any] = {
        "name": "python",
        "image": order.cluster.python_image,
        "command": ["python3", "-P", f"{TOLD}/{told.INJECT}", f"{HOME}/python"],
        "securityContext": _unprivileged(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [_mount("told", TOLD, read_only=True), _mount("work", HOME)],
    }
    if resources := as_requests(plain):
        made["resources"] = resources
    return made


def _unprivileged() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }


def grace_s(cluster: Cluster, market: str) -> int:
    """What a pod can count on, from SIGTERM on."""
    if market != "spot":
        return cluster.grace_s
    return min(cluster.grace_s, SPOT_S.get(cluster.kind, cluster.grace_s))


def _variables(order: Order) -> list[dict[str, Any]]:
    cluster = order.cluster
    fixed = {
        "TRADEWIND_HOME": HOME,
        "TRADEWIND_MACHINE_STEM": labels.machine_stem(order.place, order.name),
        GRACE: str(grace_s(cluster, order.request.way.market)),
        # The user need not be in the image's list of users: what asks for its name finds it here.
        "HOME": USER_HOME,
        "USER": "tradewind",
        "LOGNAME": "tradewind",
        "TMPDIR": "/tmp",
    }
    if cluster.interfaces:
        fixed["NCCL_SOCKET_IFNAME"] = fixed["GLOO_SOCKET_IFNAME"] = cluster.interfaces
    address = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return [
        *({"name": name, "value": value} for name, value in fixed.items()),
        {"name": "TRADEWIND_HOST", **address},
    ]


def _volumes(order: Order) -> list[dict[str, Any]]:
    # 0444: in the container there is nobody else, and its user is not the files' owner.
    secret = {"secretName": order.name, "defaultMode": 0o444}
    made: list[dict[str, Any]] = [
        {"name": "told", "secret": secret},
        {"name": "work", "emptyDir": {}},
        {"name": "home", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
    ]
    for number, name in enumerate(order.placement.secrets):
        # One that is missing shall not keep the pod waiting: the job's start says what is missing.
        kept = {"secretName": name, "defaultMode": 0o444, "optional": True}
        made.append({"name": f"secret-{number}", "secret": kept})
    if order.cluster.volume:
        claim = {"claimName": order.cluster.volume}
        made.append({"name": "store", "persistentVolumeClaim": claim})
    return made


def _mounts(order: Order) -> list[dict[str, Any]]:
    made = [
        _mount("told", TOLD, read_only=True),
        _mount("work", HOME),
        _mount("home", USER_HOME),
        _mount("tmp", "/tmp"),
        _mount("shm", "/dev/shm"),
    ]
    for number, name in enumerate(order.placement.secrets):
        made.append(_mount(f"secret-{number}", f"{SECRETS}/{name}", read_only=True))
    if order.cluster.volume:
        made.append(_mount("store", order.cluster.volume_path))
    return made


def _mount(name: str, path: str, *, read_only: bool = False) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
