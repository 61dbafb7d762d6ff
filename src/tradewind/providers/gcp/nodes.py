"""A pool of GPU nodes for a cluster of GKE: it follows what pods ask for, down to none."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.providers.base import Refused
from tradewind.providers.gcp.facts import TPU
from tradewind.providers.gcp.machines.types import kind
from tradewind.providers.infrastructure import (
    Infrastructure,
    Nodes,
    Of,
    Pool,
    Thing,
    Var,
    Variable,
)

FLAVOUR = "gke"
_MEGA = "a3-megagpu"
CLASSES = {
    "google_service_account": "serviceaccount.Account",
    "google_project_iam_member": "projects.IAMMember",
    "google_container_node_pool": "container.NodePool",
}


def described(wanted: Nodes) -> Infrastructure:
    zone = (
        (Variable(name="zone", words="Of the nodes, as planned.", default=wanted.zone),)
        if wanted.zone
        else ()
    )
    return Infrastructure(
        provider="google",
        source="hashicorp/google",
        version="~> 6.50",
        settings={"project": Var("project"), "region": Var("region")},
        variables=(
            Variable(name="project", words="Whose it is."),
            Variable(name="name", words="Of the nodes' identity.", default=wanted.name),
            Variable(name="region", words="As planned.", default=wanted.region),
            *zone,
            Variable(name="cluster", words="Its name.", default=wanted.cluster),
            Variable(name="location", words="Of the cluster: its region; or its zone, if it is in"
                     " one alone.", default=wanted.region),
            Variable(name="disk_gb", words=wanted.disk_why, kind="number", default=wanted.disk_gb),
            *(Variable(name=f"most_{each.key}", words=each.why, kind="number", default=each.most)
              for each in wanted.pools),
        ),
        things=(
            Thing(kind="google_service_account", name="nodes",
                  why="What nodes are: they may write logs and metrics, and fetch images.",
                  fields={"account_id": Var("name"), "display_name": "Nodes of a cluster"}),
            *(Thing(kind="google_project_iam_member", name=name, fields={
                "project": Var("project"), "role": role,
                "member": Of("google_service_account.nodes", "member")})
              for name, role in (("nodes", "roles/container.defaultNodeServiceAccount"),
                                 ("images", "roles/artifactregistry.reader"))),
            *(_pool(each, bool(wanted.zone)) for each in wanted.pools),
        ),
        outputs={"nodes": (Of("google_service_account.nodes", "email"), "What nodes are.")},
        classes=CLASSES,
        pulumi=("pulumi_gcp", "10"),
        notes=("GKE installs NVIDIA's driver and device plugin itself",),
    )  # fmt: skip


def _pool(pool: Pool, one_zone: bool) -> Thing:
    if pool.instance_type.startswith(TPU):
        raise InvalidValue(
            f"{pool.instance_type} is a slice of TPUs, which is not described as nodes yet",
            hint="tradewind run, which buys slices; or --accelerator with a GPU",
        )
    try:
        made = kind(pool.instance_type)
    except Refused as error:
        raise InvalidValue(error.message, hint="--provider with another cloud") from None
    card = pool.accelerator
    if made.machine_type.startswith(_MEGA):
        card = "nvidia-h100-mega-80gb"
    if not card:
        raise InvalidValue(
            f"what GKE calls {pool.chip} is not known", hint="--accelerator with another GPU"
        )
    config: dict[str, Any] = {
        "machine_type": made.machine_type,
        "spot": pool.spot,
        "disk_size_gb": Var("disk_gb"),
        "disk_type": "hyperdisk-balanced" if made.hyperdisk else "pd-balanced",
        "service_account": Of("google_service_account.nodes", "email"),
        "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "guest_accelerator": [
            {
                "type": card,
                "count": pool.count,
                "gpu_driver_installation_config": {"gpu_driver_version": "LATEST"},
            }
        ],
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        **({"gvnic": {"enabled": True}} if made.gvnic else {}),
        **(
            {
                "taint": [
                    {"key": key, "value": value, "effect": "NO_SCHEDULE"}
                    for key, value in pool.taints
                ]
            }
            if pool.taints
            else {}
        ),
    }
    return Thing(
        kind="google_container_node_pool",
        name=pool.key,
        why=f"{pool.count} × {pool.chip} in each; without pods that ask for them there are none.",
        needs=("google_project_iam_member.nodes", "google_project_iam_member.images"),
        fields={
            "name": pool.name,
            "cluster": Var("cluster"),
            "location": Var("location"),
            **({"node_locations": [Var("zone")]} if one_zone else {}),
            "initial_node_count": 0,
            "autoscaling": {
                "total_min_node_count": 0,
                "total_max_node_count": Var(f"most_{pool.key}"),
                "location_policy": "ANY",
            },
            "management": {"auto_repair": True, "auto_upgrade": True},
            "node_config": config,
        },
    )
