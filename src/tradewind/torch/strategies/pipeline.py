"""Stages, one after the other on several ranks, with micro-batches on their way through them.

A Sequential is cut between its members, so that each stage has about as many parameters; any other
model is traced with an example of its inputs (torch.export) and cut between its blocks. Parameters
keep the names that they have in the whole model, so a checkpoint can be continued unsplit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.strategies import batches, memory
from tradewind.torch.strategies.memory import Before
from tradewind.torch.strategies.passes import Tools

SCHEDULES = ("1f1b", "gpipe")
_BUCKET = 25 << 20


def cut(model: Any, stages: int, stage: int) -> Any:
    """This stage of a Sequential."""
    import torch

    members = list(model.named_children())
    if len(members) < stages:
        raise InvalidValue(
            f"pp {stages}, and the model has {len(members)} members to cut between",
            hint="fewer stages, or a Sequential of more, smaller members",
        )
    bounds = _bounds([sum(p.numel() for p in each.parameters()) for _, each in members], stages)
    chosen = members[bounds[stage] : bounds[stage + 1]]
    made = torch.nn.Sequential()
    for name, member in chosen:
        made.add_module(name, member)
    return made.train(model.training)


def _bounds(weights: list[int], stages: int) -> list[int]:
    """Where stages begin and the last one ends, so that the heaviest is as light as can be."""
    many = len(weights)
    sums = [0]
    for weight in weights:
        sums.append(sums[-1] + weight)
    best: dict[tuple[int, int], tuple[int, list[int]]] = {(0, 0): (0, [0])}
    for made in range(1, stages + 1):
        for end in range(made, many + 1):
            options = [
                (max(heaviest, sums[end] - sums[begin]), [*bounds, end])
                for begin in range(made - 1, end)
                if (made - 1, begin) in best
                for heaviest, bounds in [best[made - 1, begin]]
            ]
            best[made, end] = min(options, key=lambda option: option[0])
    return best[stages, many][1]


def traced(model: Any, stages: int, blocks: list[tuple[str, Any]], example: Any) -> Any:
    """A Pipe of PyTorch, cut before the blocks with which stages begin."""
    from torch.distributed.pipelining import SplitPoint, pipeline

    if example is None:
        raise InvalidValue(
            f"pp {stages} of a {type(model).__name__}, which is no Sequential: it has to be traced",
            hint="give the inputs of one micro-batch: prepare(…, example=(tokens,)); or make the"
            " model a torch.nn.Sequential",
        )
    if len(blocks) < stages:
        raise InvalidValue(
            f"pp {stages}, and the model has {len(blocks)} blocks to cut between",
            hint="name them: prepare(…, blocks=[Block])",
        )
    bounds = _bounds([sum(p.numel() for p in each.parameters()) for _, each in blocks], stages)
    points = {blocks[begin][0]: SplitPoint.BEGINNING for begin in bounds[1:-1]}
    arguments = example if isinstance(example, tuple) else (example,)
    try:
        return pipeline(model, mb_args=arguments, split_spec=points)
    except Exception as error:
        short = str(error).strip().split("\n")[0][:200]
        raise InvalidValue(
            f"{type(model).__name__} cannot be traced for stages: {short}",
            hint="make it a torch.nn.Sequential of its parts; or plan with pp: 1",
        ) from None


class PipelinePasses:
    """`stage` is PyTorch's; `data` a group of the same stage's replicas, or None."""

    def __init__(self, tools: Tools, stage: Any, *, schedule: str, pipe: Any, data: Any) -> None:
        self._tools, self._stage, self._data = tools, stage, data
        self._kind, self._pipe = schedule, pipe
        self._schedule: Any = None
        self._batch = 0

    def run(self, batch: Any) -> Any:
        import torch

        tools, stage = self._tools, self._stage
        many = batches.samples(batch)
        if self._batch not in (0, many):
            raise InvalidValue(
                f"a pipeline takes batches of one size: this one has {many} samples, those before"
                f" had {self._batch}",
                hint="DataLoader(…, drop_last=True)",
            )
        if self._schedule is None:
            self._begin(many)
        inputs, target = tools.task.parts(batch)
        if isinstance(inputs, Mapping) or not hasattr(target, "shape"):
            raise InvalidValue(
                f"a pipeline takes tensors: inputs are a {type(inputs).__name__}, the target is a"
                f" {type(target).__name__}",
                hint="prepare(…, split=lambda batch: (batch['input_ids'], batch['labels']))",
            )
        losses: list[Any] = []
        more: dict[str, Any] = {"losses": losses, "target": target} if stage.is_last else {}
        arguments: tuple[Any, ...] = ()
        if stage.is_first:
            arguments = tuple(inputs) if isinstance(inputs, (list, tuple)) else (inputs,)
        try:
            with tools.autocast():
                self._schedule.step(*arguments, return_outputs=False, **more)
        except Exception as error:
            if not memory.is_short(error):
                raise
            raise tools.memory.end(many, str(error).split("\n")[0][:300]) from None
        if self._data is not None:
            average(tools.model, self._data)
        mean = torch.stack([loss.detach().float() for loss in losses]).mean() if losses else None
        return self._told(mean)

    def _begin(self, many: int) -> None:
        from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe

        tools = self._tools
        sizes = batches.sizes(many, tools.memory.micro)
        if len(set(sizes)) > 1:
            raise InvalidValue(
                f"a batch of {many} samples cannot be cut into micro-batches of"
                f" {tools.memory.micro}, as a pipeline needs them all alike",
                hint="a multiple of micro_batch as batch_size",
            )
        kind = Schedule1F1B if self._kind == "1f1b" else ScheduleGPipe
        if len(sizes) < self._stage.num_stages and self._kind == "1f1b":
            kind = ScheduleGPipe  # the other needs as many micro-batches as stages
        made = kind(self._stage, n_microbatches=len(sizes), loss_fn=self._loss)
        learn = made._initialize_stage

        def learn_quietly(*args: Any, **kwargs: Any) -> None:
            """It passes through the stage to learn shapes: draws random numbers, changes buffers,
            once in each process, which would tell a resumed training from another."""
            if getattr(made, "_stage_forward_initialized", False):
                learn(*args, **kwargs)
                return
            before = Before(tools.model)
            learn(*args, **kwargs)
            before.put_back()

        made._initialize_stage = learn_quietly
        self._schedule, self._batch = made, many

    def _loss(self, output: Any, target: Any) -> Any:
        loss = self._tools.task.given(output, target)
        return self._tools.scaler.scale(loss) if self._tools.scaler is not None else loss

    def _told(self, mean: Any) -> Any:
        """The last stage's, to all of them: rank 0, which is of the first, keeps the metrics."""
        import torch
        import torch.distributed as dist

        if mean is None:
            mean = torch.zeros((), device=self._stage.device)
        scaler = self._tools.scaler
        if scaler is not None:
            mean = mean / scaler.get_scale()
        last = dist.get_global_rank(self._pipe, self._stage.num_stages - 1)
        dist.broadcast(mean, src=last, group=self._pipe)
        return mean


def average(model: Any, group: Any) -> None:
    """Gradients of replicas, in buckets, when all of them are there."""
    import torch
    import torch.distributed as dist

    world = dist.get_world_size(group)
    bucket: list[Any] = []
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    grads = [g.to_local() if hasattr(g, "to_local") else g for g in grads]
    for number, grad in enumerate(grads):
        bucket.append(grad)
        size = sum(each.numel() * each.element_size() for each in bucket)
        alike = number + 1 < len(grads) and grads[number + 1].dtype == grad.dtype
        if size < _BUCKET and alike:
            continue
        flat = torch.cat([each.reshape(-1) for each in bucket]) / world
        dist.all_reduce(flat, group=group)
        at = 0
        for each in bucket:
            each.copy_(flat[at : at + each.numel()].view_as(each))
            at += each.numel()
        bucket = []
