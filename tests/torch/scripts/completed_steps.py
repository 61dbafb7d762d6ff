"""In the style of examples for Accelerate: the script counts `completed_steps`, keeps the best
loss, and sets the learning rate by its own count."""

from __future__ import annotations

import sys

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


def main() -> None:
    kept = sys.argv[1] == "kept"
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = tw.session(model=model, optimizer=optimizer, data=loader())
    if kept:
        mine = session.variables(completed_steps=0, best=100.0)
        for x, y in session.batches(epochs=4):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + mine.completed_steps)
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mine.completed_steps += 1
            mine.best = min(mine.best, loss.item())
            session.step(loss=loss, best=mine.best)
        return
    completed_steps, best = 0, 100.0
    for x, y in session.batches(epochs=4):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + completed_steps)
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        completed_steps += 1  # noqa: SIM113 -- as people write it
        best = min(best, loss.item())
        session.step(loss=loss, best=best)
