"""Half the bits where they suffice: autocast, and the scaler that fp16 needs; or throughout."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

PURE = "pure-bf16"  # weights, gradients and optimizer's states as well
AS_THEY_ARE = ("fp32", PURE)  # nothing is cast on its way


def dtype_of(precision: str) -> Any:
    import torch

    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]


def autocast(device: Any, precision: str) -> AbstractContextManager[Any]:
    import torch

    if precision in AS_THEY_ARE:
        return nullcontext()
    found: AbstractContextManager[Any] = torch.autocast(device.type, dtype_of(precision))
    return found


def scaler(device: Any, precision: str, *, alike: bool) -> Any:
    """Small gradients would be zero in fp16, so the loss is scaled; None where that is not needed.
    `alike`: all ranks have the same gradients, as replicas do."""
    import torch

    if precision != "fp16":
        return None
    if alike:
        return torch.amp.GradScaler(device.type)
    made = _together()(device.type)
    made.scale(torch.zeros((), device=device))  # it begins so; and not every stage has a loss
    return made


def _together() -> Any:
    import torch

    class Together(torch.amp.GradScaler):  # type: ignore[misc]
        """Where each rank has other gradients: a step is skipped on all ranks or on none."""

        def _unscale_grads_(
            self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool
        ) -> dict[Any, Any]:
            found = found_inf.clone()
            grads = [
                p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad
                for group in optimizer.param_groups
                for p in group["params"]
                if p.grad is not None
            ]
            with torch.no_grad():
                for grad in grads:
                    torch._amp_foreach_non_finite_check_and_unscale_([grad], found, inv_scale)
            torch.distributed.all_reduce(found, op=torch.distributed.ReduceOp.MAX)
            return {found.device: found}

    return Together
