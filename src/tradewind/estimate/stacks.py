"""The software a model is trained with, by any usual name: ours, or the nearest kin."""

from __future__ import annotations

import re
from functools import cache

from tradewind.base.errors import InvalidValue
from tradewind.estimate.cases import STACKS
from tradewind.estimate.hardware import generation
from tradewind.estimate.measurements import KIN, stack_of
from tradewind.model import Accelerator

# Other names of what was measured.
_SAME = ("nemo", "mcore", "megatron", "nanotron", "maxtext", "pax", "compile", "eager", "fsdp")
_XLA_ONLY = ("tpu", "neuron")


def usual(accelerator: Accelerator) -> str:
    """What is most used on it."""
    return "xla-tpu" if generation(accelerator).startswith(_XLA_ONLY) else "fsdp-compile"


def taken_as(name: str, accelerator: Accelerator) -> str:
    """One of STACKS. InvalidValue where nothing resembles the name, or the chip cannot run it."""
    return _taken_as(name, accelerator.name, generation(accelerator).startswith(_XLA_ONLY))


@cache
def _taken_as(name: str, chip: str, xla_only: bool) -> str:
    plain = name.strip().lower()
    if plain not in STACKS and not any(word in plain for word in KIN):
        raise InvalidValue(
            f"no software stack is called {name[:40]!r}",
            hint=f"one of {', '.join(STACKS)}, or a name with one of: {', '.join(KIN)}",
        )
    ours = stack_of(plain)
    if xla_only and not ours.startswith("xla"):
        raise InvalidValue(
            f"{chip} does not run {name}: it trains through XLA",
            hint="--stack xla-tpu, or leave it out",
        )
    if ours.startswith("xla"):
        return "xla-tpu" if xla_only else "xla-gpu"
    return ours


def is_measured(name: str) -> bool:
    """Whether it is among the measured ones, rather than taken as the nearest of them."""
    plain = name.strip().lower()
    return plain in STACKS or next(word for word in KIN if word in plain) in _SAME


def fused(name: str) -> bool:
    """Whether its kernels are fused, as against those of eager PyTorch."""
    return not re.search("eager|nanotron", name)
