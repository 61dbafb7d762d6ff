"""A step of PyTorch itself: against what a GPU measured, and what must hold whatever the shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.estimate.test_time_and_memory import LLAMA, K
from tradewind.base import csvfile
from tradewind.bench.gpu_shapes import Step
from tradewind.bench.measured import finders
from tradewind.estimate.cases import Cases
from tradewind.estimate.measurements import case_of
from tradewind.estimate.memory import GIB, MemoryUse, memory_use

CONTEXT_GIB = 0.82  # of the driver, which the peaks of that file include
MEASURED = Path(__file__).parents[2] / "measurements" / "h200-torch-2.11.csv"
EAGER = LLAMA | {"stack": "fsdp-eager", "fused": 0, "accumulation": 1}
COMPILED = LLAMA | {"stack": "fsdp-compile", "fused": 1, "accumulation": 1}
PURE = {"mixed": 0, "optimizer_bytes": 4}
WEIGHTS = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 2 * 128_256 * 4096


def use(model: dict[str, Any], **changed: Any) -> MemoryUse:
    return memory_use(Cases.of(model | changed), K)


def allocated(model: dict[str, Any], **changed: Any) -> float:
    return float(use(model, **changed).allocated()[0])


def test_steps_that_an_h200_measured() -> None:
    """Peaks of 34 steps, eager and compiled, with and without recompute, by autocast, in pure bf16
    and with LoRA: none was fitted to."""
    off = []
    for _, row in csvfile.rows(MEASURED):
        if not row["peak_mem_gb"]:
            continue
        case = case_of(row, *finders()) | {"fused": float(row["compile"] == "1")}
        if rank := int(row["lora_rank"] or 0):
            layers, width = int(row["layers"]), int(row["d_model"])
            case["trained"] = Step(layers, width, 1, 1, False, False, lora=rank).trained_share
        measured = (float(row["peak_mem_gb"]) - CONTEXT_GIB) * GIB
        if row["allocated_gb"]:
            measured = float(row["allocated_gb"]) * 1e9
        off.append(allocated(case) / measured - 1)
    assert len(off) == 34
    assert np.median(np.abs(off)) < 0.01
    assert np.abs(off).max() < 0.04


@pytest.mark.parametrize(
    ("changed", "bytes_a_weight"),
    [
        ({}, 16),  # 4 of the weight, 4 of its gradient, 8 of Adam's moments
        (PURE, 8),
        ({"weight_bytes": 4, "optimizer_bytes": 8, "value_bytes": 4, "mixed": 0}, 16),
        ({"optimizer_bytes": 4}, 8),  # plain SGD
    ],
)
def test_bytes_of_a_weight_by_precision(changed: dict[str, Any], bytes_a_weight: float) -> None:
    """With next to no tokens only the state counts."""
    found = allocated(EAGER, sequence=1, recompute=2, **changed)
    assert found / WEIGHTS == pytest.approx(bytes_a_weight, rel=0.01)


def test_an_8b_model_in_pure_bf16_fits_where_mixed_precision_does_not() -> None:
    """The state of 8 billion weights is 64 GB, not 128."""
    mixed, pure = (allocated(EAGER, sequence=4096, **how) / 1e9 for how in ({}, PURE))
    assert mixed > 128
    assert 70 < pure < 85


@pytest.mark.parametrize("model", [EAGER, COMPILED])
@pytest.mark.parametrize("zero", [1, 2, 3])
def test_sharding_over_one_device_changes_nothing(model: dict[str, Any], zero: int) -> None:
    assert allocated(model, zero=zero, shard=1) == allocated(model)


def test_gradients_lie_ready_only_from_the_second_micro_batch_on() -> None:
    once, often = (use(EAGER, accumulation=n) for n in (1, 2))
    assert once.gradients[0] == 0  # it is fullest at the loss
    assert often.gradients[0] == pytest.approx(4 * WEIGHTS, rel=0.01)


def test_gradients_of_compiled_layers_are_there_twice_under_autocast() -> None:
    short = {"sequence": 1, "recompute": 2}
    more = allocated(COMPILED, **short) - allocated(EAGER, **short)
    layers = WEIGHTS - 2 * 128_256 * 4096
    assert more == pytest.approx(4 * layers, rel=0.02)
    # Not where they are reduced to shards.
    shards = {"dp": 8, "zero": 3, "shard": 8, **short}
    assert allocated(COMPILED, **shards) <= allocated(EAGER, **shards)
    # And not where they need no cast.
    assert allocated(COMPILED, **short, **PURE) <= allocated(EAGER, **short, **PURE)


def test_both_kinds_of_software_at_once_are_as_each_alone() -> None:
    stacks = ["fsdp-eager", "megatron", "nanotron", "fsdp-compile"]
    both = use(LLAMA, stack=stacks).peak
    assert both.tolist() == [float(use(LLAMA, stack=one).peak[0]) for one in stacks]
