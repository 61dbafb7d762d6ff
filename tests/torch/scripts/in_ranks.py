"""Loops of public scripts, in several ranks: resumed by other numbers of ranks.

Arguments: a folder, and which loop. It writes seen/RANK-PID there, a line for each batch: step,
epoch, the samples."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import tradewind.torch as tw
from tests.torch.scripts.prefetched import Prefetcher
from tests.torch.scripts.small import BATCH, features, loss_of

EPOCHS = 4


class Around:
    """A class of one's own around a loader."""

    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        yield from self.inner


def data() -> DataLoader:
    x, y = features()
    return DataLoader(
        TensorDataset(x, y, torch.arange(len(x))), batch_size=BATCH, shuffle=True, drop_last=False
    )


def main() -> None:
    folder, how = Path(sys.argv[1]), sys.argv[2]
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(6, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    loader = Around(data()) if how == "wrapped" else data()
    session = tw.session(
        model=model, optimizer=optimizer, data=loader, folder=folder / "checkpoints", every_steps=3
    )
    (folder / "seen").mkdir(parents=True, exist_ok=True)
    seen = (folder / "seen" / f"{rank}-{os.getpid()}").open("a", buffering=1)

    def train(x, y, samples, epoch) -> None:
        seen.write(f"{session.step_number + 1} {epoch} {samples.tolist()}\n")
        loss = loss_of(model(x), y)
        loss.backward()
        if how != "accumulate" or (session.step_number + 1) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        session.step(loss=loss)
        if rank == 0:
            print("step", session.step_number, flush=True)  # noqa: T201
        time.sleep(float(os.environ.get("STEP_S", "0")))

    if how in ("epochs", "wrapped"):
        for epoch in range(EPOCHS):
            for x, y, samples in session.batches():
                train(x, y, samples, epoch)
            scheduler.step()
    elif how == "accumulate":
        for _, (x, y, samples) in session.enumerate(epochs=EPOCHS):
            train(x, y, samples, session.epoch)
    elif how == "stream":
        more, read = session.stream(data()), session.variables(samples=0)
        for x, y, samples in session.batches(epochs=EPOCHS):
            _, _, others = next(more)
            # With other ranks its batches are not those of the first loader: counted from the end.
            taken = torch.tensor(len(others))
            dist.all_reduce(taken)
            seen.write(f"{session.step_number + 1} {100 + read.samples // 48} {others.tolist()}\n")
            read.samples += int(taken)
            train(x, y, samples, session.epoch)
    else:
        prefetcher = Prefetcher(session.batches(epochs=EPOCHS))
        while (batch := prefetcher.next()) is not None:
            x, y, samples = batch
            train(x, y, samples, 0)  # the session's epoch may be that of the batch ahead
    if rank == 0:
        print(f"lr {scheduler.get_last_lr()[0]:.6f}", flush=True)  # noqa: T201
    session.finish()
    dist.destroy_process_group()
