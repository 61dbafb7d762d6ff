"""Real training steps on this machine's GPU against their estimates: time and peak memory.

A plain decoder, trained in bf16 by autocast with AdamW on 32-bit weights, is timed over a range of
shapes. Needs torch and a GPU.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from tradewind.bench.decoder import decoder, inner, loss
from tradewind.errors import MissingExtra, NotFound
from tradewind.estimate import columns, hardware
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import GB, memory_use
from tradewind.estimate.time import step_time
from tradewind.model import Accelerator
from tradewind.torch.profiling.profile import profile


@dataclass(frozen=True, slots=True)
class Step:
    layers: int
    d_model: int
    sequence: int
    micro_batch: int
    recompute: bool
    compiled: bool
    vocab: int = 32_000

    @property
    def d_ff(self) -> int:
        return inner(self.d_model)

    def model(self) -> Any:
        return decoder(self.layers, self.d_model, self.vocab, recompute=self.recompute)

    @property
    def heads(self) -> int:
        return self.d_model // 128


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
)


def measure(accelerator: Accelerator, steps: int = 8) -> Iterator[dict[str, Any]]:
    """One entry a shape, as it is measured: milliseconds and gigabytes, and their estimates."""
    torch = _torch()
    for shape in SHAPES:
        try:
            seconds, peak = _run(torch, shape, steps)
        except torch.cuda.OutOfMemoryError:
            continue
        finally:
            gc.collect()  # a model is a ring of references; its memory would count as the next's
            torch.cuda.empty_cache()
        time, memory = estimated(shape, accelerator)
        by_profile = _profiled(torch, shape, accelerator)
        yield {
            "layers": shape.layers,
            "d_model": shape.d_model,
            "sequence": shape.sequence,
            "micro_batch": shape.micro_batch,
            "recompute": shape.recompute,
            "compiled": shape.compiled,
            "measured_ms": round(1e3 * seconds, 2),
            "estimated_ms": round(1e3 * time, 2),
            "time_ratio": round(time / seconds, 3),
            "measured_gb": round(peak / GB, 2),
            "estimated_gb": round(memory / GB, 2),
            "memory_ratio": round(memory / peak, 3),
            "profile_time_ratio": round(by_profile[0] / seconds, 3),
            "profile_memory_ratio": round(by_profile[1] / peak, 3),
        }


def device_name() -> str:
    name: str = _torch().cuda.get_device_name(0)
    return name


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra(
            "timing steps needs torch", hint="pip install 'tradewind[torch]'"
        ) from None
    if not torch.cuda.is_available():
        raise NotFound("there is no GPU that PyTorch can use", hint="run it on a machine with one")
    return torch


def _common(shape: Step, accelerator: Accelerator) -> dict[str, Any]:
    return {
        **hardware.columns(accelerator, "bf16"),
        "micro_batch": shape.micro_batch,
        "recompute": 2 if shape.recompute else 0,
        "network": 50e9,
        "stack": "fsdp-compile" if shape.compiled else "fsdp-eager",
        "fused": float(shape.compiled),
    }


def estimated(shape: Step, accelerator: Accelerator) -> tuple[float, float]:
    """Seconds and bytes by the shape."""
    return _foretold(
        _common(shape, accelerator)
        | {
            "layers": shape.layers,
            "d_model": shape.d_model,
            "n_heads": shape.heads,
            "n_kv_heads": shape.heads,
            "head_dim": 128,
            "d_ff": shape.d_ff,
            "gated": 1,
            "vocab": shape.vocab,
            "sequence": shape.sequence,
        }
    )


def _profiled(torch: Any, shape: Step, accelerator: Accelerator) -> tuple[float, float]:
    """Seconds and bytes by what `tradewind profile` counts of the very module that was timed."""
    whole = replace(shape, recompute=False, compiled=False)

    def factory() -> Any:
        module = whole.model()
        tokens = torch.zeros(1, shape.sequence, dtype=torch.long)

        return module, (tokens,), lambda logits: loss(logits, tokens)

    counted = profile(factory, dtype="bf16", name="decoder")
    work = columns.of_profile(counted, fused=shape.compiled)
    return _foretold({**work, "sequence": 1, **_common(shape, accelerator)})


def _foretold(case: dict[str, Any]) -> tuple[float, float]:
    cases, constants = Cases.of(case), fitted()
    use = memory_use(cases, constants)
    held = use.allocated() + use.context
    return float(step_time(cases, constants).step[0]), float(held[0])


def _run(torch: Any, shape: Step, steps: int) -> tuple[float, float]:
    torch.compiler.reset()
    model = shape.model().cuda()
    if shape.compiled:  # block by block, as is usual: the first one's code serves all others
        for block in model.blocks:
            block.compile()
    loss_of = torch.compile(loss) if shape.compiled else loss
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    size = (shape.micro_batch, shape.sequence)
    tokens = torch.randint(shape.vocab, size, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    taken = []
    for number in range(steps + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        with torch.autocast("cuda", torch.bfloat16):
            made = loss_of(model(tokens), tokens)
        made.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        end.record()
        torch.cuda.synchronize()
        if number >= 3:
            taken.append(start.elapsed_time(end) / 1e3)
    # What the driver takes is no tensor, but it is memory.
    free, total = torch.cuda.mem_get_info()
    reserved = torch.cuda.memory_reserved()
    context = total - free - reserved
    return median(taken), float(torch.cuda.max_memory_allocated() + context)
