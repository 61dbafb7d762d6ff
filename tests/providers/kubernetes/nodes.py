"""Nodes as clusters describe them, from the labels that their vendors document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TYPE, REGION, ZONE = (
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/mig.strategy": "none",
}
EKS_SPOT = {"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-family": "p5"}


def node(
    name: str,
    has: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    taints: tuple[Mapping[str, str], ...] = (),
    ready: bool = True,
    cordoned: bool = False,
    provider_id: str = "",
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "taints": [dict(each) for each in taints],
            **({"unschedulable": True} if cordoned else {}),
            **({"providerID": provider_id} if provider_id else {}),
        },
        "status": {
            "allocatable": {"cpu": "96", "memory": "1000Gi", **has},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def h100(name: str, *more: Mapping[str, str], gpus: str = "8", **others: Any) -> dict[str, Any]:
    labels = {TYPE: "p5.48xlarge", REGION: "us-east-1", "kubernetes.io/arch": "amd64", **H100}
    for each in more:
        labels |= each
    return node(name, {"nvidia.com/gpu": gpus}, labels, **others)


def pod(
    where: str,
    asks: Mapping[str, str],
    *,
    phase: str = "Running",
    daemon: bool = False,
    before: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    owners = [{"kind": "DaemonSet", "name": "agent"}] if daemon else []
    return {
        "metadata": {"name": f"pod-{where}", "ownerReferences": owners},
        "spec": {
            "nodeName": where,
            "containers": [{"resources": {"requests": dict(asks)}}],
            "initContainers": [{"resources": {"requests": dict(before)}}] if before else [],
        },
        "status": {"phase": phase},
    }
