"""Which container image a job runs in: the one that it names, or the cluster's, or one that has
what the accelerator needs. All of ours are public, and have Python."""

from __future__ import annotations

from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.offers import known

PLAIN = "python:3.12"
"""For what brings its own libraries by pip: JAX on TPUs, Neuron."""
_NVIDIA = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
_AMD = "rocm/pytorch:latest"


def chosen(cluster: Cluster, resources: dict[str, str], wanted: str = "") -> str:
    """`resources`: what its pods ask for."""
    if wanted or cluster.image:
        return wanted or cluster.image
    if any(name == known.NVIDIA or name.startswith(known.MIG) for name in resources):
        return _NVIDIA
    return _AMD if known.AMD in resources else PLAIN
