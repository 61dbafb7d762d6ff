"""Trainings that something holds up, for the tests of telemetry: `python held_up.py FOLDER WHAT`.

They go on until FOLDER/enough is there. WHAT: data (a slow dataset), collective (a large all-reduce
after each step), ddp (large gradients of a small computation), late (rank 1 takes longer
for its steps), saving (a checkpoint after each step), nothing.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import tradewind.torch as tw


class Slow(Dataset[Any]):
    def __init__(self, sample_s: float) -> None:
        self.sample_s = sample_s

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        if self.sample_s:
            time.sleep(self.sample_s)
        return torch.randint(0, 100, (32,))


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if dist.is_initialized() else 0
    wide = 1500 if what == "ddp" else 64
    model: Any = torch.nn.Sequential(torch.nn.Embedding(100, wide), torch.nn.Linear(wide, wide))
    if what == "ddp":
        model = DistributedDataParallel(model)
    large = torch.ones(4_000_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    session = tw.session(
        model=model,
        optimizer=optimizer,
        data=DataLoader(Slow(0.01 if what == "data" else 0.0), batch_size=4),
        folder=folder / "checkpoints",
        every_steps=1 if what == "saving" else None,
        grad_norm=True,
    )
    enough = folder / "enough"
    enough_here = torch.zeros(1)
    for batch in session.batches(max_steps=10_000_000):
        loss = model(batch).square().mean()
        loss.backward()
        if what == "late":
            time.sleep(0.1 * rank)
            dist.all_reduce(torch.zeros(1))
        if what == "collective":
            dist.all_reduce(large)
        optimizer.step()
        optimizer.zero_grad()
        session.step(loss=loss)
        if dist.is_initialized():
            enough_here.fill_(float(enough.exists()))
            dist.all_reduce(enough_here, op=dist.ReduceOp.MAX)
        if (enough.exists() and not dist.is_initialized()) or enough_here.item():
            break
    session.close()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
