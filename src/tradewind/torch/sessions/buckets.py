"""The buckets in which DistributedDataParallel reduces gradients.

It makes them anew after the first backward pass, in the order in which gradients became ready. How
numbers are added up depends on the bucket they lie in (from three ranks on), and so does what
compressing hooks remember. A training that goes on must therefore not begin with first buckets:
before it does, a backward pass of zeros goes through, in the order that was seen in the beginning.
"""

from __future__ import annotations

from typing import Any


class Arrival:
    """In which order gradients become ready, in the first backward pass that has all of them."""

    def __init__(self, modules: dict[str, Any], names: dict[Any, str]) -> None:
        self.order: dict[str, list[str]] = {}
        self._handles: dict[str, list[Any]] = {}
        for key, module in modules.items():
            if not rebuilds(module):
                continue
            watched = [p for p in module.parameters() if p.requires_grad]
            seen: list[str] = []

            def ready(
                parameter: Any,
                key: str = key,
                seen: list[str] = seen,
                all_of_them: int = len(watched),
            ) -> None:
                seen.append(names[parameter])
                if len(seen) == all_of_them:
                    self._done(key, seen)

            self._handles[key] = [p.register_post_accumulate_grad_hook(ready) for p in watched]

    def _done(self, key: str, seen: list[str]) -> None:
        if len(set(seen)) == len(seen):
            self.order[key] = list(seen)
        for handle in self._handles.pop(key, ()):
            handle.remove()

    def known(self, order: dict[str, list[str]]) -> None:
        """From a checkpoint: nothing needs to be watched any more."""
        self.order = dict(order)
        for key in list(self._handles):
            if key in order:
                self._done(key, order[key])


def rebuilds(module: Any) -> bool:
    from torch.nn.parallel import DistributedDataParallel

    return (
        isinstance(module, DistributedDataParallel)
        and not module.find_unused_parameters
        and not module.static_graph
    )


def warm(module: Any, names: dict[Any, str], order: list[str]) -> None:
    """Makes the next forward pass begin with the buckets that follow from `order`."""
    by_name = {name: parameter for parameter, name in names.items()}
    parameters = [by_name[name] for name in order if name in by_name]
    if {id(p) for p in parameters} != {id(p) for p in module.parameters() if p.requires_grad}:
        return  # another model: its own first pass will tell
    module.reducer.prepare_for_forward()
    module.reducer.prepare_for_backward([])
    for parameter in parameters:
        (parameter * 0).sum().backward()
    for parameter in parameters:
        parameter.grad = None
