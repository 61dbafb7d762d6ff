"""What `tradewind setup kubernetes` has made for one store, by cluster, and where that is written
down: in the store itself (`providers/kubernetes.json`). It has no credentials in it: whoever looks
after the runs of a store brings a kubeconfig that has the contexts.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tradewind.model import places as keys
from tradewind.providers import recorded
from tradewind.providers.elsewhere import Clusters

KEY = keys.footprint("kubernetes")


_Name = Annotated[str, Meta(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
"""As objects are called: it becomes a part of a path."""
_NoName = Annotated[str, Meta(pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$")]


class Cluster(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    context: str
    """Of the kubeconfig; "": the cluster that we are in ourselves."""
    server: str
    """Its API server's URL, so that a context that leads elsewhere by now is noticed."""
    namespace: _Name
    service_account: _Name
    """Who its pods are."""
    nodes: bool = False
    """Its nodes may be read: else only what pods are told of them is known."""
    kind: str = ""
    """Whose it is, as its nodes tell: gke, eks, aks, coreweave …; "": nobody's, or unknown."""
    provider: str = ""
    """The catalog's, whose instance types its nodes are; "": they are the user's own."""
    region: str = ""
    """Of that provider."""
    jobset: bool = False
    """Legs are JobSets: it is installed there."""
    queue: _NoName = ""
    """Kueue's LocalQueue that legs go through; "": none."""
    priority: _NoName = ""
    """Kueue's WorkloadPriorityClass, or else the pods' PriorityClass."""
    volcano: bool = False
    """Volcano schedules pods of a leg, all or none."""
    gates: bool = False
    """Pods of several machines are held back by a scheduling gate until all of them fit."""
    image: str = ""
    """For jobs that name none; "": by what the job needs."""
    python_image: str = ""
    """Where an image has no Python, one is taken from this; "": never."""
    identity: str = ""
    """By what its pods are somebody to the store: `workload` (an identity of the cloud's own that
    its service account has), `secret` (variables of a Secret), `volume` (the store is a folder that
    is mounted); "": they are lent passes."""
    store_secret: _NoName = ""
    """The Secret that has those variables."""
    volume: _NoName = ""
    """A PersistentVolumeClaim, mounted at `volume_path` in every pod."""
    volume_path: str = ""
    grace_s: Annotated[int, Meta(ge=1, le=86_400)] = 30
    """What pods are given to save and end, by SIGTERM."""
    host_network: bool = False
    rdma: str = ""
    """A resource that pods of several machines ask one of, such as rdma/ib."""
    topology: str = ""
    """A level of Kueue's topology, a label of nodes, in one of which pods of a leg are kept."""
    interfaces: str = ""
    """NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME of jobs."""
    identity_of: str = ""
    """Whose identity `workload` is: gke, eks or aks, whose pods need a label for it."""
    accelerators: tuple[str, ...] = ()
    """What its nodes have, where they may not be read or are not up: `[TYPE=]NAME[:COUNT][:spot]`,
    as h100:8."""
    tolerate: tuple[str, ...] = ()
    """Taints of nodes that its pods may go to, besides those that mean accelerators or spot."""
    network_gbps: Annotated[float, Meta(ge=0, le=100_000)] = 0.0
    """Between its nodes; 0: as their types have, else what is assumed."""


class Footprint(Clusters[Cluster], frozen=True, kw_only=True):
    """A pod goes to any zone that suits it."""

    @property
    def account(self) -> str:
        return ", ".join(f"{each.context}/{each.namespace}" for each in self.clusters.values())


def decoded(data: bytes) -> Footprint:
    return recorded.decoded(data, Footprint, "kubernetes")


def setup_command(store_url: str, *clusters: str) -> str:
    """That can be pasted: what makes, or mends, what pods of a store need."""
    contexts = " ".join(f"--context {each}" for each in clusters or ("CONTEXT",))
    return f"tradewind setup kubernetes --store {store_url or 's3://BUCKET'} {contexts}"
