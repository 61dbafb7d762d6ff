"""A rank under torchrun that is killed once, after it has saved, and goes on: FOLDER."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from tradewind.torch.checkpoint import Checkpoints, Place, own_group


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    # Without a prefix, gloo finds the addresses of the last attempt, and connects to nobody.
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.PrefixStore(f"attempt/{attempt}", dist.TCPStore(*address, world, False))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    checkpoints = Checkpoints(Place(folder / "c"), rank=rank, world=world, group=own_group())
    now = {"weight": torch.zeros(400_000)}
    found = checkpoints.newest()
    assert (found is None) == (attempt == 0)
    if found is not None:
        checkpoints.read(found, now)
        assert found.step == attempt
        assert torch.equal(now["weight"], torch.full((400_000,), float(attempt)))
    now["weight"] += 1
    assert checkpoints.save(attempt + 1, now, {}, b"", b"", wait=True)
    dist.barrier()
    if attempt < 2 and rank == attempt % world:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    checkpoints.close()
    (folder / f"done-{rank}").write_text(str(attempt))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
