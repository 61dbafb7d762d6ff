"""An accelerator's facts as the columns that the formulas take. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.model import Accelerator

# Devices that one fast link joins, where that is not a node of eight.
_RACK = {"GB200": 72, "GB300": 72}
_TPU_SLICE = {"v2": 512, "v3": 2048, "v4": 4096, "v5e": 256, "v5p": 8960, "v6e": 256, "v7x": 9216}

# Of the chips that stand for a generation, where power and not silicon is what bounds matrix work.
_WATTS_PER_TFLOPS = {"hopper": 0.708, "blackwell": 0.48}
PURE = "pure-bf16"  # weights, gradients and the optimizer's states too, and no 32-bit copy
_GIB, _GB = 2.0**30, 1e9
# Boards whose GDDR memory holds its own check bits: their drivers report 15 of 16 GiB.
_CHECKED = frozenset("A2 A10 A10G A16 A40 L4 L40 L40S T4".split())
_UNOFFERED = 16  # the most in one machine of a chip that nobody rents out
_BLOCK_SCALES = re.compile("Blackwell|CDNA4|NeuronCore-v4")
# PyTorch has no build for what AMD made before CDNA and RDNA2.
_NOT_FOR_TRAINING = re.compile("Inferentia|Qualcomm|FPGA|MI25$|Radeon-Pro-V520")


def generation(accelerator: Accelerator) -> str:
    """The family whose efficiency it shares; the nearest kin where it has none of its own."""
    return _generation(accelerator.name, accelerator.architecture, accelerator.release_year)


@cache
def _generation(chip: str, architecture: str, year: int) -> str:
    name = architecture.lower()
    if name.startswith("tpu"):
        return chip.lower()
    for known in ("pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"):
        if known in name:
            return known
    for word, known in {
        "cdna": "cdna",
        "rdna": "rdna",
        "gcn": "rdna",
        "neuron": "neuron",
        "gaudi": "gaudi",
    }.items():
        if word in name:
            return known
    return "pascal" if year < 2017 else "ampere"


def power(accelerator: Accelerator) -> float:
    """Watts for its 16-bit peak, against the chip that stands for its generation."""
    half = accelerator.bf16_tflops or accelerator.fp16_tflops
    usual = _WATTS_PER_TFLOPS.get(generation(accelerator))
    if not (half and usual and accelerator.tdp_watts):
        return 1.0
    # Beyond the usual little is gained: the clock has its own limit.
    return min(max(accelerator.tdp_watts / half / usual, 0.6), 1.25)


def columns(accelerator: Accelerator, precision: str) -> dict[str, Any]:
    """peak, peak16, bandwidth, power, link, memory_gb, domain, generation, chip and fp8."""
    eight = "fp8" in precision
    half = accelerator.bf16_tflops or accelerator.fp16_tflops or accelerator.fp32_tflops or 1.0
    if precision == "fp32":
        half = accelerator.tf32_tflops or accelerator.fp32_tflops or half
    peak = (accelerator.fp8_tflops or half) if eight else half
    both_ways = not accelerator.link_type.startswith("PCIe")
    link = (accelerator.link_gbytes_per_s or 32) / (2 if both_ways else 1)
    return {
        "peak": peak * 1e12,
        "peak16": half * 1e12,
        "bandwidth": (accelerator.memory_bandwidth_gbps or 300) * 1e9,
        "power": power(accelerator),
        "link": link * 1e9,
        "memory_gb": memory_gib(accelerator),
        "domain": _joined(accelerator) or 8,
        "generation": generation(accelerator),
        "chip": accelerator.name,
        "fp8": (2 if precision == "mxfp8" else 1) if eight else 0,
    }


def capacity_gb(accelerator: Accelerator) -> float:
    """In 10**9 bytes: what its maker calls 80 GB are 80 GiB, and 85.9."""
    return memory_gib(accelerator) * _GIB / _GB


def memory_gib(accelerator: Accelerator) -> float:
    """What its driver reports, rounded."""
    return accelerator.memory_gb * (15 / 16 if accelerator.name in _CHECKED else 1)


def domain(accelerator: Accelerator, per_node: int) -> int:
    """Devices that the fast link joins: those of a node, of a rack, or of a TPU slice."""
    return _joined(accelerator) or per_node


def _joined(accelerator: Accelerator) -> int:
    """Of a rack or a TPU slice; 0 where the link ends with the machine."""
    return _RACK.get(accelerator.name) or _slice(accelerator)


def _slice(accelerator: Accelerator) -> int:
    return _TPU_SLICE.get(accelerator.name.lower().removeprefix("tpu-"), 0)


def precisions(accelerator: Accelerator) -> list[str]:
    """Those it can train in, the usual first."""
    found = []
    for name in ("bf16", "fp16", "fp8"):
        if accelerator.peak(name):
            found.append(name)
    if accelerator.fp8_tflops and _BLOCK_SCALES.search(accelerator.architecture):
        found.append("mxfp8")
    if accelerator.fp32_tflops or accelerator.tf32_tflops:
        found.append("fp32")
    if "bf16" in found:
        found.append(PURE)
    return found


def best_precision(accelerator: Accelerator) -> str:
    return next(iter(precisions(accelerator)), "bf16")


def check_precision(accelerator: Accelerator, precision: str) -> None:
    legal = precisions(accelerator)
    if not legal or _NOT_FOR_TRAINING.match(accelerator.name):
        raise InvalidValue(
            f"{accelerator.name} is not for training", hint="`tradewind accelerators` lists others"
        )
    if precision not in legal:
        raise InvalidValue(
            f"{accelerator.name} has no {precision}", hint=f"precision may be {', '.join(legal)}"
        )


def check_count(accelerator: Accelerator, count: float, offered: float | None) -> int:
    """How many are in one machine, `offered` being the most that anybody rents in one."""
    if count != int(count) or count < 1:
        raise InvalidValue(
            f"{count:g} of {accelerator.name}: training needs whole accelerators",
            hint=f"for example {max(1, round(count))}x{accelerator.name}",
        )
    most = int(max(_slice(accelerator), offered or _UNOFFERED))
    if count > most:
        raise InvalidValue(
            f"no machine has {count:,.0f} of {accelerator.name}: the largest has {most:,}",
            hint=f"--on {most}x{accelerator.name} --nodes {-(-int(count) // most)}",
        )
    return int(count)
