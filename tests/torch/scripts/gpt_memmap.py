"""In the style of nanoGPT: no loader, random places of a file of tokens, the learning rate by a
function of the iteration, micro-batches. `own`: it keeps its own count, as it is published."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import tradewind.torch as tw


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(1337)
    path = Path("train.bin")
    if not path.exists():
        np.random.RandomState(0).randint(0, 60, 5000).astype(np.uint16).tofile(path)
    tokens = np.memmap(path, dtype=np.uint16, mode="r")
    model = nn.Sequential(nn.Embedding(60, 16), nn.Linear(16, 60))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    session = tw.session(model=model, optimizer=optimizer)

    def get_batch() -> tuple[torch.Tensor, torch.Tensor]:
        ix = torch.randint(len(tokens) - 9, (4,))
        x = torch.stack([torch.from_numpy(tokens[i : i + 8].astype(np.int64)) for i in ix])
        y = torch.stack([torch.from_numpy(tokens[i + 1 : i + 9].astype(np.int64)) for i in ix])
        return x, y

    def get_lr(it: int) -> float:
        return 1e-3 + 0.5 * 9e-3 * (1 + math.cos(math.pi * it / 40))

    def update(iter_num: int) -> torch.Tensor:
        for group in optimizer.param_groups:
            group["lr"] = get_lr(iter_num)
        for _micro in range(2):
            x, y = get_batch()
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten()) / 2
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    if how == "steps":
        for iter_num in session.steps(40):
            session.step(loss=update(iter_num))
    else:
        iter_num = session.step_number if how == "number" else 0
        while iter_num < 40:
            loss = update(iter_num)
            iter_num += 1
            session.step(loss=loss)
    session.finish()
