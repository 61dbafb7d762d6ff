"""Real training steps on this machine's GPU against their estimates: time and peak memory.

A plain decoder, trained with fused AdamW, is timed over a range of shapes (`gpu_shapes.py`). Needs
torch and a GPU; a trial with tiny shapes runs on a CPU too, and then there is no peak.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import MissingExtra, NotFound
from tradewind.bench.decoder import adapt, decoder, loss
from tradewind.bench.gpu_shapes import SHAPES, Step, case_of, running
from tradewind.estimate import columns, hardware
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import fitted
from tradewind.estimate.memory import GB, memory_use
from tradewind.estimate.time import step_time
from tradewind.model import Accelerator
from tradewind.torch.profiling.profile import profile

_WARM_UP = 3  # steps that are not timed


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one step; bytes are None where no GPU counts them."""

    step: Step
    seconds: float  # the median of so many that were timed
    timed: int
    allocated: int | None  # torch.cuda.max_memory_allocated
    reserved: int | None  # torch.cuda.max_memory_reserved
    context: int | None  # what the driver and its libraries take beside

    @property
    def tokens_per_s(self) -> float:
        return self.step.micro_batch * self.step.sequence / self.seconds


def measure(shapes: Sequence[Step] = SHAPES, steps: int = 8) -> Iterator[Measured]:
    """One entry a shape, as it is measured. What does not fit is left out."""
    torch, device = torch_or_hint(), where()
    for shape in shapes:
        try:
            yield _run(torch, shape, steps, device)
        except torch.OutOfMemoryError:
            continue
        finally:
            gc.collect()  # a model is a ring of references; its memory would count as the next's
            if device == "cuda":
                torch.cuda.empty_cache()


def compared(found: Measured, accelerator: Accelerator) -> dict[str, Any]:
    """A measurement beside its estimates: milliseconds, and GB of 10**9 bytes."""
    shape, seconds = found.step, found.seconds
    time, memory = estimated(shape, accelerator)
    row = {
        **asdict(shape),
        "measured_ms": round(1e3 * seconds, 2),
        "estimated_ms": round(1e3 * time, 2),
        "time_ratio": round(time / seconds, 3),
    }
    if found.allocated:
        row |= {
            "measured_gb": round(found.allocated / GB, 2),
            "estimated_gb": round(memory / GB, 2),
            "memory_ratio": round(memory / found.allocated, 3),
        }
        if not (shape.lora or shape.experts):
            by_profile = _profiled(torch_or_hint(), shape, accelerator)
            row["profile_time_ratio"] = round(by_profile[0] / seconds, 3)
            row["profile_memory_ratio"] = round(by_profile[1] / found.allocated, 3)
    return row


def where() -> str:
    return "cuda" if torch_or_hint().cuda.is_available() else "cpu"


def device_name() -> str:
    """As its driver calls it."""
    torch = torch_or_hint()
    if not torch.cuda.is_available():
        raise NotFound(
            "there is no GPU that PyTorch can use",
            hint="run it on a machine with one; --tiny tries the command on the CPU",
        )
    name: str = torch.cuda.get_device_name(0)
    return name


def torch_or_hint() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra(
            "timing steps needs torch", hint="pip install 'tradewind[torch]'"
        ) from None
    return torch


def estimated(shape: Step, accelerator: Accelerator) -> tuple[float, float]:
    """Seconds and bytes by the shape."""
    return _foretold(case_of(shape, accelerator))


def _profiled(torch: Any, shape: Step, accelerator: Accelerator) -> tuple[float, float]:
    """Seconds and bytes by what `tradewind profile` counts of the very module that was timed."""
    whole = replace(shape, recompute=False, compiled=False)

    def factory() -> Any:
        module = _model(whole)
        tokens = torch.zeros(1, shape.sequence, dtype=torch.long)

        def loss_of(logits: Any) -> Any:  # at whichever batch it is profiled
            return loss(logits, logits.new_zeros(logits.shape[:2], dtype=torch.long))

        return module, (tokens,), loss_of

    counted = profile(factory, dtype="bf16", name="decoder")
    work = columns.of_profile(counted, fused=shape.compiled)
    mixed = {"mixed": float(shape.precision != hardware.PURE)}
    if not mixed["mixed"]:
        mixed["optimizer_bytes"] = 4.0
    return _foretold({**work, "sequence": 1, **running(shape, accelerator), **mixed})


def _foretold(case: dict[str, Any]) -> tuple[float, float]:
    cases, constants = Cases.of(case), fitted()
    held = memory_use(cases, constants).allocated()
    return float(step_time(cases, constants).step[0]), float(held[0])


def _model(shape: Step) -> Any:
    return decoder(
        shape.layers, shape.d_model, shape.vocab, recompute=shape.recompute, experts=shape.experts
    )


def _run(torch: Any, shape: Step, steps: int, device: str) -> Measured:
    torch.compiler.reset()
    model = _model(shape)
    pure = shape.precision == hardware.PURE
    if pure:
        model.to(torch.bfloat16)
    if shape.lora:
        adapt(model, shape.lora)
    model.to(device)
    if shape.compiled:  # block by block, as is usual: the first one's code serves all others
        for block in model.blocks:
            block.compile()
    loss_of = torch.compile(loss) if shape.compiled else loss
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, fused=True)
    tokens = torch.randint(shape.vocab, (shape.micro_batch, shape.sequence), device=device)
    on_gpu = device == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    taken = []
    for number in range(steps + _WARM_UP):
        before = clock.stopwatch()
        with nullcontext() if pure else torch.autocast(device, torch.bfloat16):
            made = loss_of(model(tokens), tokens)
        made.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if on_gpu:
            torch.cuda.synchronize()
        if number >= _WARM_UP:
            taken.append(clock.stopwatch() - before)
    if not on_gpu:
        return Measured(shape, median(taken), steps, None, None, None)
    cuda = torch.cuda
    free, total = cuda.mem_get_info()
    return Measured(
        shape,
        median(taken),
        steps,
        allocated=cuda.max_memory_allocated(),
        reserved=cuda.max_memory_reserved(),
        context=total - free - cuda.memory_reserved(),
    )
