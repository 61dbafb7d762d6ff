"""Gradients that are only partly accumulated: state that a checkpoint between two optimizer steps
must have. They are each rank's own, since ranks add them up only in the last backward pass.

After its step an optimizer has no more use for them. Many scripts clear them only before the next
backward pass; such left-overs are told apart by not having been written to since, and are not kept.
That is noted on the gradient itself: one that replaces it often gets the same memory.

Noting it touches every gradient, in every step. Where they are cleared right after the step, none
are left over, and once that was seen nothing is noted, until a save finds some after all. What was
not noted counts as partly accumulated, which makes a checkpoint larger and never wrong.

What another loss adds to gradients after their optimizer's step is thrown away where they are
cleared first thing the next time: those of a discriminator, to which a generator's backward pass
leads. Saves do not wait for it. It is known by one gradient of each optimizer, which is marked
between two steps: the next step of that optimizer was made with another, or with this one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

_OFTEN = 4
_INDICES, _VALUES = " (indices)", " (values)"
"""Of a sparse one, such as an embedding's."""


class Gradients:
    def __init__(self, names: dict[Any, str], modules: dict[str, Any]) -> None:
        import torch

        self._names, self._modules = names, modules
        self._plain = torch.Tensor
        self._noted: set[Any] = set()
        """Optimizers, since the last look."""
        self._cleared: set[Any] = set()
        """Those whose gradients are gone when their step is over."""
        self._marked: dict[Any, Any] = {}
        """By optimizer the parameter whose gradient was marked after its step."""
        self._clean: Counter[Any] = Counter()
        """How often an optimizer was seen to have none such; after that it is not asked."""
        self._thrown: set[Any] = set()
        """Optimizers whose gradients of after their step are never used."""

    def used(self, optimizer: Any) -> None:
        """It has made a step, of these."""
        if (marked := self._marked.pop(optimizer, None)) is not None:
            if getattr(marked.grad, "_tradewind_left", False):
                self._thrown.discard(optimizer)
            else:
                self._thrown.add(optimizer)
        if optimizer not in self._cleared:
            self._note(optimizer)
            self._noted.add(optimizer)

    def look(self) -> None:
        """Between two steps, where a checkpoint would be taken."""
        if self._noted:
            self._cleared.update(each for each in self._noted if not has_gradients(each))
            for each in self._noted - self._cleared:
                if self._clean[each] < _OFTEN:
                    self._mark(each)
            self._noted.clear()

    def _mark(self, optimizer: Any) -> None:
        params = (p for group in optimizer.param_groups for p in group["params"])
        if (marked := next((p for p in params if _is_partial(p.grad)), None)) is not None:
            marked.grad._tradewind_left = True
            self._marked[optimizer] = marked
        else:
            self._clean[optimizer] += 1

    def _counting(self) -> list[Any]:
        """Parameters whose gradients may be used by a step to come."""
        apart = {
            parameter
            for optimizer, marked in self._marked.items()
            if optimizer in self._thrown and getattr(marked.grad, "_tradewind_left", False)
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        return [parameter for parameter in self._names if parameter not in apart]

    def _note(self, optimizer: Any) -> None:
        """Over all parameters: so nothing is looked up twice, and nothing that a plain tensor does
        not have."""
        plain = self._plain
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter.grad
                if type(grad) is plain:
                    grad._tradewind_used = grad._version
                elif grad is not None:
                    grad._tradewind_used = _version(grad)

    def partial(self) -> dict[str, Any]:
        """By parameter's name; of a DTensor what this rank holds."""
        found = {}
        for parameter, name in self._names.items():
            grad = parameter.grad
            if not _is_partial(grad):
                continue
            if grad.is_sparse:
                found[name + _INDICES] = grad._indices().detach()
                found[name + _VALUES] = grad._values().detach()
            else:
                found[name] = _local(grad.detach())
        if found:
            self._cleared.clear()
        return found

    def any(self) -> bool:
        found = any(_is_partial(parameter.grad) for parameter in self._counting())
        if found:  # by the next save it is known whether they were used
            self._cleared.clear()
            self._clean.clear()
        return found

    def waited_for(self) -> str:
        """The name of one of these; "" where there is none."""
        there = (p for p in self._counting() if _is_partial(p.grad))
        found = next(there, None)
        return self._names[found] if found is not None else ""

    def hidden(self) -> bool:
        """Whether fully_shard keeps some unsharded, between backward passes that do not
        synchronize: those cannot be saved, and a checkpoint has to wait."""
        for module in self._modules.values():
            for each in module.modules():
                state = each._get_fsdp_state() if hasattr(each, "_get_fsdp_state") else None
                for group in _groups(state):
                    for parameter in group.fsdp_params:
                        if getattr(parameter, "unsharded_accumulated_grad", None) is not None:
                            return True
                        unsharded = getattr(parameter, "_unsharded_param", None)
                        if unsharded is not None and unsharded.grad is not None:
                            return True
        return False

    def restore(self, own: dict[str, Any]) -> None:
        import torch

        for parameter, name in self._names.items():
            saved = own.get(f"grad.{name}")
            values = own.get(f"grad.{name}{_VALUES}")
            if saved is None:
                parameter.grad = None
                if values is not None:
                    indices = own[f"grad.{name}{_INDICES}"]
                    parameter.grad = torch.sparse_coo_tensor(
                        indices,
                        values,
                        parameter.shape,
                        device=parameter.device,
                        check_invariants=True,
                    )
                continue
            grad = torch.empty_like(parameter, requires_grad=False)
            _local(grad).copy_(saved)
            parameter.grad = grad


def has_gradients(optimizer: Any) -> bool:
    return any(p.grad is not None for g in optimizer.param_groups for p in g["params"])


def _groups(state: Any) -> list[Any]:
    one = getattr(state, "_fsdp_param_group", None)
    return list(getattr(state, "_fsdp_param_groups", None) or ([one] if one is not None else []))


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _is_partial(grad: Any) -> bool:
    return grad is not None and getattr(grad, "_tradewind_used", None) != _version(grad)


def _version(grad: Any) -> int:
    """Goes up when it is written to."""
    local = getattr(grad, "_local_tensor", None)
    version: int = grad._version if local is None else local._version
    return version
