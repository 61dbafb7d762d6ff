"""An optimizer that was made before the model was split or sharded.

Its parameters are not the model's any more then: it would train tensors that nobody uses, and no
error would tell. As long as it has no state it can be given the new ones, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind.base.errors import InvalidValue


def names_of(model: Any) -> dict[int, str]:
    """Before anything is done to the model: what the optimizer's parameters are called in it."""
    found: dict[int, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), name)
    return found


def check(optimizer: Any, before: dict[int, str]) -> None:
    if optimizer is None or not hasattr(optimizer, "param_groups"):
        return
    if any(True for _ in optimizer.state):
        raise InvalidValue(
            "the optimizer has made steps already, with the parameters as they were",
            hint="call prepare before the first step; tw.session brings the state back by itself",
        )
    strange = sum(id(p) not in before for group in optimizer.param_groups for p in group["params"])
    if strange:
        raise InvalidValue(
            f"the optimizer has {strange} parameters that are not the model's",
            hint="make it of the parameters of the model that is given to prepare, after whatever"
            " replaces them (to another device or type, adapters, fully_shard)",
        )


def rebound(optimizer: Any, before: dict[int, str], model: Any, clean: Callable[[str], str]) -> Any:
    """The optimizer, on the model's parameters as they are now. A function of parameters makes
    one."""
    if optimizer is None:
        return None
    if not hasattr(optimizer, "param_groups"):
        if not callable(optimizer):
            raise InvalidValue(
                f"the optimizer is a {type(optimizer).__name__}",
                hint="give a torch optimizer, or a function of parameters that makes one",
            )
        return optimizer([p for p in model.parameters() if p.requires_grad])
    now = {clean(name): p for name, p in model.named_parameters(remove_duplicate=False)}
    for group in optimizer.param_groups:
        wanted = [before[id(parameter)] for parameter in group["params"]]
        # Another stage's are not here; each stage has an optimizer of its own.
        group["params"] = [now[name] for name in wanted if name in now]
    return optimizer
