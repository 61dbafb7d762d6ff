"""ZeRO 1 to 3 by DeepSpeed, for those who train with it: its configuration follows from the layout.

`fully_shard` does the same without another package; this is an extra, and DeepSpeed is imported
only here. Its optimizer keeps flat parts of the parameters, which belong to one rank and one number
of ranks: a checkpoint can be continued by as many ranks, in the same stage.
"""

from __future__ import annotations

import os
from typing import Any

from tradewind.base.errors import InvalidValue, MissingExtra
from tradewind.torch import ranks
from tradewind.torch.ranks import Ranks
from tradewind.torch.strategies import batches, memory, mesh
from tradewind.torch.strategies.batches import Task
from tradewind.torch.strategies.layout import Layout
from tradewind.torch.strategies.memory import Memory
from tradewind.torch.strategies.passes import Tools, agreed
from tradewind.torch.strategies.precision import autocast
from tradewind.torch.strategies.prepared import Prepared

_STAGES = {"zero1": 1, "zero2": 2, "zero3": 3}
_SHM = "deepspeed_shm_comm"


def config(layout: Layout) -> dict[str, Any]:
    """Micro-batches are ours: DeepSpeed is told where a step ends."""
    found: dict[str, Any] = {
        "train_micro_batch_size_per_gpu": layout.micro_batch or 1,
        "gradient_accumulation_steps": 1,
        "zero_optimization": {"stage": _STAGES[layout.sharding]},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }
    if layout.precision != "fp32":
        found[layout.precision] = {"enabled": True}
    return found


def prepare_deepspeed(
    model: Any,
    optimizer: Any,
    layout: Layout,
    task: Task,
    memory: Memory,
    rank: int,
    world: int,
    device: Any,
) -> Prepared:
    if layout.sharding not in _STAGES:
        raise InvalidValue(
            f"engine is deepspeed, and sharding is {layout.sharding!r}",
            hint="say sharding: zero1, zero2 or zero3; or leave engine out",
        )
    if layout.recompute != "none":
        raise InvalidValue(
            f"recompute {layout.recompute!r} is not done with DeepSpeed here",
            hint="leave engine out: fully_shard does; or wrap the blocks yourself"
            " (torch.utils.checkpoint)",
        )
    if optimizer is None:
        raise InvalidValue("DeepSpeed needs the optimizer", hint="prepare(model, optimizer, …)")
    if not hasattr(optimizer, "param_groups"):
        optimizer = optimizer([p for p in model.parameters() if p.requires_grad])
    if device.type == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("LOCAL_RANK", str(rank if device.index is None else device.index))
    deepspeed = _imported(device)
    _met(world)
    engine, zero, _, _ = deepspeed.initialize(
        model=model, optimizer=optimizer, config=config(layout), dist_init_required=False
    )
    optimizer.kept_elsewhere = True  # its parameters are parts of one rank; `Parts` keep them
    module = engine.module
    ranks.mark(module, Ranks(rank, world, rank, world))
    kind = "fp32" if layout.precision == "fp32" else layout.precision
    tools = Tools(
        model=module,
        task=task,
        memory=memory,
        autocast=lambda: autocast(device, kind),
        scaler=None,
        world=world,
        gloo=mesh.gloo(device, world),
    )
    parts = Parts(zero, module)
    return ZeroPrepared(
        engine=engine,
        layout=layout,
        device=device,
        tools=tools,
        passes=ZeroPasses(tools, engine),
        optimizer=optimizer,
        extra={"micro_batch": memory, "deepspeed": parts},
        alike=False,
        rank=rank,
    )


def _imported(device: Any) -> Any:
    try:
        import deepspeed  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingExtra(
            f"engine is deepspeed, which cannot be imported: {error}",
            hint="pip install 'tradewind[deepspeed]'; or leave engine out: fully_shard does the"
            " same with PyTorch alone",
        ) from None
    import logging

    deepspeed.utils.logger.setLevel(logging.WARNING)
    if device.type == "cpu":
        # Ranks of one machine would talk through shared memory, by an extension that is compiled
        # at the first start: minutes, a compiler, and for ever where one was killed meanwhile.
        deepspeed.ops.__compatible_ops__[_SHM] = False
    return deepspeed


def _met(world: int) -> None:
    """DeepSpeed wants a process group even of one."""
    import torch.distributed as dist

    if world == 1 and not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class ZeroPrepared(Prepared):
    def __init__(self, *, engine: Any, **more: Any) -> None:
        super().__init__(**more)
        self.engine = engine

    def step(self, batch: Any, *, clip: float | None = None) -> Any:
        self.engine.optimizer.clip_grad = clip or 0.0
        loss = self._passes.run(batches.moved(batch, self.device))
        self.engine.step()
        return loss


class ZeroPasses:
    def __init__(self, tools: Tools, engine: Any) -> None:
        self._tools, self._engine = tools, engine

    def run(self, batch: Any) -> Any:
        tools, engine = self._tools, self._engine
        many = batches.samples(batch)
        parts = agreed(tools, len(batches.sizes(many, tools.memory.micro)), many)
        sizes = batches.even(many, parts)
        total = None
        try:
            for number, part in enumerate(batches.cut(batch, sizes)):
                engine.set_gradient_accumulation_boundary(number == parts - 1)
                with tools.autocast():
                    loss = tools.task.loss(engine, part) * (sizes[number] / many)
                engine.backward(loss)
                if number < parts - 1:
                    engine.step()  # counts the micro-batch, and steps nothing yet
                total = loss.detach() if total is None else total + loss.detach()
        except Exception as error:
            if not memory.is_short(error):
                raise
            raise tools.memory.end(many, str(error).split("\n")[0][:300]) from None
        return total


class Parts:
    """This rank's parts of the parameters and of the optimizer's state, for the session."""

    of_each_rank = True

    def __init__(self, zero: Any, module: Any) -> None:
        self._zero, self._module = zero, module

    def _flats(self) -> dict[str, list[Any]]:
        """Tensors that are filled in place."""
        zero = self._zero
        if hasattr(zero, "fp32_partitioned_groups_flat"):
            shards = [p.ds_tensor for p in self._module.parameters()]
            return {"masters": list(zero.fp32_partitioned_groups_flat), "shards": shards}
        return {"masters": list(zero.single_partition_of_fp32_groups)}

    def _masters(self) -> list[Any]:
        return self._flats()["masters"]

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {
            name: [each.detach() for each in tensors] for name, tensors in self._flats().items()
        }
        base = self._zero.optimizer
        state["optimizer"] = [dict(base.state.get(master, {})) for master in self._masters()]
        state["groups"] = [
            {name: value for name, value in group.items() if name != "params"}
            for group in base.param_groups
        ]
        scaler = getattr(self._zero, "loss_scaler", None)
        state["scaler"] = {
            name: value
            for name, value in vars(scaler).items()
            if isinstance(value, (int, float)) and name.startswith("cur_")
        }
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        import torch

        with torch.no_grad():
            for name, tensors in self._flats().items():
                for here, saved in zip(tensors, state[name], strict=True):
                    here.data.copy_(saved)
        base = self._zero.optimizer
        for master, values in zip(self._masters(), state["optimizer"], strict=True):
            if values:  # counters stay in the computer's memory, as optimizers make them
                kept = {
                    n: v.cpu() if n == "step" and hasattr(v, "cpu") else v
                    for n, v in values.items()
                }
                base.state[master] = kept
        for group, kept in zip(base.param_groups, state["groups"], strict=True):
            group.update(kept)
        for name, value in state["scaler"].items():
            setattr(self._zero.loss_scaler, name, value)
