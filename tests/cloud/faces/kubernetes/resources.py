"""What kinds of objects there are, by group and version, and the schema of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Resource:
    group: str
    version: str
    plural: str
    kind: str
    schema: str
    """Of schemas.py."""
    namespaced: bool = True
    status: bool = False
    """It has a status that is changed by itself."""
    short: tuple[str, ...] = ()
    part_of: str = ""
    """What must be installed for it; "": it is Kubernetes' own."""
    others: tuple[str, ...] = ()
    """Further versions of it that are served."""
    graceful: bool = False
    review: bool = False
    """It is only created, answered, and kept nowhere."""

    @cached_property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def subresources(self) -> tuple[str, ...]:
        found = ("status",) if self.status else ()
        return found + {
            "pods": ("log", "eviction", "binding"),
            "serviceaccounts": ("token",),
            "namespaces": ("finalize",),
        }.get(self.qualified, ())

    def at(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version


def _core(plural: str, kind: str, *short: str, cluster: bool = False, **more: Any) -> Resource:
    schema = f"io.k8s.api.core.v1.{kind}"
    return Resource("", "v1", plural, kind, schema, not cluster, short=short, **more)


def _own(
    group: str, plural: str, kind: str, *short: str, cluster: bool = False, **more: Any
) -> Resource:
    package = group.removesuffix(".k8s.io").removesuffix(".authorization")
    schema = f"io.k8s.api.{package}.v1.{kind}"
    return Resource(group, "v1", plural, kind, schema, not cluster, short=short, **more)


def _kueue(plural: str, kind: str, cluster: bool = False, status: bool = True) -> Resource:
    return Resource(
        "kueue.x-k8s.io",
        "v1beta2",
        plural,
        kind,
        f"kueue.{kind}",
        not cluster,
        status,
        part_of="kueue",
        others=("v1beta1",),
    )


_RBAC = "rbac.authorization.k8s.io"
_AUTH = "authorization.k8s.io"
RESOURCES = (
    _core("namespaces", "Namespace", "ns", cluster=True, status=True),
    _core("nodes", "Node", "no", cluster=True, status=True),
    _core("pods", "Pod", "po", status=True, graceful=True),
    _core("secrets", "Secret"),
    _core("configmaps", "ConfigMap", "cm"),
    _core("services", "Service", "svc", status=True),
    _core("serviceaccounts", "ServiceAccount", "sa"),
    _core("events", "Event", "ev"),
    _core("resourcequotas", "ResourceQuota", "quota", status=True),
    _core("limitranges", "LimitRange", "limits"),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status=True),
    _core("persistentvolumes", "PersistentVolume", "pv", cluster=True, status=True),
    _own("batch", "jobs", "Job", status=True),
    _own("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", status=True),
    _own("networking.k8s.io", "networkpolicies", "NetworkPolicy", "netpol"),
    _own("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", cluster=True),
    _own("coordination.k8s.io", "leases", "Lease"),
    _own(_RBAC, "roles", "Role"),
    _own(_RBAC, "rolebindings", "RoleBinding"),
    _own(_RBAC, "clusterroles", "ClusterRole", cluster=True),
    _own(_RBAC, "clusterrolebindings", "ClusterRoleBinding", cluster=True),
    _own(_AUTH, "selfsubjectaccessreviews", "SelfSubjectAccessReview", cluster=True, review=True),
    _own(_AUTH, "selfsubjectrulesreviews", "SelfSubjectRulesReview", cluster=True, review=True),
    _own(_AUTH, "subjectaccessreviews", "SubjectAccessReview", cluster=True, review=True),
    _own(
        "authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", cluster=True,
        review=True,
    ),
    Resource(
        "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", "jobset.JobSet", True, True,
        part_of="jobset",
    ),
    _kueue("localqueues", "LocalQueue"),
    _kueue("clusterqueues", "ClusterQueue", cluster=True),
    _kueue("workloads", "Workload"),
    _kueue("resourceflavors", "ResourceFlavor", cluster=True, status=False),
    _kueue("workloadpriorityclasses", "WorkloadPriorityClass", cluster=True, status=False),
    Resource(
        "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", "volcano.PodGroup", True, True,
        ("pg",), "volcano",
    ),
    Resource(
        "scheduling.volcano.sh", "v1beta1", "queues", "Queue", "volcano.Queue", False, True,
        ("q",), "volcano",
    ),
    Resource(
        "karpenter.sh", "v1", "nodepools", "NodePool", "any", False, True, part_of="karpenter"
    ),
)  # fmt: skip
BY_NAME = {each.qualified: each for each in RESOURCES}
BY_KIND = {(each.group, each.kind): each for each in RESOURCES}
NODES, PODS = BY_NAME["nodes"], BY_NAME["pods"]
NAMESPACES, EVENTS = BY_NAME["namespaces"], BY_NAME["events"]
SECRETS, CONFIGMAPS = BY_NAME["secrets"], BY_NAME["configmaps"]
SERVICES, SERVICEACCOUNTS = BY_NAME["services"], BY_NAME["serviceaccounts"]
QUOTAS, CLAIMS = BY_NAME["resourcequotas"], BY_NAME["persistentvolumeclaims"]
JOBS, JOBSETS = BY_NAME["jobs.batch"], BY_NAME["jobsets.jobset.x-k8s.io"]
BUDGETS = BY_NAME["poddisruptionbudgets.policy"]
PRIORITIES = BY_NAME["priorityclasses.scheduling.k8s.io"]
ROLES, BINDINGS = BY_NAME[f"roles.{_RBAC}"], BY_NAME[f"rolebindings.{_RBAC}"]
CLUSTER_ROLES = BY_NAME[f"clusterroles.{_RBAC}"]
CLUSTER_BINDINGS = BY_NAME[f"clusterrolebindings.{_RBAC}"]
QUEUES = BY_NAME["localqueues.kueue.x-k8s.io"]
CLUSTER_QUEUES = BY_NAME["clusterqueues.kueue.x-k8s.io"]
WORKLOADS = BY_NAME["workloads.kueue.x-k8s.io"]
FLAVORS = BY_NAME["resourceflavors.kueue.x-k8s.io"]
WORKLOAD_PRIORITIES = BY_NAME["workloadpriorityclasses.kueue.x-k8s.io"]
POD_GROUPS = BY_NAME["podgroups.scheduling.volcano.sh"]
