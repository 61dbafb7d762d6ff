"""What pods of a leg need besides their Job. All of it belongs to the Job, and goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tradewind.providers.kubernetes.manifests import leg
from tradewind.providers.kubernetes.manifests.order import Order

VOLCANO = "scheduling.volcano.sh/v1beta1"


def made(order: Order, uid: str, files: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """By kind of object (client.paths), for the Job of this uid."""
    owner = {
        "apiVersion": leg.JOBSET if order.cluster.jobset else "batch/v1",
        "kind": "JobSet" if order.cluster.jobset else "Job",
        "name": order.name,
        "uid": uid,
    }
    metadata = order.metadata(owner)
    yield (
        "secrets",
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "stringData": dict(files),
        },
    )
    if order.nodes > 1 and not order.cluster.jobset:  # which makes one itself
        yield (
            "services",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                # Ranks look for each other before any of them is ready.
                "spec": {
                    "clusterIP": "None",
                    "selector": order.selector,
                    "publishNotReadyAddresses": True,
                },
            },
        )
    if order.cluster.volcano:
        group: dict[str, Any] = {"minMember": order.nodes}
        if order.cluster.priority:
            group["priorityClassName"] = order.cluster.priority
        yield (
            "podgroups",
            {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": metadata, "spec": group},
        )
