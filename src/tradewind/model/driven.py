"""What a run can launch: of whom our provider folders rent, and which chips the images that they
start from can drive. Pure.

Plans ask it before they recommend a machine, and the folders before they launch one. The facts are
in driven.json: `rented` are the providers whose prices are in the catalog and that have a folder
(providers/registry.py); `images` of whom it is known which makers' chips they have drivers for.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

# NVIDIA's open driver begins with Turing (T4), and the usual images have no other.
OLD = frozenset("K520 K80 M40 M60 P4 P40 P100 V100".split())
_OPEN = "NVIDIA"


@cache
def _facts() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
    return found


def rented() -> tuple[str, ...]:
    return tuple(_facts()["rented"])


def is_old(gpu: str) -> bool:
    """By its name in the catalog, or as a provider has it: `V100-16GB`, `nvidia-tesla-p100`."""
    return not OLD.isdisjoint(re.split("[^A-Z0-9]+", gpu.upper()))


def undriven(provider: str, chip: str, vendor: str) -> str:
    """Why none of the provider's usual images computes with it, in words; empty where one does or
    nobody knows."""
    images = _facts()["images"].get(provider)
    if images is None:
        return ""
    if vendor not in images["drives"]:
        return f"the images of runs at {provider} have a driver for NVIDIA's GPUs alone"
    if vendor == _OPEN and is_old(chip):
        return f"the driver in the images of runs at {provider} begins with the T4"
    return ""


def not_ours(provider: str, chip: str, vendor: str) -> str:
    """Why a run cannot launch it; empty where it can."""
    if provider not in rented():
        return f"runs cannot rent at {provider}"
    return undriven(provider, chip, vendor)
