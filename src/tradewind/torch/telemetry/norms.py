"""The norm of all gradients, measured before each optimizer step by one kernel for many tensors. It
stays on its device: nothing waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Norms:
    """On every rank: where gradients are sharded, the ranks add theirs up."""

    def __init__(self, optimizers: Iterable[Any]) -> None:
        self._norms: dict[int, Any] = {}
        for optimizer in optimizers:
            optimizer.register_step_pre_hook(self._measure)

    def _measure(self, optimizer: Any, *_: Any) -> None:
        import torch

        gradients = [
            parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        if gradients:
            with torch.no_grad():
                norm = torch.nn.utils.get_total_norm(gradients)
                self._norms[id(optimizer)] = getattr(norm, "full_tensor", lambda: norm)()

    def newest(self) -> dict[str, Any]:
        """Of the last step of each optimizer, together."""
        import torch

        norms = list(self._norms.values())
        if not norms:
            return {}
        return {"grad_norm": norms[0] if len(norms) == 1 else torch.stack(norms).norm()}
