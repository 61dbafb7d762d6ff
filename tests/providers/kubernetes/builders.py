"""Clusters, ways and requests for tests."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.lifecycle.builders import WAY
from tradewind.model.run import Request, Way
from tradewind.providers.kubernetes.facts import FACTS
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.manifests.order import Order

PLACE = "home"
OWNER = "0123456789abcdef"
GPU = {
    "selector": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
    "resources": {"nvidia.com/gpu": "8", "cpu": "90", "memory": "900Gi"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
}


def a_cluster(**changes: Any) -> Cluster:
    usual = Cluster(
        context="tests", server="", namespace="research", service_account="tradewind-pods"
    )
    return replace(usual, **changes)


def a_way(nodes: int = 1, layout: dict[str, Any] | None = None, **changes: Any) -> Way:
    return replace(
        WAY,
        provider="kubernetes",
        region=PLACE,
        zone="",
        instance_type="p5.48xlarge",
        market="on_demand",
        nodes=nodes,
        facts=FACTS,
        layout={"kubernetes": GPU if layout is None else layout},
        **changes,
    )


def a_request(nodes: int = 1, leg: int = 1, run_id: str = "run-1", **changes: Any) -> Request:
    return Request(
        launch_id=f"{run_id}-{leg}",
        run_id=run_id,
        leg=leg,
        way=a_way(nodes, **changes),
        hard_stop_s=3600,
    )


def an_order(nodes: int = 1, cluster: Cluster | None = None, **changes: Any) -> Order:
    return Order(PLACE, cluster or a_cluster(), OWNER, a_request(nodes, **changes))
