"""A pool of GPU nodes for a cluster of AKS: it follows what pods ask for, down to none."""

from __future__ import annotations

from typing import Any

from tradewind.providers.infrastructure import (
    Infrastructure,
    Map,
    Nodes,
    Of,
    Pool,
    Thing,
    Var,
    Variable,
)

FLAVOUR = "aks"
_MOST_NAME = 12
CLASSES = {
    "azurerm_kubernetes_cluster": "containerservice.get_kubernetes_cluster_output",
    "azurerm_kubernetes_cluster_node_pool": "containerservice.KubernetesClusterNodePool",
}


def described(wanted: Nodes) -> Infrastructure:
    return Infrastructure(
        provider="azurerm",
        source="hashicorp/azurerm",
        version="~> 4.55",
        settings={"subscription_id": Var("subscription"), "features": {}},
        variables=(
            Variable(name="subscription", words="Whose it is."),
            Variable(name="resource_group", words="Of the cluster."),
            Variable(name="cluster", default=wanted.cluster,
                     words=f"Its name: it is in {wanted.region}, as planned."),
            Variable(name="disk_gb", words=wanted.disk_why, kind="number", default=wanted.disk_gb),
            *(Variable(name=f"most_{each.key}", words=each.why, kind="number", default=each.most)
              for each in wanted.pools),
        ),
        things=(
            Thing(kind="azurerm_kubernetes_cluster", name="here", data=True, fields={
                "name": Var("cluster"), "resource_group_name": Var("resource_group")}),
            *(_pool(each, number) for number, each in enumerate(wanted.pools, 1)),
        ),
        outputs={"cluster": (Of("data.azurerm_kubernetes_cluster.here", "id"), "Whose nodes.")},
        classes=CLASSES,
        pulumi=("pulumi_azure", "6"),
        notes=("AKS installs NVIDIA's driver; its device plugin, or the GPU operator, has to be in"
               " the cluster",),
    )  # fmt: skip


def _pool(pool: Pool, number: int) -> Thing:
    market: dict[str, Any] = {"priority": "Regular"}
    if pool.spot:
        market = {"priority": "Spot", "eviction_policy": "Delete"}
    # Names have twelve letters and digits there.
    ending = f"{number}{'s' if pool.spot else 'd'}"
    plain = "".join(each for each in pool.name if each.isalnum())
    return Thing(
        kind="azurerm_kubernetes_cluster_node_pool",
        name=pool.key,
        why=f"{pool.count} × {pool.chip} in each; without pods that ask for them there are none.",
        fields={
            "name": plain[: _MOST_NAME - len(ending)] + ending,
            "kubernetes_cluster_id": Of("data.azurerm_kubernetes_cluster.here", "id"),
            "mode": "User",
            "vm_size": pool.instance_type,
            **market,
            "auto_scaling_enabled": True,
            "min_count": 0,
            "max_count": Var(f"most_{pool.key}"),
            "os_disk_size_gb": Var("disk_gb"),
            "gpu_driver": "Install",
            "node_labels": Map(pool.labels),
            "node_taints": [f"{key}={value}:NoSchedule" for key, value in pool.taints],
        },
    )
