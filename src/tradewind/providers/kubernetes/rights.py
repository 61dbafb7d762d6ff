"""What is asked of clusters' API servers: the one list of it. The Role that setup makes has these
verbs and no others, `doctor` tries each, and tests hold every request against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tradewind.providers.kubernetes.footprint import Cluster

RBAC = "rbac.authorization.k8s.io"
JOBSET, KUEUE, VOLCANO = "jobset.x-k8s.io", "kueue.x-k8s.io", "scheduling.volcano.sh"


class Right(NamedTuple):
    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str

    @property
    def shown(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


RUNS = (
    Right("batch", "jobs", ("create", "delete", "get", "list", "patch"), "a leg is a Job"),
    Right("", "pods", ("delete", "list"), "a machine is a pod"),
    Right("", "secrets", ("create", "patch"), "what pods are told lies in a Secret of their Job"),
    Right("", "services", ("create", "patch"), "by which pods of a leg find each other"),
    Right("", "events", ("list",), "why a pod waits or has failed"),
    Right("", "serviceaccounts", ("get",), "whether the one that pods run as is this store's"),
)
"""In the namespace; nothing can be run without them."""
JOBSETS = (
    Right(JOBSET, "jobsets", ("create", "delete", "get", "list", "patch"), "a leg is a JobSet"),
)
QUEUES = (
    Right(KUEUE, "workloads", ("list",), "what Kueue says of a leg that waits"),
    Right(KUEUE, "localqueues", ("list",), "which queues there are"),
)
GANGS = (Right(VOLCANO, "podgroups", ("create", "patch"), "pods that start at once"),)
GATES = (Right("", "pods", ("patch",), "a gang is let go by removing its gate"),)
SEEN = (Right("", "resourcequotas", ("list",), "how much the namespace may use"),)
"""In the namespace; without them less is said."""
CLUSTER = (
    Right("", "nodes", ("list",), "what machines there are, and which have vanished or go"),
    Right("", "pods", ("list",), "what of them is free"),
    Right("karpenter.sh", "nodepools", ("list",), "what an autoscaler may add"),
)
"""In the whole cluster; without them less is known."""


def of(cluster: Cluster) -> Iterator[Right]:
    """In its namespace, as it is used."""
    yield from RUNS
    if cluster.jobset:
        yield from JOBSETS
    if cluster.queue:
        yield from QUEUES
    if cluster.volcano:
        yield from GANGS
    if cluster.gates:
        yield from GATES


def rules(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """As a Role has them."""
    return [
        {"apiGroups": [each.group], "resources": [each.resource], "verbs": list(each.verbs)}
        for each in rights
    ]
