"""The estimator's formula against a step that is run on fake tensors and counted byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from tradewind.bench.decoder import decoder, inner, loss
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import memory_use
from tradewind.torch.profiling.step import step_bytes

PRECISIONS = {
    "autocast": {"mixed": 1, "weight_bytes": 2, "optimizer_bytes": 12, "value_bytes": 2},
    "pure-bf16": {"mixed": 0, "weight_bytes": 2, "optimizer_bytes": 4, "value_bytes": 2},
    "fp32": {"mixed": 0, "weight_bytes": 4, "optimizer_bytes": 8, "value_bytes": 4},
}
CHIP = {
    "peak": 1e15, "peak16": 1e15, "bandwidth": 1e12, "link": 1e11, "network": 1e10,
    "memory_gb": 80, "generation": "hopper",
}  # fmt: skip


def formula(
    layers: int, width: int, vocab: int, batch: int, sequence: int, mode: str, recompute: bool
) -> float:
    case: dict[str, Any] = {
        "layers": layers, "d_model": width, "n_heads": width // 128, "n_kv_heads": width // 128,
        "head_dim": 128, "d_ff": inner(width), "gated": 1, "vocab": vocab, "sequence": sequence,
        "micro_batch": batch, "recompute": 2 * recompute, "stack": "fsdp-eager", "fused": 0,
    }  # fmt: skip
    return float(memory_use(Cases.of(case | CHIP | PRECISIONS[mode]), fitted()).allocated()[0])


@pytest.mark.parametrize("mode", PRECISIONS)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    ("layers", "width", "vocab", "batch", "sequence"),
    [
        (4, 512, 8_000, 8, 512),  # tokens count
        (3, 2048, 1_000, 1, 64),  # weights count
        (2, 512, 128_000, 2, 1024),  # the vocabulary counts
        (2, 256, 500, 1, 8192),  # one long sequence
    ],
)
def test_the_formula_is_what_a_step_holds(
    layers: int, width: int, vocab: int, batch: int, sequence: int, mode: str, recompute: bool
) -> None:
    counted = step_bytes(
        lambda: decoder(layers, width, vocab, recompute=recompute),
        loss,
        batch=batch,
        sequence=sequence,
        mode=mode,
    )
    told = formula(layers, width, vocab, batch, sequence, mode, recompute)
    # Autocast is told between one matrix for q, k and v, as here, and three.
    assert told == pytest.approx(counted, rel=0.05)


def test_what_was_replaced_is_put_back() -> None:
    import torch

    before = torch.nn.functional.rms_norm
    step_bytes(lambda: decoder(1, 128, 100), loss, batch=1, sequence=8)
    assert torch.nn.functional.rms_norm is before
