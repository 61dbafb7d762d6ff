"""What `prepare` takes: what goes together, and what it says of the rest."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.strategies.layout import Layout
from tradewind.torch.strategies.pipeline import SCHEDULES
from tradewind.torch.strategies.precision import PURE

ENGINES = ("torch", "deepspeed")


def untouched(model: Any) -> None:
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    if isinstance(model, (DistributedDataParallel, DataParallel)):
        raise InvalidValue(
            f"the model is in a {type(model).__name__} already",
            hint="give the bare model: prepare wraps it as the layout says",
        )
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "placements"):
            raise InvalidValue(
                f"{name} is spread over ranks already",
                hint="give the model as one process would have it, before fully_shard or"
                " parallelize_module: prepare does that",
            )
        if parameter.is_meta:
            raise InvalidValue(
                f"{name} has no numbers: it is on the meta device",
                hint="make or load the weights first; on the CPU will do, they are moved from there"
                " when they are sharded",
            )


def combined(layout: Layout, small: Any, *, schedule: str, loss: Any, engine: str) -> None:
    """What goes together, refused with what does."""
    if engine not in ENGINES:
        raise InvalidValue(f"engine is {engine!r}", hint=f"one of {', '.join(ENGINES)}")
    if schedule not in SCHEDULES:
        raise InvalidValue(f"schedule is {schedule!r}", hint=f"one of {', '.join(SCHEDULES)}")
    spread = layout.tp > 1 or layout.pp > 1 or layout.sharding != "none"
    if small is not None and (spread or engine == "deepspeed"):
        raise InvalidValue(
            f"compress {small[0]!r} is for replicas, and the layout is {layout.degrees}, sharding"
            f" {layout.sharding}",
            hint="leave compress out; sharded gradients are reduced in fp32, and fewer bytes are"
            " sent with a larger micro_batch or zero1",
        )
    if layout.tp > 1 and layout.replicas > 1 and layout.sharding == "none" and layout.pp == 1:
        raise InvalidValue(
            f"{layout.degrees} without sharding: whole replicas of a split model are not made",
            hint='say sharding: "zero1", which sends as much and needs less memory',
        )
    if layout.pp > 1 and loss is None:
        raise InvalidValue(
            "a pipeline computes the loss in its last stage, and prepare was not told how",
            hint="prepare(…, loss=lambda output, target: …)",
        )
    if engine == "deepspeed" and layout.precision == PURE:
        raise InvalidValue(
            "DeepSpeed keeps 32-bit copies of 16-bit weights, so it does not train in pure-bf16",
            hint="precision='bf16' here, or engine='torch'",
        )
    if engine == "deepspeed" and (layout.tp > 1 or layout.pp > 1 or layout.sharding == "hybrid"):
        raise InvalidValue(
            f"{layout.degrees}, sharding {layout.sharding}: DeepSpeed is used for ZeRO 1 to 3 here",
            hint="leave engine out: PyTorch's own ways do tp, pp and hybrid",
        )
