"""What a cluster has to offer, asked of its API server: nodes, what others ask for, and what
autoscalers say. Whatever may not be asked is said, and the rest is made do with."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from msgspec import Struct

from tradewind.base.errors import NotFound, TradewindError
from tradewind.base.units import format_names
from tradewind.providers.kubernetes import asking
from tradewind.providers.kubernetes.client import Client
from tradewind.providers.kubernetes.footprint import Cluster, Footprint
from tradewind.providers.kubernetes.offers import scaling
from tradewind.providers.kubernetes.offers.nodes import Node, read, requested
from tradewind.providers.kubernetes.offers.shapes import OURS, Shape, shapes, strange
from tradewind.providers.offered import Like, Offered, Offering, Types

_AT_ONCE = 8
_FEES = ("gke", "eks", "aks")
"""Whose clusters cost something themselves."""


class Sight(Struct, frozen=True, kw_only=True):
    """Of one cluster."""

    shapes: tuple[Shape, ...]
    nodes: tuple[Node, ...] | None
    """None: they may not be read."""
    warnings: tuple[str, ...] = ()

    def shape(self, name: str, market: str) -> Shape | None:
        return next((e for e in self.shapes if (e.name, e.market) == (name, market)), None)


def look(client: Client, name: str, cluster: Cluster, types: Types | None = None) -> Sight:
    """`types`: for what autoscalers could add of types that are not up; None: that is left out."""
    warnings: list[str] = []
    told = [shape for text in cluster.accelerators for shape in scaling.told(text)]
    listed = asking.listed(client, "/api/v1/nodes", "listing nodes")
    if listed is None:
        if not told:
            warnings.append(
                f"nodes of {name} may not be read: {_TOLD.format(cluster.context or 'in-cluster')}"
            )
        return Sight(shapes=tuple(told), nodes=None, warnings=tuple(warnings))
    nodes = [read(each) for each in listed]
    fields = "status.phase!=Succeeded,status.phase!=Failed"
    pods = asking.listed(client, "/api/v1/pods", "listing pods of all namespaces", fields)
    if pods is None and any(node.chips for node in nodes):
        warnings.append(
            f"pods of other namespaces of {name} may not be read: what of its nodes is free is not"
            " known"
        )
    found = shapes(
        nodes,
        None if pods is None else requested(pods),
        None if pods is None else requested(pod for pod in pods if _is_daemon(pod)),
        cluster.tolerate,
    )
    found, empty = _grown(client, found, nodes)
    if empty and not told:
        warnings.append(
            f"groups of nodes in {name} that have none now, and so do not show what they have:"
            f" {format_names(empty, 4)}; --accelerator tells it"
        )
    found += _others(found, told)
    if types is not None:
        found += _others(found, _pools(client, nodes, cluster, types))
    off = [node for node in nodes if node.chips and not node.up]
    if off and not any(node.chips and node.up for node in nodes):
        warnings.append(
            f"all nodes of {name} with accelerators are cordoned, not ready or leaving:"
            f" {format_names([node.name for node in off], 4)}"
        )
    kept_off = [node for node in nodes if node.chips and node.up and strange(node, _fine(cluster))]
    if kept_off:
        taints = sorted({key for node in kept_off for key in strange(node, _fine(cluster))})
        warnings.append(
            f"{len(kept_off)} nodes of {name} with accelerators keep others off by"
            f" {format_names(taints, 3)}: --tolerate {taints[0]} lets runs go there"
        )
    return Sight(shapes=tuple(found), nodes=tuple(nodes), warnings=tuple(warnings))


_TOLD = (
    "tell what they have, by `tradewind setup kubernetes --store STORE --context {} --accelerator"
    " h100:8`, or ask for the right to list nodes"
)


def _fine(cluster: Cluster) -> tuple[str, ...]:
    return (*OURS, *cluster.tolerate)


def _is_daemon(pod: dict[str, Any]) -> bool:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or ()
    return any(each.get("kind") == "DaemonSet" for each in owners)


def _grown(client: Client, found: list[Shape], nodes: list[Node]) -> tuple[list[Shape], list[str]]:
    path = f"/api/v1/namespaces/kube-system/configmaps/{scaling.STATUS}"
    status = asking.read(client, path, "asking what the cluster autoscaler may add")
    if status is None:
        return found, []
    return scaling.grown(found, nodes, scaling.groups((status.get("data") or {}).get("status", "")))


def _pools(client: Client, nodes: list[Node], cluster: Cluster, types: Types) -> list[Shape]:
    path = "/apis/karpenter.sh/v1/nodepools"
    pools = asking.listed(client, path, "asking what Karpenter may add")
    if not pools:
        return []
    provider = cluster.provider or next((node.provider for node in nodes if node.provider), "")
    region = cluster.region or next((node.region for node in nodes if node.region), "")
    return scaling.pooled(pools, types, provider, region)


def _others(found: Iterable[Shape], more: Iterable[Shape]) -> list[Shape]:
    """Those of types that are not seen on nodes: what is seen is known better."""
    seen = {(each.name, each.spot) for each in found}
    return [each for each in more if (each.name, each.spot) not in seen]


# -- all clusters of a footprint -------------------------------------------------------------------


def sights(footprint: Footprint, types: Types | None = None) -> dict[str, Sight | TradewindError]:
    """By cluster: what it has, or why that is not known."""

    def one(name: str) -> Sight | TradewindError:
        cluster = footprint.clusters[name]
        try:
            return look(Client(cluster.context, server=cluster.server), name, cluster, types)
        except TradewindError as error:
            return error

    names = list(footprint.clusters)
    with ThreadPoolExecutor(min(len(names), _AT_ONCE) or 1) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


def offering(footprint: Footprint, types: Types) -> Offering:
    found: list[Offered] = []
    warnings: list[str] = []
    troubles: list[TradewindError] = []
    seen = False
    """Whether the nodes of any may be read."""
    for name, sight in sights(footprint, types).items():
        if isinstance(sight, TradewindError):
            troubles.append(sight)
            warnings.append(sight.message)
            continue
        cluster = footprint.clusters[name]
        found += [offered(name, cluster, shape, sight) for shape in sight.shapes]
        warnings += sight.warnings
        seen = seen or sight.nodes is not None
    if troubles and len(troubles) == len(footprint.clusters):
        raise troubles[0]
    if not found and not seen:
        raise NotFound(
            "; ".join(warnings),
            hint="tradewind doctor kubernetes says what else may not be done there",
        )
    if not found:
        raise NotFound(
            f"no node of {', '.join(footprint.clusters)} has an accelerator that pods can ask for"
            + "".join(f"; {words}" for words in warnings),
            hint="tradewind doctor kubernetes shows what there is; a device plugin (for NVIDIA the"
            " GPU operator) lets pods ask for nvidia.com/gpu; what is not up yet,"
            " `tradewind setup kubernetes --accelerator h100:8` tells",
        )
    return Offering(offers=tuple(found), warnings=tuple(warnings))


def offered(name: str, cluster: Cluster, shape: Shape, sight: Sight) -> Offered:
    chip = shape.chip
    kind = shape.kind or cluster.kind
    every = max(len(sight.nodes or ()), 1)
    return Offered(
        region=name,
        instance_type=shape.name,
        accelerator=chip.name,
        count=shape.asked * chip.part * chip.hosts,
        memory_gb=chip.memory_gb,
        market=shape.market,
        machines=shape.machines,
        free=shape.free,
        network_gbps=cluster.network_gbps or None,
        like=Like(
            provider=shape.provider or cluster.provider,
            region=shape.region or cluster.region,
            instance_type=shape.node_type,
            share=shape.share,
        ),
        fee_share=shape.share / every if kind in _FEES else 0.0,
        sure=shape.sure,
    )
