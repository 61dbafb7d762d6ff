"""The forward and backward passes of a step: how a batch becomes gradients, whatever the strategy.

Each has `run(batch)`, which leaves averaged gradients and gives the mean loss of its samples.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from tradewind.torch.strategies import batches, memory, replicas
from tradewind.torch.strategies.batches import Task
from tradewind.torch.strategies.memory import Before, Memory


class Tools(Struct):
    """What every kind of passes needs."""

    model: Any
    task: Task
    memory: Memory
    autocast: Callable[[], AbstractContextManager[Any]]
    scaler: Any
    world: int
    gloo: Any = None
    """A group by which ranks can agree without their GPUs waiting; None: the one that all have."""

    def backward(self, batch: Any, share: float) -> Any:
        """Of a micro-batch that is such a share of the batch; its part of the loss."""
        with self.autocast():
            loss = self.task.loss(self.model, batch) * share
        (self.scaler.scale(loss) if self.scaler is not None else loss).backward()
        return loss.detach()


class ReplicaPasses:
    """One process, or replicas that need each other only in the last backward pass."""

    def __init__(self, tools: Tools, *, alone: bool) -> None:
        self._tools, self._alone = tools, alone
        self._arrivals = replicas.Arrivals(tools.model)

    def run(self, batch: Any) -> Any:
        tools = self._tools
        many = batches.samples(batch)
        while True:
            watched = tools.memory.watches()
            before = Before(tools.model) if watched else None
            loss, trouble = self._try(batch, many, synchronize=not watched)
            if trouble and before is None:
                raise tools.memory.end(many, trouble) from None
            if not watched or not memory.anyone(bool(trouble), tools.world):
                break
            assert before is not None
            self._arrivals.forget()
            before.put_back()
            memory.freed()
            if not self._alone:  # the failed pass may have sent its buffers around, or not
                tools.model.require_forward_param_sync = True
            tools.memory.smaller(many, trouble or "on another rank")
        if watched and not self._alone:
            replicas.reduce_now(tools.model, self._arrivals.known())
            tools.model.require_forward_param_sync = True
        tools.memory.fitted()
        return loss

    def _try(self, batch: Any, many: int, *, synchronize: bool) -> tuple[Any, str]:
        """The loss; or what memory was short for. Nothing of the failed pass stays alive."""
        tools = self._tools
        sizes = batches.sizes(many, tools.memory.micro)
        if not synchronize and not self._alone:
            self._arrivals.watch()
        try:
            total = None
            for number, part in enumerate(batches.cut(batch, sizes)):
                last = synchronize and number == len(sizes) - 1
                with nullcontext() if last or self._alone else tools.model.no_sync():
                    loss = tools.backward(part, sizes[number] / many)
                total = loss if total is None else total + loss
            return total, ""
        except Exception as error:
            if not memory.is_short(error):
                raise
            return None, str(error).split("\n")[0][:300] or type(error).__name__


class TogetherPasses:
    """Ranks that need each other in every layer: all make as many passes."""

    def __init__(self, tools: Tools, *, whole_gradients: bool) -> None:
        """`whole_gradients`: kept whole until the last micro-batch, which sends less and needs more
        memory; else each micro-batch's are sent off into their shards."""
        self._tools, self._whole = tools, whole_gradients

    def run(self, batch: Any) -> Any:
        tools = self._tools
        many = batches.samples(batch)
        parts = agreed(tools, len(batches.sizes(many, tools.memory.micro)), many)
        sizes = batches.even(many, parts)
        total = None
        try:
            for number, part in enumerate(batches.cut(batch, sizes)):
                if self._whole and hasattr(tools.model, "set_requires_gradient_sync"):
                    tools.model.set_requires_gradient_sync(number == parts - 1)
                loss = tools.backward(part, sizes[number] / many)
                total = loss if total is None else total + loss
        except Exception as error:
            if not memory.is_short(error):
                raise
            words = str(error).split("\n")[0][:300]
            raise tools.memory.end(many, words) from None
        tools.memory.fitted()
        return total


def agreed(tools: Tools, parts: int, many: int) -> int:
    """The most micro-batches that any rank needs; and no more than any has samples."""
    import torch
    import torch.distributed as dist

    if tools.world == 1 or tools.memory.micro is None:
        return parts
    where = memory.where() if tools.gloo is None else "cpu"
    word = torch.tensor([parts, -many], dtype=torch.int64, device=where)
    dist.all_reduce(word, op=dist.ReduceOp.MAX, group=tools.gloo)
    most, fewest = word.tolist()
    return int(max(1, min(most, -fewest)))
