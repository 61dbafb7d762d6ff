"""Hard examples come more often: the loop changes the weights of a sampler."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader, WeightedRandomSampler

import tradewind.torch as tw
from tests.torch.scripts.small import BATCH, dataset, loss_of, net


def main() -> None:
    torch.manual_seed(0)
    model, data = net(), dataset(20)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = WeightedRandomSampler(list(range(1, 21)), num_samples=20)
    session = tw.session(
        model=model, optimizer=optimizer, data=DataLoader(data, batch_size=BATCH, sampler=sampler)
    )
    for x, y in session.batches(epochs=8):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sampler.weights = sampler.weights.roll(1) * (1 + float(loss.detach()))
        session.step(loss=loss)
