"""Replicas by DistributedDataParallel: every rank has the whole model, gradients are averaged."""

from __future__ import annotations

from typing import Any

_MIB = 1 << 20


def replicate(model: Any, device: Any, *, one_bucket: bool = False) -> Any:
    """`one_bucket`: for hooks that wait inside, of which gloo's threads suffer only one."""
    from torch.nn.parallel import DistributedDataParallel

    more: dict[str, Any] = {}
    if one_bucket:
        bytes_ = sum(p.numel() * p.element_size() for p in model.parameters())
        more["bucket_cap_mb"] = bytes_ // _MIB + 1
    if device.type == "cuda":
        more["device_ids"] = [device.index]
    return DistributedDataParallel(model, **more)


class Arrivals:
    """In which order gradients become ready: DistributedDataParallel makes its buckets by it."""

    def __init__(self, model: Any) -> None:
        self._watched = [p for p in model.parameters() if p.requires_grad]
        self._order: list[Any] = []
        self._handles: list[Any] = []

    def watch(self) -> None:
        if self._order or self._handles:
            return
        seen: list[Any] = []

        def ready(parameter: Any) -> None:
            seen.append(parameter)

        self._order = seen
        self._handles = [p.register_post_accumulate_grad_hook(ready) for p in self._watched]

    def known(self) -> list[Any]:
        """After a backward pass; parameters that it did not reach come last."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        once = list(dict.fromkeys(self._order))
        have = set(map(id, once))
        self._order = once + [p for p in self._watched if id(p) not in have]
        return self._order

    def forget(self) -> None:
        """The pass has failed in the middle."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._order = [], []


def reduce_now(model: Any, order: list[Any]) -> None:
    """Averages gradients that backward passes without synchronizing have left: by a backward pass
    of zeros, so that buckets and hooks are those of every other step."""
    model.reducer.prepare_for_forward()
    model.reducer.prepare_for_backward([])
    for parameter in order:
        (parameter * 0).sum().backward()
