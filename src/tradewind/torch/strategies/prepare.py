"""`tw.prepare`: from a layout to a model that is spread so."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.torch import messages, ranks
from tradewind.torch.strategies import (
    compression,
    mesh,
    pipeline,
    precision,
    rebind,
    replicas,
    rules,
    shapes,
)
from tradewind.torch.strategies import layout as layouts
from tradewind.torch.strategies.batches import Task
from tradewind.torch.strategies.blocks import blocks as blocks_of
from tradewind.torch.strategies.layout import Layout
from tradewind.torch.strategies.memory import Memory
from tradewind.torch.strategies.passes import ReplicaPasses, TogetherPasses, Tools
from tradewind.torch.strategies.precision import PURE
from tradewind.torch.strategies.prepared import Prepared
from tradewind.torch.strategies.recompute import recompute
from tradewind.torch.strategies.sharded import shard
from tradewind.torch.strategies.tensors import split as split_tensors


def prepare(
    model: Any,
    optimizer: Any = None,
    layout: Any = None,
    *,
    loss: Any = None,
    split: Any = None,
    precision: str | None = None,
    compress: Any = None,
    blocks: Iterable[Any] | None = None,
    plan: dict[str, Any] | None = None,
    schedule: str = "1f1b",
    example: Any = None,
    engine: str = "torch",
    folder: str | Path = "checkpoints",
) -> Prepared:
    """The model and the optimizer, spread over the ranks as `layout` says.

    `layout` is a plan, its layout, a table such as `{"dp": 2, "tp": 2}`, or the path of a
    `plan.json`; without one it is the run's (`$TRADEWIND_LAYOUT`), else all ranks are replicas. The
    optimizer may be made before, or be a function of parameters that makes it.

    `loss(output, target)` is the mean over samples, and `split(batch)` gives inputs and target
    where a batch is no such pair. `compress` makes replicas' gradients smaller (fp16, bf16,
    powersgd, topk). `blocks` are what is sharded and recomputed one by one, where they are not
    found; `plan` says how to split tensors of blocks that are not known; `schedule` (1f1b, gpipe)
    and `example` are for pipelines. What was learnt of memory is kept in `folder`."""
    import torch

    if not isinstance(model, torch.nn.Module):
        raise InvalidValue(f"the model is a {type(model).__name__} and no torch.nn.Module")
    rules.untouched(model)
    wanted = layouts.wanted(layout, os.environ, precision)
    device = mesh.own_device()
    rank, world = mesh.meet(device)
    wanted = layouts.placed(wanted, world)
    small = compression.asked(compress)
    rules.combined(wanted, small, schedule=schedule, loss=loss, engine=engine)
    if wanted.precision == PURE:
        model.to(torch.bfloat16)  # in place: an optimizer that was made before has them still
    task = Task(loss, split)
    memory = Memory(wanted.micro_batch, Path(folder), world)
    memory.recall()
    before = rebind.names_of(model)
    rebind.check(optimizer, before)
    if engine == "deepspeed":
        from tradewind.torch.strategies.zero import prepare_deepspeed

        return prepare_deepspeed(model, optimizer, wanted, task, memory, rank, world, device)
    builder = _Builder(wanted, rank, world, device, task, memory)
    return builder.built(model, optimizer, before, small, blocks, plan, schedule, example)


class _Builder:
    def __init__(
        self, layout: Layout, rank: int, world: int, device: Any, task: Task, memory: Memory
    ) -> None:
        self.layout, self.rank, self.world, self.device = layout, rank, world, device
        self.task, self.memory = task, memory
        self.grid = mesh.grid(layout, rank, world, device)
        self.replicas = layout.sharding == "none" and layout.tp == layout.pp == 1
        self.sharded = layout.sharding != "none" and world > 1

    def built(
        self,
        model: Any,
        optimizer: Any,
        before: dict[int, str],
        small: Any,
        blocks: Iterable[Any] | None,
        plan: dict[str, Any] | None,
        schedule: str,
        example: Any,
    ) -> Prepared:
        from tradewind.torch.sessions.state import clean

        layout = self.layout
        extra: dict[str, Any] = {}
        if self.world > 1 and not self.replicas:
            alike(model, self.device)
        stage: Any = None
        if layout.pp > 1:
            model, stage = self._stage(model, blocks, example)
        if not self.sharded:
            model.to(self.device)
        if layout.tp > 1:
            split_tensors(model, self.grid.tensor, plan)
            _same_numbers(self.grid.tensor)
        if layout.recompute != "none" or self.sharded:
            found = blocks_of(model, blocks)
            recompute(model, layout.recompute, found)
            if self.sharded:
                shard(
                    model,
                    found,
                    self.grid.data,
                    sharding=layout.sharding,
                    precision=layout.precision,
                )
        optimizer = rebind.rebound(optimizer, before, model, clean)
        if layout.tp > 1 and optimizer is not None:
            _one_by_one(optimizer)
        if self.replicas and self.world > 1:
            one = small is not None and small[0] == "powersgd" and self.device.type == "cpu"
            model = replicas.replicate(model, self.device, one_bucket=one)
            if small is not None:
                extra |= compression.compress(model, *small)
        ranks.mark(model, self.grid.ranks)
        return self._prepared(model, optimizer, extra, schedule, stage)

    def _stage(self, model: Any, blocks: Iterable[Any] | None, example: Any) -> tuple[Any, Any]:
        """This rank's part of the model; and PyTorch's stage, where that comes from tracing."""
        import torch

        layout, at = self.layout, self.grid.pipe.get_local_rank()
        if isinstance(model, torch.nn.Sequential):
            return pipeline.cut(model, layout.pp, at), None
        if layout.tp > 1 or self.sharded or layout.recompute != "none":
            raise InvalidValue(
                f"pp of a {type(model).__name__}, which has to be traced, goes with neither tp nor"
                " sharding nor recompute",
                hint="make the model a torch.nn.Sequential of its parts, which can be cut as it is",
            )
        model.to(self.device)
        pipe = pipeline.traced(model, layout.pp, blocks_of(model, blocks), example)
        stage = pipe.build_stage(at, self.device, group=self.grid.pipe.get_group())
        return stage.submod, stage

    def _prepared(
        self, model: Any, optimizer: Any, extra: dict[str, Any], schedule: str, stage: Any
    ) -> Prepared:
        layout = self.layout
        same = self.replicas or self.world == 1
        kind = "fp32" if self.sharded else layout.precision  # fully_shard has its own way
        tools = Tools(
            model=model,
            task=self.task,
            memory=self.memory,
            autocast=lambda: precision.autocast(self.device, kind),
            scaler=precision.scaler(self.device, layout.precision, alike=same),
            world=self.world,
            gloo=None if same else mesh.gloo(self.device, self.world),
        )
        passes: Any
        if layout.pp > 1:
            passes = self._pipeline(tools, stage, schedule)
        elif same:
            passes = ReplicaPasses(tools, alone=self.world == 1)
        else:
            passes = TogetherPasses(tools, whole_gradients=layout.sharding == "zero1")
        return Prepared(
            layout=layout,
            device=self.device,
            tools=tools,
            passes=passes,
            optimizer=optimizer,
            extra={"micro_batch": self.memory, **extra},
            alike=same,
            rank=self.rank,
        )

    def _pipeline(self, tools: Tools, stage: Any, schedule: str) -> pipeline.PipelinePasses:
        group = self.grid.pipe.get_group()
        if stage is None:
            at = self.grid.pipe.get_local_rank()
            stage = shapes.stage(tools.model, at, self.layout.pp, self.device, group)
        data = None if self.sharded or self.grid.data is None else self.grid.data.get_group()
        return pipeline.PipelinePasses(tools, stage, schedule=schedule, pipe=group, data=data)


def alike(model: Any, device: Any) -> None:
    """Rank 0's weights on all of them: scripts may give each rank another seed."""
    import torch
    import torch.distributed as dist

    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            there = tensor.detach().to(device).contiguous()
            dist.broadcast(there, src=0)
            tensor.copy_(there)


class _Generators(Struct, frozen=True):
    """States of PyTorch's random number generators."""

    cpu: bytes
    cuda: bytes


def _same_numbers(tensor_mesh: Any) -> None:
    """Ranks that compute the same samples draw the same random numbers, such as for dropout."""
    import torch
    import torch.distributed as dist

    group = tensor_mesh.get_group()
    first = dist.get_global_rank(group, 0)
    cuda = torch.cuda.is_available()
    own = _Generators(
        torch.get_rng_state().numpy().tobytes(),
        torch.cuda.get_rng_state().numpy().tobytes() if cuda else b"",
    )
    said = messages.broadcast(own, _Generators, first, group)
    try:
        torch.set_rng_state(torch.frombuffer(bytearray(said.cpu), dtype=torch.uint8))
        if cuda:
            torch.cuda.set_rng_state(torch.frombuffer(bytearray(said.cuda), dtype=torch.uint8))
    except (RuntimeError, ValueError) as error:
        short = str(error).split("\n")[0][:200]
        raise messages.BadMessage(first, f"no state of random numbers: {short}") from None


def _one_by_one(optimizer: Any) -> None:
    """Split and whole parameters cannot be updated in one call for all."""
    for group in optimizer.param_groups:
        if group.get("foreach") is None and "foreach" in group and not group.get("fused"):
            group["foreach"] = False
