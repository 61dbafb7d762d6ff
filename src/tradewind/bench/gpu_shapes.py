"""The training steps that `bench gpu-steps` runs: what is trained, and how. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tradewind.bench.decoder import VISITED, inner
from tradewind.estimate import hardware
from tradewind.estimate.optimizers import state_bytes
from tradewind.model import Accelerator


@dataclass(frozen=True, slots=True)
class Step:
    layers: int
    d_model: int
    sequence: int
    micro_batch: int
    recompute: bool
    compiled: bool
    vocab: int = 32_000
    precision: str = "bf16"  # by autocast over 32-bit weights, or pure-bf16
    lora: int = 0  # rank of adapters on frozen weights of 16 bits
    experts: int = 0

    @property
    def d_ff(self) -> int:
        return inner(self.d_model)

    @property
    def heads(self) -> int:
        return max(self.d_model // 128, 1)

    @property
    def head_dim(self) -> int:
        return min(128, self.d_model)

    @property
    def stack(self) -> str:
        return "fsdp-compile" if self.compiled else "fsdp-eager"

    @property
    def name(self) -> str:
        experts = f"-{self.experts}e" if self.experts else ""
        return f"plain-{self.layers}x{self.d_model}{experts}"

    @property
    def trained_share(self) -> float:
        """Of the weights: all, or the adapters'."""
        if not self.lora:
            return 1.0
        d, wide, parts = self.d_model, self.d_ff, max(self.experts, 1)
        sides = (d + 3 * d) + 2 * d + parts * 3 * (d + wide) + (d + self.experts) * bool(parts > 1)
        weights = 4 * d * d + parts * 3 * d * wide
        return self.lora * self.layers * sides / (self.layers * weights + 2 * self.vocab * d)


SHAPES = (
    Step(16, 2048, 2048, 16, recompute=False, compiled=True),
    Step(8, 4096, 4096, 4, recompute=False, compiled=True),
    Step(8, 4096, 4096, 4, recompute=True, compiled=True),
    Step(4, 8192, 4096, 2, recompute=False, compiled=True),
    *(
        Step(layers, width, sequence, micro, recompute, compiled=False)
        for layers, width, sequence, micro in (
            (12, 1024, 1024, 8),
            (12, 1024, 1024, 32),
            (16, 2048, 2048, 4),
            (16, 2048, 2048, 16),
            (16, 2048, 8192, 2),
            (8, 4096, 2048, 4),
            (8, 4096, 4096, 4),
            (8, 4096, 16_384, 1),
            (4, 8192, 2048, 4),
            (4, 8192, 4096, 2),
        )
        for recompute in (False, True)
    ),
    # Whether gradients of compiled layers are there twice in 16 bits too, and with short sequences.
    Step(16, 2048, 2048, 4, recompute=True, compiled=True),
    Step(4, 8192, 512, 1, recompute=False, compiled=True),
    *(
        Step(layers, width, sequence, micro, recompute, compiled, precision=hardware.PURE)
        for layers, width, sequence, micro, recompute, compiled in (
            (16, 2048, 2048, 8, False, False),
            (32, 4096, 4096, 1, False, False),
            (32, 4096, 4096, 4, True, False),
            (32, 4096, 4096, 1, False, True),
            (32, 4096, 4096, 4, True, True),
        )
    ),
    # Large vocabularies of small models, and long sequences.
    Step(12, 1024, 1024, 16, recompute=False, compiled=False, vocab=128_256),
    Step(12, 1024, 1024, 16, recompute=False, compiled=True, vocab=128_256),
    Step(16, 2048, 32_768, 1, recompute=True, compiled=False),
    Step(16, 2048, 65_536, 1, recompute=True, compiled=True),
    # Adapters, and experts on one device.
    *(
        Step(32, 4096, 2048, 2, recompute, compiled, lora=16)
        for recompute, compiled in ((False, False), (True, False), (False, True))
    ),
    Step(8, 2048, 2048, 4, recompute=False, compiled=False, experts=8),
    Step(8, 2048, 2048, 4, recompute=True, compiled=False, experts=8),
    Step(4, 2048, 2048, 4, recompute=False, compiled=False, experts=32),
)
# For a trial, and for tests: a second on a CPU, one of each kind.
TINY = tuple(
    Step(2, 128, 32, 2, recompute, False, vocab=256, precision=precision, lora=lora, experts=n)
    for recompute, precision, lora, n in (
        (False, "bf16", 0, 0),
        (True, "bf16", 0, 0),
        (False, hardware.PURE, 0, 0),
        (False, "bf16", 4, 0),
        (False, "bf16", 0, 4),
    )
)


def case_of(step: Step, accelerator: Accelerator) -> dict[str, Any]:
    """The step as the columns that the estimator's formulas take."""
    pure = step.precision == hardware.PURE
    feed: dict[str, Any] = {"d_ff": step.d_ff}
    if step.experts:
        feed = {
            "d_ff": 0,
            "d_ff_expert": step.d_ff,
            "experts": step.experts,
            "experts_per_token": min(VISITED, step.experts),
        }
    return {
        **running(step, accelerator),
        **feed,
        "layers": step.layers,
        "d_model": step.d_model,
        "n_heads": step.heads,
        "n_kv_heads": step.heads,
        "head_dim": step.head_dim,
        "gated": 1,
        "vocab": step.vocab,
        "sequence": step.sequence,
        "trained": step.trained_share,
        "optimizer_bytes": state_bytes("adamw", weight_bytes=2, pure=pure),
        "mixed": float(not pure),
    }


def running(step: Step, accelerator: Accelerator) -> dict[str, Any]:
    """What of it is not the model."""
    return {
        **hardware.columns(accelerator, step.precision),
        "micro_batch": step.micro_batch,
        "recompute": 2 if step.recompute else 0,
        "network": 50e9,
        "stack": step.stack,
        "fused": float(step.compiled),
    }
