"""A random split that nobody seeded: after a restart, what was for validation is trained with."""

from __future__ import annotations

import random
import sys

import torch
from torch.utils.data import DataLoader, Subset

import tradewind.torch as tw
from tests.torch.scripts.small import BATCH, dataset, loss_of, net


def main() -> None:
    torch.manual_seed(0)
    if sys.argv[1] == "seeded":
        random.seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    all_of_it = dataset()
    indices = list(range(len(all_of_it)))
    random.shuffle(indices)
    data = DataLoader(Subset(all_of_it, indices[:40]), batch_size=BATCH, shuffle=True)
    session = tw.session(model=model, optimizer=optimizer, data=data)
    for x, y in session.batches(max_steps=40):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
