"""A curriculum: the loop makes the data harder as it goes. `growing`: between epochs, where workers
make samples, and batches grow too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

import tradewind.torch as tw
from tests.torch.scripts.small import BATCH, SAMPLES, features, loss_of, net


class Harder(Dataset[Any]):
    def __init__(self) -> None:
        self.x, self.y = features()
        self.level = 0.0

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index] + self.level * torch.randn(6), self.y[index]


class Growing(Sampler[list[int]]):
    def __init__(self) -> None:
        self.size = 8

    def __len__(self) -> int:
        return -(-SAMPLES // self.size)

    def __iter__(self) -> Iterator[list[int]]:
        numbers = torch.randperm(SAMPLES).tolist()
        return iter([numbers[i : i + self.size] for i in range(0, SAMPLES, self.size)])


def growing(model: torch.nn.Module, data: Harder, optimizer: torch.optim.Optimizer) -> None:
    sampler = Growing()
    loader = DataLoader(data, batch_sampler=sampler, num_workers=1)
    session = tw.session(model=model, optimizer=optimizer, data=loader)
    for epoch in session.epochs(4):
        sampler.size, data.level = 8 + epoch, 0.1 * epoch
        for x, y in session.batches():
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            session.step(loss=loss)


def main() -> None:
    torch.manual_seed(0)
    model, data = net(), Harder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if sys.argv[1] == "growing":
        growing(model, data, optimizer)
        return
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    session = tw.session(model=model, optimizer=optimizer, data=loader)
    if sys.argv[1] == "kept":
        data.level = 0.01 * session.step_number
    for x, y in session.batches(max_steps=40):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
        data.level = 0.01 * session.step_number
