"""Accelerators as the columns that the formulas of serving take.

Those that nobody rents out and that published measurements speak of are in `data/accelerators.csv`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from tradewind.base import csvfile
from tradewind.base.csvfile import number
from tradewind.estimate import hardware
from tradewind.estimate.serving import formats
from tradewind.model import Accelerator

_FILE = Path(__file__).parent / "data" / "accelerators.csv"
# Cards of several dies, each of which is a device of its own to software.
_DIES = {"MI250": 2, "MI250X": 2, "Max-1550": 2}
_NETWORK = 50e9  # bytes/s one way, for each accelerator, beyond the link's domain
# Before these there were no units for bfloat16.
_HALF_ONLY = ("Pascal", "Volta", "Turing", "GCN")
# Names of a family that several memories or boards have, as measurements write them: the usual one.
USUAL = {
    "a100": "A100-80GB", "a100-sxm": "A100-80GB", "h100": "H100-SXM", "v100": "V100-16GB",
    "v100-sxm2": "V100-16GB", "inferentia": "Inferentia1", "trainium": "Trainium1",
    "qualcomm-cloud-ai-100": "Qualcomm-AI100", "qualcomm-ai-100-standard": "Qualcomm-AI100",
}  # fmt: skip


@cache
def extra() -> dict[str, Accelerator]:
    """By name."""
    found = {}
    for _, row in csvfile.rows(_FILE):
        name = row["accelerator"]
        half = number(row, "bf16_tflops")
        rates = {
            "fp8_tflops": number(row, "fp8_tflops"), "int8_tops": number(row, "int8_tops"),
            "fp4_tflops": number(row, "fp4_tflops"),
            "bf16_tflops": None if row["architecture"] in _HALF_ONLY else half,
        }  # fmt: skip
        found[name] = Accelerator(
            name=name, vendor="", architecture=row["architecture"], release_year=2022,
            memory_gb=number(row, "memory_gb") or 16,
            memory_bandwidth_gbps=number(row, "memory_bandwidth_gbps"),
            fp64_tflops=None, fp32_tflops=None, tf32_tflops=None,
            fp16_tflops=half, **rates, link_type="",
            link_gbytes_per_s=number(row, "link_gbytes_per_s"), tdp_watts=None,
            compute_capability="", purchase_price_usd=None, purchase_price_source="",
            source="", evidence=row["evidence"], uncertain=(), note="",
        )  # fmt: skip
    return found


@cache
def _spellings() -> dict[str, str]:
    """Of `extra`, and other names of theirs, without capitals, makers, spaces and dashes."""
    found = {}
    for _, row in csvfile.rows(_FILE):
        for name in (row["accelerator"], *filter(None, (row["also"] or "").split("|"))):
            found[_plain(name)] = row["accelerator"]
    return found


def _plain(name: str) -> str:
    words = re.sub(r"nvidia|geforce|amd|instinct|radeon|intel|tesla", "", name.lower())
    return re.sub(r"[^a-z0-9+]", "", words)


def nearest(name: str) -> Accelerator | None:
    """One of `extra`, however it is written."""
    known = _spellings().get(_plain(name))
    return extra()[known] if known else None


def family(accelerator: Accelerator) -> str:
    """Accelerators that share an architecture, and so efficiencies."""
    known = {
        "Xe": "xe", "RDU": "rdu", "Apple": "apple", "AI100": "qualcomm", "CPU": "cpu",
        "Ascend": "ascend", "speedAI": "speedai", "RecAccel": "recaccel", "RNGD": "rngd",
    }  # fmt: skip
    if accelerator.architecture in known:
        return known[accelerator.architecture]
    if accelerator.name.startswith("Qualcomm"):
        return "qualcomm"
    found = hardware.generation(accelerator)
    return "tpu" if found.startswith("tpu") else found


def columns(
    accelerator: Accelerator, format_name: str, group: float, *, by_layers: bool = False
) -> dict[str, Any]:
    """`by_layers`: the engine has one die at a time at work."""
    dies = _DIES.get(accelerator.name, 1) if by_layers else 1
    both_ways = not accelerator.link_type.startswith("PCIe")
    link = (accelerator.link_gbytes_per_s or 32) / (2 if both_ways else 1) * 1e9
    joined = hardware.domain(accelerator, 8)
    return {
        "peak": formats.peak(accelerator, formats.FORMATS[format_name].rate) / dies,
        "peak16": formats.peak(accelerator, "bf16") / dies,
        "bandwidth": (accelerator.memory_bandwidth_gbps or 300) * 1e9 / dies,
        "link": min(link, _NETWORK) if group > joined else link,
        "memory": hardware.memory_gib(accelerator) * 2.0**30,
        "family": family(accelerator),
        "chip": accelerator.name,
    }
