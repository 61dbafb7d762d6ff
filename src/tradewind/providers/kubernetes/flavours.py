"""How vendors' clusters name accelerators and spot nodes, for manifests that are written for one of
them: which labels a pod asks for, and which taints it bears. Tables, as in offers/known.py.

Sources: NVIDIA GPU feature discovery (`nvidia.com/gpu.product`); GKE "About GPUs", "Spot VMs";
Karpenter "Well-known labels"; AKS "Use GPUs", "Spot node pools".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tradewind.providers.kubernetes.offers import known

_PRODUCTS = {
    "A100-40GB": ("NVIDIA-A100-SXM4-40GB", "A100-SXM4-40GB"),
    "A100-80GB": ("NVIDIA-A100-SXM4-80GB", "A100-SXM4-80GB"),
    "A100-80GB-PCIe": ("NVIDIA-A100-80GB-PCIe",),
    "A10": ("NVIDIA-A10",), "A10G": ("NVIDIA-A10G",), "A30": ("NVIDIA-A30",),
    "A40": ("NVIDIA-A40",), "L4": ("NVIDIA-L4",), "L40": ("NVIDIA-L40",),
    "L40S": ("NVIDIA-L40S",), "T4": ("Tesla-T4",), "V100-16GB": ("Tesla-V100-SXM2-16GB",),
    "V100-32GB": ("Tesla-V100-SXM2-32GB",), "H100-SXM": ("NVIDIA-H100-80GB-HBM3",),
    "H100-PCIe": ("NVIDIA-H100-PCIe",), "H100-NVL": ("NVIDIA-H100-NVL",),
    "H200": ("NVIDIA-H200",), "B200": ("NVIDIA-B200",), "B300": ("NVIDIA-B300-SXM6-AC",),
    "GH200": ("NVIDIA-GH200-480GB",), "RTX3090": ("NVIDIA-GeForce-RTX-3090",),
    "RTX4090": ("NVIDIA-GeForce-RTX-4090",), "RTX5090": ("NVIDIA-GeForce-RTX-5090",),
    "RTX-A5000": ("NVIDIA-RTX-A5000",), "RTX-A6000": ("NVIDIA-RTX-A6000",),
    "RTX-6000-Ada": ("NVIDIA-RTX-6000-Ada-Generation",),
}  # fmt: skip


class Flavour(NamedTuple):
    label: str
    """Of nodes, that names their accelerator."""
    names: Mapping[str, tuple[str, ...]]
    """Its values, by our names."""
    spot: tuple[str, str]
    """A label of spot nodes, and its value."""
    taints: tuple[tuple[str, str], ...] = ()
    """Of spot nodes and of GPU nodes besides `nvidia.com/gpu`: keys and values."""


FLAVOURS = {
    "plain": Flavour(known.PRODUCT, _PRODUCTS, ("node.kubernetes.io/lifecycle", "spot")),
    "gke": Flavour(
        "cloud.google.com/gke-accelerator",
        {
            "A100-40GB": ("nvidia-tesla-a100",), "A100-80GB": ("nvidia-a100-80gb",),
            "L4": ("nvidia-l4",), "T4": ("nvidia-tesla-t4",), "V100-16GB": ("nvidia-tesla-v100",),
            "P100": ("nvidia-tesla-p100",), "P4": ("nvidia-tesla-p4",),
            "H100-SXM": ("nvidia-h100-80gb", "nvidia-h100-mega-80gb"),
            "H200": ("nvidia-h200-141gb",), "B200": ("nvidia-b200",), "GB200": ("nvidia-gb200",),
            "RTX-PRO-6000": ("nvidia-rtx-pro-6000",),
        },
        ("cloud.google.com/gke-spot", "true"),
        (("cloud.google.com/gke-spot", "true"),),
    ),
    "eks": Flavour(
        "karpenter.k8s.aws/instance-gpu-name",
        {
            "A100-40GB": ("a100",), "A100-80GB": ("a100",), "A10G": ("a10g",), "L4": ("l4",),
            "L40S": ("l40s",), "T4": ("t4",), "T4g": ("t4g",), "V100-16GB": ("v100",),
            "V100-32GB": ("v100",), "H100-SXM": ("h100",), "H200": ("h200",), "B200": ("b200",),
        },
        ("karpenter.sh/capacity-type", "spot"),
    ),
    "aks": Flavour(
        known.PRODUCT,
        _PRODUCTS,
        ("kubernetes.azure.com/scalesetpriority", "spot"),
        (("kubernetes.azure.com/scalesetpriority", "spot"), ("sku", "gpu")),
    ),
}  # fmt: skip
RESOURCES = {"NVIDIA": known.NVIDIA, "AMD": known.AMD}
"""By the accelerator's maker, as far as pods may ask for one by it alone."""
