"""Which GPUs the usual images drive. Pure."""

from __future__ import annotations

import re

# NVIDIA's open driver begins with Turing (T4), and the usual images have no other.
OLD = frozenset("K520 K80 M40 M60 P4 P40 P100 V100".split())


def is_old(gpu: str) -> bool:
    """By its name in the catalog, or as a provider has it: `V100-16GB`, `nvidia-tesla-p100`."""
    return not OLD.isdisjoint(re.split("[^A-Z0-9]+", gpu.upper()))
