"""How vendors label nodes: by which labels they tell the accelerator, a spot machine, and whose the
cluster is. Tables, so that a vendor more is a line more.

Sources: NVIDIA GPU feature discovery and k8s-device-plugin (README), GKE "GPUs in Standard node
pools", "TPUs in GKE" and "Spot VMs", Karpenter "Well-known labels", Amazon EKS "Managed node group
capacity types", AWS Neuron device plugin, AKS "Use labels" and "Spot node pools", CoreWeave
"Node labels", Nebius "Managed Kubernetes node labels", AMD k8s-device-plugin node labeller.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
NVIDIA, AMD, TPU = "nvidia.com/gpu", "amd.com/gpu", "google.com/tpu"
NEURON = "aws.amazon.com/neuron"
MIG = "nvidia.com/mig-"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
PRODUCT = "nvidia.com/gpu.product"


class Named(NamedTuple):
    resource: str
    """That pods ask for."""
    labels: tuple[str, ...]
    """Any of which names the accelerator; the first that is there counts."""


ACCELERATORS = (
    Named(
        NVIDIA,
        (
            PRODUCT,
            "cloud.google.com/gke-accelerator",
            "karpenter.k8s.aws/instance-gpu-name",
            "k8s.amazonaws.com/accelerator",
            "gpu.nvidia.com/class",
            "gpu.nvidia.com/model",
            "nebius.com/gpu-name",
            "kubernetes.azure.com/accelerator",
            "accelerator",
            "skypilot.co/accelerator",
        ),
    ),
    Named(TPU, ("cloud.google.com/gke-tpu-accelerator",)),
    Named(AMD, ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name")),
    Named(NEURON, ("karpenter.k8s.aws/instance-accelerator-name",)),
    Named("aws.amazon.com/neurondevice", ("karpenter.k8s.aws/instance-accelerator-name",)),
)
SAYS_NOTHING = frozenset({"nvidia", "amd", "true", "gpu", ""})
"""Values of such labels that name no accelerator (AKS's are the maker)."""
DEVICE_ID = "beta.amd.com/gpu.device-id."
DEVICES = {
    "74a0": "MI300A", "74a1": "MI300X", "74b5": "MI300X", "74a9": "MI300X", "74a5": "MI325X",
    "7408": "MI250X", "740c": "MI250X", "740f": "MI210", "738c": "MI100", "75a0": "MI350X",
    "75a3": "MI355X",
}  # fmt: skip
"""AMD's, by the id in the name of a label."""
FAMILIES = {"trn1": "Trainium1", "trn1n": "Trainium1", "trn2": "Trainium2", "trn2u": "Trainium2",
            "trn3": "Trainium3", "inf1": "Inferentia1", "inf2": "Inferentia2"}  # fmt: skip
"""Neuron's, by the family of the instance type: the label says only `trainium`."""

SPOT = (
    ("cloud.google.com/gke-spot", "true"),
    ("cloud.google.com/gke-preemptible", "true"),
    ("cloud.google.com/gke-provisioning", "spot"),
    ("karpenter.sh/capacity-type", "spot"),
    ("eks.amazonaws.com/capacityType", "SPOT"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
    ("node.kubernetes.io/lifecycle", "spot"),
)
"""A node that has any of these may be taken with little notice."""
STEADY = (
    ("karpenter.sh/capacity-type", "on-demand"),
    ("eks.amazonaws.com/capacityType", "ON_DEMAND"),
    ("cloud.google.com/gke-provisioning", "standard"),
)
"""And one that has any of these is not, by its own word."""


class Whose(NamedTuple):
    kind: str
    provider: str
    """As the catalog calls it."""
    labels: tuple[str, ...]
    """Beginnings of labels that only its nodes have."""
    id: str = ""
    """How a node's providerID begins."""


VENDORS = (
    Whose("gke", "gcp", ("cloud.google.com/gke-nodepool",), "gce://"),
    Whose("eks", "aws", ("eks.amazonaws.com/", "karpenter.k8s.aws/", "k8s.amazonaws.com/"), "aws:"),
    Whose("aks", "azure", ("kubernetes.azure.com/",), "azure://"),
    Whose("coreweave", "coreweave", ("gpu.nvidia.com/class", "node.coreweave.cloud/")),
    Whose("nebius", "nebius", ("nebius.com/",), "nebius://"),
    Whose("oke", "oci", ("oci.oraclecloud.com/",), "ocid1."),
    Whose("iks", "ibm", ("ibm-cloud.kubernetes.io/",), "ibm://"),
    Whose("doks", "digitalocean", ("doks.digitalocean.com/",), "digitalocean://"),
    Whose("lke", "", ("lke.linode.com/",), "linode://"),
)
POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "alpha.eksctl.io/nodegroup-name",
)
"""Labels with the name of a node's pool, by which an autoscaler's groups are known again."""


def vendor(labels: Mapping[str, str], provider_id: str = "") -> Whose | None:
    for each in VENDORS:
        if each.id and provider_id.startswith(each.id):
            return each
    for each in VENDORS:
        if any(name.startswith(each.labels) for name in labels):
            return each
    return None
