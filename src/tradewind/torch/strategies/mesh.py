"""The ranks as a grid: stages × replicas × tensor parts, neighbours in the last dimension, where
most is sent."""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.torch.ranks import Ranks
from tradewind.torch.strategies.layout import Layout


class Grid(Struct, frozen=True):
    """Each a mesh of this rank's row of it; None where there is only one."""

    pipe: Any
    data: Any
    """One dimension, or (replicate, shard) for hybrid sharding."""
    tensor: Any
    ranks: Ranks


def meet(device: Any) -> tuple[int, int]:
    """Rank and world. Makes the process group where torchrun has started several and the script
    has not made it."""
    import torch.distributed as dist

    if not dist.is_available():
        return 0, 1
    world = int(os.environ.get("WORLD_SIZE") or 1)
    if not dist.is_initialized():
        if world == 1:
            return 0, 1
        if not os.environ.get("MASTER_ADDR"):
            raise InvalidValue(
                f"WORLD_SIZE is {world}, and MASTER_ADDR says nothing: where are the others?",
                hint="start it by torchrun",
            )
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return dist.get_rank(), dist.get_world_size()


def own_device() -> Any:
    import torch

    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK") or 0))
    torch.cuda.set_device(device)
    return device


def gloo(device: Any, world: int) -> Any:
    """A group of all ranks beside NCCL's; None where all are in one already."""
    import torch.distributed as dist

    return dist.new_group(backend="gloo") if world > 1 and device.type == "cuda" else None


def grid(layout: Layout, rank: int, world: int, device: Any) -> Grid:
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    if world == 1:
        return Grid(None, None, None, Ranks(0, 1, 0, 1))
    dp, tp, pp = layout.replicas, layout.tp, layout.pp
    data_rank = rank // tp % dp
    ranks = Ranks(
        data_rank=data_rank,
        data_world=dp,
        share=rank % (dp * tp),
        sharers=dp * tp,
        stage=rank // (dp * tp),
        stages=pp,
        group=dist.new_group(backend="gloo") if pp > 1 else None,
    )
    shape, names = [pp, dp, tp], ["pipe", "data", "tensor"]
    data: Any = "data"
    inside = layout.shard or dp
    if layout.sharding == "hybrid" and 1 < inside < dp:
        shape, names = [pp, dp // inside, inside, tp], ["pipe", "replicate", "shard", "tensor"]
        data = ("replicate", "shard")
    mesh = init_device_mesh(device.type, tuple(shape), mesh_dim_names=tuple(names))
    return Grid(
        mesh["pipe"] if pp > 1 else None,
        mesh[data] if dp > 1 or layout.sharding != "none" else None,
        mesh["tensor"] if tp > 1 else None,
        ranks,
    )
