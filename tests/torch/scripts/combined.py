"""Any of these patterns with any other: what a test draws, as JSON."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import tradewind.torch as tw
from tests.torch.scripts.small import BATCH, features, loss_of, net
from tests.torch.scripts.wrapped import DeviceLoader

RNG = np.random.default_rng(3)


class Augmented(Dataset[Any]):
    def __init__(self, size: int, how: str) -> None:
        self.x, self.y = features(size)
        self.how, self.rng = how, random.Random(2)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        noise = 0.0
        if self.how == "torch":
            noise = torch.rand(()).item()
        elif self.how == "own":
            noise = self.rng.random()
        elif self.how == "module":
            noise = float(RNG.random())
        return self.x[index] + 0.1 * noise, self.y[index]


def main() -> None:
    drawn = json.loads(sys.argv[1])
    torch.manual_seed(0)
    random.seed(0)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
    teacher = copy.deepcopy(model).requires_grad_(False)
    data: Any = DataLoader(
        Augmented(drawn["samples"], drawn["noise"]),
        batch_size=BATCH,
        shuffle=True,
        num_workers=drawn["workers"],
        drop_last=drawn["drop_last"],
    )
    if drawn["wrapped"]:
        data = DeviceLoader(data)
    more: dict[str, Any] = {}
    if drawn["scheduler"] == "given":
        more["scheduler"] = scheduler
    if drawn["teacher"] == "given":
        more["ema"] = teacher
    session = tw.session(model=model, optimizer=optimizer, data=data, **more)
    count = 0

    def train(i: int, x: torch.Tensor, y: torch.Tensor) -> None:
        nonlocal count
        mix = {"none": 0.0, "python": random.random(), "module": float(RNG.random())}[drawn["mix"]]
        loss = loss_of(model(x * (1 - mix) + x.flip(0) * mix), y)
        if drawn["teacher"] != "none":
            loss = loss + (model(x) - teacher(x)).square().mean()
        loss.backward()
        every = drawn["accumulate"]
        number = {"index": i, "count": count, "step": session.step_number}[drawn["counter"]]
        if (number + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        count += 1
        if drawn["teacher"] != "none":
            with torch.no_grad():
                for mine, theirs in zip(teacher.parameters(), model.parameters(), strict=True):
                    mine.mul_(0.9).add_(theirs, alpha=0.1)
        if drawn["stepped"] == "batch":
            scheduler.step()
        session.step(loss=loss)

    def numbered() -> Iterator[tuple[int, Any]]:
        return (
            session.enumerate() if drawn["enumerate"] == "session" else enumerate(session.batches())
        )

    epochs = range(8) if drawn["loop"] == "range" else session.epochs(8)
    for _epoch in epochs:
        for i, (x, y) in numbered():
            train(i, x, y)
        if drawn["stepped"] == "epoch":
            scheduler.step()
    session.finish()
