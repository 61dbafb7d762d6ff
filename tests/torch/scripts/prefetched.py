"""Prefetching: in the style of NVIDIA's examples, which fetch at the beginning of a step, and of
nanoGPT, which fetches while the GPU is busy with the forward pass."""

from __future__ import annotations

import sys

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.preload()

    def preload(self) -> None:
        self.batch = next(self.batches, None)

    def next(self):
        batch = self.batch
        self.preload()
        return batch


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
    session = tw.session(model=model, optimizer=optimizer, scheduler=scheduler, data=loader())

    def forward(batch):
        return loss_of(model(batch[0]), batch[1])

    def backward(loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    if how == "class":
        prefetcher = Prefetcher(session.batches(max_steps=30))
        while (batch := prefetcher.next()) is not None:
            loss = forward(batch)
            backward(loss)
            scheduler.step()
            session.step(loss=loss)
    else:
        batches = session.batches(max_steps=30)
        batch = next(batches, None)
        while batch is not None:
            loss = forward(batch)
            batch = next(batches, None)  # while the device is busy
            backward(loss)
            if how == "late":
                session.step(loss=loss)
                scheduler.step()
            else:
                scheduler.step()
                session.step(loss=loss)
    session.finish()
