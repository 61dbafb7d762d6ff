"""Three ranks that train and save together in changing numbers: FOLDER.

2 ranks by FSDP → 1 plain → 2 by FSDP → 3 by FSDP → 2 by DDP → 3 that hold copies → 1 plain.
Each reads what the last wrote, compares every number with what it must be, and trains on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from tests.torch.checkpoint.kill_worker import fork
from tradewind.torch.checkpoint import Checkpoints, Place, own_group


def model() -> Any:
    torch.manual_seed(3)
    # Rows that no number of ranks divides, one that a share of bytes cuts, and a small one.
    return torch.nn.Sequential(
        torch.nn.Linear(31, 701), torch.nn.LayerNorm(701), torch.nn.Linear(701, 907, bias=False)
    )


def state(net: Any, optimizer: Any) -> dict[str, Any]:
    names = dict(net.named_parameters())
    found = dict(net.state_dict())
    for name, parameter in names.items():
        for key, value in optimizer.state[parameter].items():
            found[f"optimizer.{name}.{key}"] = value
    return found


def whole(tensors: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (t.full_tensor() if isinstance(t, DTensor) else t).detach().clone()
        for name, t in tensors.items()
    }


def step(net: Any, optimizer: Any, seed: int) -> None:
    torch.manual_seed(seed)
    net(torch.randn(4, 31)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def phase(
    rank: int, world: int, number: int, folder: Path, wrap: Callable[[Any], Any], saves: bool = True
) -> None:
    if rank >= world:
        return
    meeting = dist.FileStore(str(folder / f"meeting-{number}"), world)
    dist.init_process_group("gloo", store=meeting, rank=rank, world_size=world)
    try:
        net = wrap(model())
        inner = getattr(net, "module", net)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        step(net, optimizer, 7)  # so that there is a state to fill
        place = Place(folder / "checkpoints")
        checkpoints = Checkpoints(place, rank=rank, world=world, group=own_group(), keep=2)
        now = state(inner, optimizer)
        found = checkpoints.newest()
        if number:
            assert found is not None
            assert found.step == number
            shared, mine, own = checkpoints.read(found, now)
            assert shared == b"after %d" % number
            assert (mine is None) == (found.world != world)
            assert own.keys() == (set() if mine is None else {"residue"})
            wanted = torch.load(folder / f"wanted-{number}.pt", weights_only=True)
            got = whole(now)
            assert got.keys() == wanted.keys()
            for name, tensor in got.items():
                assert torch.equal(tensor, wanted[name]), name
        if not saves:
            return
        step(net, optimizer, number)
        wanted = whole(now)
        if rank == 0:
            torch.save(wanted, folder / f"wanted-{number + 1}.pt")
        residue = {"residue": torch.full((5,), float(rank))}
        shared = b"after %d" % (number + 1)
        assert checkpoints.save(number + 1, now, residue, shared, b"rank %d" % rank)
        checkpoints.gate()
        step(net, optimizer, 99)  # must not be in what is saved
        saved = checkpoints.finish(60)
        assert saved is not None
        assert saved.step == number + 1
        again = checkpoints.newest()
        assert again is not None
        restored = checkpoints.read(again, now)
        assert restored.mine == b"rank %d" % rank
        assert torch.equal(restored.own["residue"], residue["residue"])
        checkpoints.close()
        dist.barrier()
    finally:
        dist.destroy_process_group()


def sharded(net: Any) -> Any:
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in net:
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def replicas(net: Any) -> Any:
    """Two dimensions, of which the first holds copies: whoever is chosen writes each part."""
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("r", "s"))
    return fully_shard(net, mesh=mesh)


def rank_of_three(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    ddp = torch.nn.parallel.DistributedDataParallel
    phase(rank, 2, 0, folder, sharded)
    phase(rank, 1, 1, folder, lambda net: net)
    phase(rank, 2, 2, folder, sharded)
    phase(rank, 3, 3, folder, sharded)
    phase(rank, 2, 4, folder, ddp)
    phase(rank, 3, 5, folder, replicas)
    phase(rank, 1, 6, folder, lambda net: net, saves=False)


def main(folder: Path) -> None:
    ranks = [fork(rank_of_three, rank, folder) for rank in range(3)]
    for rank in ranks:
        _, status = os.waitpid(rank, 0)
        assert status == 0
    sys.stdout.write("every phase was right")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
