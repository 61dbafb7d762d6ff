"""A leg: one Indexed Job, a pod a rank; where the cluster has JobSet, a JobSet of one such Job.

We resume ourselves, elsewhere and from a checkpoint, so no pod is ever made a second time: a rank
that ends has failed or succeeded, and the others stay to be told of it. The Job is made suspended.
Only when all is there that its pods need is it let go, by one patch: whoever is cut off before that
leaves something that holds no node and costs nothing, and whoever repeats the launch completes it.
"""

from __future__ import annotations

from typing import Any

from tradewind.providers.boot import told
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.manifests import pod
from tradewind.providers.kubernetes.manifests.order import Order

JOBSET = "jobset.x-k8s.io/v1alpha2"
REPLICATED = "w"
"""The name of the Job within a JobSet, which is part of its pods' names."""
QUEUE, PRIORITY = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
WAITS_S = 7 * 86_400
"""So long a Job may wait for nodes: the links that its pods begin with die then."""
KEPT_S = 3600
"""A Job that is over is removed by the cluster after so long, if nobody of ours does."""


def made(order: Order) -> dict[str, Any]:
    """Suspended."""
    if not order.cluster.jobset:
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": order.metadata(),
            "spec": {**_job(order), "suspend": True, "ttlSecondsAfterFinished": KEPT_S},
        }
    metadata = {"labels": order.labels, "annotations": order.stamps}
    return {
        "apiVersion": JOBSET,
        "kind": "JobSet",
        "metadata": order.metadata(),
        "spec": {
            "suspend": True,
            "ttlSecondsAfterFinished": KEPT_S,
            "failurePolicy": {"maxRestarts": 0},
            "network": {
                "enableDNSHostnames": True,
                "subdomain": order.name,
                "publishNotReadyAddresses": True,
            },
            "replicatedJobs": [
                {
                    "name": REPLICATED,
                    "replicas": 1,
                    "template": {"metadata": metadata, "spec": _job(order)},
                }
            ],
        },
    }


def pods_of(name: str) -> str:
    """A selector for the pods of a leg, which is a Job or a JobSet of this name."""
    return f"batch.kubernetes.io/job-name in ({name},{name}-{REPLICATED}-0)"


def let_go(cluster: Cluster) -> dict[str, Any]:
    """The patch by which it begins: at once, or when Kueue says so."""
    patch: dict[str, Any] = {"metadata": {"annotations": {labels.READY: "true"}}}
    if not cluster.queue:
        return {**patch, "spec": {"suspend": False}}
    marks = {QUEUE: cluster.queue}
    if cluster.priority:
        marks[PRIORITY] = cluster.priority
    patch["metadata"]["labels"] = marks
    return patch


def _job(order: Order) -> dict[str, Any]:
    disrupted = [{"type": "DisruptionTarget", "status": "True"}]
    hard_stop_s = order.request.hard_stop_s + told.SPARE_S
    return {
        "completionMode": "Indexed",
        "completions": order.nodes,
        "parallelism": order.nodes,
        "backoffLimitPerIndex": 0,
        "maxFailedIndexes": order.nodes,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [{"action": "FailIndex", "onPodConditions": disrupted}],
        },
        # A pod's own hard stop is in its spec, and counts from when it has a node. This one counts
        # from when the Job was let go, so what it may wait comes on top, unless Kueue lets it go
        # when there is room.
        "activeDeadlineSeconds": hard_stop_s + (0 if order.cluster.queue else WAITS_S),
        "template": pod.template(order),
    }
