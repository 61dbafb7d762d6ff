"""The taints by which a cluster says that a node's machine is about to be taken. Pure.

Whoever takes a node marks it, so that nothing new comes, and most then evict what is there. Not all
do: Karpenter leaves pods alone that say `karpenter.sh/do-not-disrupt`, as ours do, until its node's
own grace is over, and a spot machine is gone before that; GKE's mark of a maintenance and that of a
termination handler which only taints come minutes before anything else. So a mark is a notice like
SIGTERM, and is passed on as one: the pods that work there are deleted, with their grace.

A cordon is no mark: it says that nothing new shall come, and may stand for days.

Sources: Karpenter `pkg/apis/v1/taints.go` and `pkg/utils/pod/scheduling.go` (IsEvictable);
aws-node-termination-handler `pkg/node/node.go`; GKE "Manage GPU node disruption" and
k8s-node-termination-handler; AKS "Node auto-drain"; Kubernetes "Well-Known Labels, Annotations and
Taints".
"""

from __future__ import annotations

from collections.abc import Iterable

from tradewind.providers.kubernetes.objects import Taint

MARKS = (
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",  # before Karpenter 1.0
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/scheduled-maintenance",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "cloud.google.com/impending-node-termination",
    "remediator.kubernetes.azure.com/unschedulable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "ToBeDeletedByClusterAutoscaler",
)
_KEEPS_OFF = ("NoSchedule", "NoExecute")
"""What only prefers to keep pods off takes nothing away."""


def of(taints: Iterable[Taint]) -> str:
    """The first of them that is one; "": none is."""
    return next((t.key for t in taints if t.key in MARKS and t.effect in _KEEPS_OFF), "")
