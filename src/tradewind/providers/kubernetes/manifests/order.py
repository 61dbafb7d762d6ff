"""What the objects of a leg are made from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from tradewind.model.run import Request
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.manifests.placement import Placement, placement


class Order:
    def __init__(self, place: str, cluster: Cluster, owner: str, request: Request) -> None:
        """`place`: what the cluster is called; `owner`: a hash (labels.owner_of)."""
        self.place, self.cluster, self.owner, self.request = place, cluster, owner, request
        self.name = labels.name_of(owner, request)

    @property
    def nodes(self) -> int:
        return self.request.way.nodes

    @cached_property
    def placement(self) -> Placement:
        return placement(self.cluster, self.request.way)

    @property
    def labels(self) -> dict[str, str]:
        return labels.labels(self.owner, self.request)

    @property
    def stamps(self) -> dict[str, str]:
        return labels.stamps(self.request)

    @property
    def selector(self) -> dict[str, str]:
        """Of its pods."""
        return labels.of_launch(self.owner, self.request.launch_id)

    def metadata(self, owners: Mapping[str, str] | None = None) -> dict[str, Any]:
        """`owners`: what it belongs to, and is removed with."""
        made: dict[str, Any] = {
            "name": self.name,
            "namespace": self.cluster.namespace,
            "labels": self.labels,
            "annotations": self.stamps,
        }
        if owners:
            made["ownerReferences"] = [dict(owners)]
        return made
