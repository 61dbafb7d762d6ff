"""The memory of a whole training step, counted on fake tensors: what an allocator would report.

Every tensor's memory counts from the operator that makes it until its last reference goes. On an
H200, eager steps come out within a thousandth of `torch.cuda.max_memory_allocated`, so this is what
the estimator's formulas are tested against (`estimate/native.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from tradewind.torch.profiling.faked import dispatching, faked
from tradewind.torch.profiling.meter import Meter
from tradewind.torch.profiling.profile import require_torch

MODES = ("autocast", "pure-bf16", "fp32")


def step_bytes(
    make: Callable[[], Any],
    loss: Callable[[Any, Any], Any],
    *,
    batch: int,
    sequence: int,
    mode: str = "autocast",
    optimizer_states: int = 2,
) -> int:
    """The most that is alive in a step of the model that `make()` returns, trained eagerly on
    `batch` sequences of tokens. The optimizer's states are as wide as the weights, and its step is
    one kernel."""
    torch = require_torch()
    assert mode in MODES, mode
    with faked(torch), ExitStack() as stack:
        with dispatching(torch, None, building=True):
            model = make().train()
            if mode == "pure-bf16":
                model = model.to(torch.bfloat16)
        meter = Meter(torch)
        for weight in model.parameters():
            meter.lives(weight)
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        states = [torch.empty_like(weight) for weight in trained for _ in range(optimizer_states)]
        tokens = torch.zeros(batch, sequence, dtype=torch.long)
        for tensor in (*model.buffers(), *states, tokens):
            meter.lives(tensor)
        stack.enter_context(_cast_as_cuda(torch))
        stack.enter_context(dispatching(torch, meter.ran))
        half = torch.autocast("cpu", torch.bfloat16) if mode == "autocast" else nullcontext()
        with half:
            made = loss(model(tokens), tokens)
        torch.autograd.backward((made,))
        return meter.peak


@contextmanager
def _cast_as_cuda(torch: Any) -> Iterator[None]:
    """Functions that CUDA's autocast runs in 32 bits and a CPU's does not. They are replaced, since
    layers that are computed again run where no mode for functions is in force."""
    functional = torch.nn.functional
    before = {name: getattr(functional, name) for name in ("layer_norm", "softmax", "rms_norm")}

    def wide(tensor: Any) -> Any:
        cast = isinstance(tensor, torch.Tensor) and torch.is_autocast_enabled("cpu")
        return tensor.float() if cast else tensor

    def rms_norm(x: Any, shape: Any, weight: Any = None, eps: float | None = None) -> Any:
        # A CPU has no kernel for it; that of a layer norm keeps the same.
        return torch.native_layer_norm(wide(x), shape, wide(weight), None, eps or 1e-6)[0]

    def layer_norm(
        x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
    ) -> Any:
        return before["layer_norm"](wide(x), shape, wide(weight), wide(bias), eps)

    def softmax(x: Any, *args: Any, **kwargs: Any) -> Any:
        return before["softmax"](wide(x), *args, **kwargs)

    functional.rms_norm, functional.layer_norm, functional.softmax = rms_norm, layer_norm, softmax
    try:
        yield
    finally:
        for name, original in before.items():
            setattr(functional, name, original)
