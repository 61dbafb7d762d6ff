"""Which nodes suit a way, and what of one a pod asks for: as the offer that the way was made from
has written it into the way (`Way.layout["kubernetes"]`).

    {"selector": {label: value}, "absent": [label, …],
     "resources": {"nvidia.com/gpu": "8", "cpu": "96", …},
     "tolerations": [{"key": …, "operator": "Exists", "effect": "NoSchedule"}],
     "image": "registry/image:tag", "secrets": ["name", …]}

Whatever is missing there is not asked for. It comes out of a journal, so nothing of it is taken for
granted.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, ValidationError, convert

from tradewind.model.run import Way
from tradewind.providers.base import Refused
from tradewind.providers.kubernetes.footprint import Cluster

KEY = "kubernetes"
DEFAULT_IMAGE = "docker.io/library/python:3.12-slim"
"""Where neither the job nor the cluster names one: for jobs that bring along what they need."""
_ARCH = "kubernetes.io/arch"


class Placement(Struct, frozen=True, kw_only=True):
    selector: dict[str, str] = {}
    resources: dict[str, str] = {}
    absent: list[str] = []
    """Labels that suitable nodes have not: those of spot machines, of which others alike are."""
    tolerations: list[dict[str, str]] = []
    image: str = ""
    secrets: list[str] = []
    """Secrets of the namespace whose keys the job may read."""

    @property
    def architecture(self) -> str:
        return "arm64" if self.selector.get(_ARCH) == "arm64" else "x86_64"


def placement(cluster: Cluster, way: Way) -> Placement:
    try:
        found = convert(way.layout.get(KEY) or {}, Placement)
    except ValidationError as error:
        raise Refused("not_allowed", f"{way.words} cannot be placed: {error}") from None
    image = found.image or cluster.image or DEFAULT_IMAGE
    resources = dict(found.resources)
    if cluster.rdma and way.nodes > 1:
        resources[cluster.rdma] = "1"
    return Placement(
        selector=found.selector,
        absent=found.absent,
        resources=resources,
        tolerations=found.tolerations,
        image=image,
        secrets=found.secrets,
    )


def as_requests(resources: dict[str, str]) -> dict[str, Any]:
    """Limits are what is requested: such pods (Guaranteed) are evicted last, one that needs more
    memory than it asked for is killed and not its neighbours, and accelerators allow nothing
    else."""
    return {"requests": resources, "limits": resources} if resources else {}
