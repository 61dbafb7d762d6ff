"""What a run can launch: of whom our provider folders rent, and which chips the images that they
start from can drive. Pure.

Plans ask it before they recommend a machine, and the folders before they launch one.
"""

from __future__ import annotations

import re

RENTED = ("aws", "gcp", "lambda")
"""Providers whose prices are in the catalog, and that have a folder (`providers/registry.py`)."""
# NVIDIA's open driver begins with Turing (T4), and the usual images have no other.
OLD = frozenset("K520 K80 M40 M60 P4 P40 P100 V100".split())


def is_old(gpu: str) -> bool:
    """By its name in the catalog, or as a provider has it: `V100-16GB`, `nvidia-tesla-p100`."""
    return not OLD.isdisjoint(re.split("[^A-Z0-9]+", gpu.upper()))


def undriven(provider: str, chip: str, vendor: str) -> str:
    """Why none of the provider's usual images computes with it, in words; empty where one does or
    nobody knows."""
    if provider not in ("aws", "gcp"):
        return ""
    if provider == "gcp" and vendor == "Google":
        return ""  # TPUs have images of their own
    if vendor != "NVIDIA":
        return f"the images of runs at {provider} have a driver for NVIDIA's GPUs alone"
    if is_old(chip):
        return f"the driver in the images of runs at {provider} begins with the T4"
    return ""


def not_ours(provider: str, chip: str, vendor: str) -> str:
    """Why a run cannot launch it; empty where it can."""
    if provider not in RENTED:
        return f"runs cannot rent at {provider}"
    return undriven(provider, chip, vendor)
