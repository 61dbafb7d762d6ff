"""Formats of weights and caches: bytes a value, and the rate of products in them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from tradewind.base.errors import InvalidValue
from tradewind.model import Accelerator


class Format(NamedTuple):
    bytes: float  # of a weight, with its scales
    rate: str  # whose peak the matrix products run at
    group: str  # of formats that kernels treat alike


FORMATS: dict[str, Format] = {
    "fp32": Format(4.0, "tf32", "16"),
    "bf16": Format(2.0, "bf16", "16"),
    "fp16": Format(2.0, "fp16", "16"),
    "fp8": Format(1.0, "fp8", "8"),
    "int8": Format(1.0, "int8", "8"),
    "q8_0": Format(1.0625, "fp16", "weight8"),
    "fp4": Format(0.5625, "fp4", "4"),  # blocks of 16 with a scale of 8 bits
    "mxfp4": Format(0.53125, "fp4", "4"),
    "int4": Format(0.53, "fp16", "weight4"),
    "awq": Format(0.53, "fp16", "weight4"),
    "gptq": Format(0.53, "fp16", "weight4"),
    "q4_0": Format(0.5625, "fp16", "weight4"),
    "q4_k_m": Format(0.606, "fp16", "weight4"),
    "q5_k_m": Format(0.71, "fp16", "weight4"),
    "q6_k": Format(0.82, "fp16", "weight4"),
}
_SPELLINGS = {
    "nvfp4": "fp4", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float8": "fp8",
    "fp8_e4m3": "fp8", "w8a8": "int8", "w4a16": "int4", "int4-awq": "awq", "int4_awq": "awq",
    "w4a8": "int4", "gguf": "q4_k_m", "float32": "fp32", "nf4": "int4",
    "fp8-block": "fp8", "fp8_block": "fp8", "w8a16": "q8_0", "q4_k_s": "q4_k_m", "q4": "q4_0",
    "q8": "q8_0", "fp4/fp8": "fp4", "mxfp8": "fp8", "fp8-dynamic": "fp8", "fp8_dynamic": "fp8",
    "fp8_e5m2": "fp8", "smoothquant": "int8", "int8-sq": "int8", "w8a8-int8": "int8",
    "llm.int8": "q8_0", "bnb-int8": "q8_0", "int8-weight-only": "q8_0", "bnb-nf4": "int4",
    "bnb-int4": "int4", "bnb": "int4", "int4-gptq": "gptq", "gptq-int4": "gptq",
    "awq-int4": "awq", "awq_int4": "awq", "awq-marlin": "awq", "gptq-marlin": "gptq",
    "q4f16_1": "int4", "q4f16": "int4", "exl2": "int4", "hqq": "int4", "4bit": "int4",
    "4-bit": "int4", "8bit": "q8_0", "8-bit": "q8_0", "16bit": "fp16", "w4a4": "fp4",
    "nvfp4/fp8": "fp4", "mxfp4/bf16": "mxfp4", "q5_0": "q5_k_m", "q5_1": "q5_k_m",
    "q5_k_s": "q5_k_m", "q5_k": "q5_k_m", "q4_1": "q4_k_m", "q4_k": "q4_k_m", "q6": "q6_k",
    "w16a16": "bf16", "bf16/fp16": "bf16", "tf32": "fp32",
}  # fmt: skip
CACHE_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5625}
# Rates to fall back on: weights of few bits are unpacked and multiplied in more.
_FALLBACK = {"fp4": ("fp4", "fp8", "bf16", "fp16"), "fp8": ("fp8", "bf16", "fp16"),
             "int8": ("int8", "bf16", "fp16"), "tf32": ("tf32", "fp32"),
             "bf16": ("bf16", "fp16", "fp32"), "fp16": ("fp16", "bf16", "fp32")}  # fmt: skip


def named(text: str) -> str:
    """Our name of a format. InvalidValue, with all of them, for one that we do not know."""
    plain = text.strip().lower()
    plain = _SPELLINGS.get(plain, plain)
    if plain not in FORMATS:
        raise InvalidValue(
            f"{text!r} is not a format of weights", hint=f"one of {', '.join(FORMATS)}"
        )
    return plain


def peak(accelerator: Accelerator, rate: str) -> float:
    """FLOP/s of dense products, in the nearest wider format where it has none of that rate."""
    for name in _FALLBACK[rate]:
        found = accelerator.peak(name)
        if found:
            return found * 1e12
    return 1e12


def native(accelerator: Accelerator, name: str) -> bool:
    """Whether products are done in the format itself, or at least none is missing for it."""
    return bool(accelerator.peak(FORMATS[name].rate)) or FORMATS[name].rate in (
        "fp16",
        "bf16",
        "tf32",
    )


def check(accelerator: Accelerator, name: str) -> None:
    """Formats of 8 and 4 bits need units for them; weights alone can be packed on anything."""
    if not native(accelerator, name):
        legal = [other for other in FORMATS if native(accelerator, other)]
        raise InvalidValue(
            f"{accelerator.name} has no {FORMATS[name].rate} units, which {name} needs",
            hint=f"on it weights may be {', '.join(legal)}",
        )
