"""Gradient accumulation, four ways: by `enumerate` of the loader, by that of the session, by its
number of steps, and with one session.step() for each optimizer step."""

from __future__ import annotations

import sys

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net

EVERY = 4


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    session = tw.session(model=model, optimizer=optimizer, data=loader(40 if how == "last" else 48))
    length = 10 if how == "last" else 12

    def backward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss = loss_of(model(x), y) / EVERY
        loss.backward()
        return loss

    def update() -> None:
        optimizer.step()
        optimizer.zero_grad()

    if how in ("enumerate", "last"):
        for _epoch in session.epochs(4):
            for i, (x, y) in enumerate(session.batches()):
                loss = backward(x, y)
                if (i + 1) % EVERY == 0 or (how == "last" and i + 1 == length):
                    update()
                session.step(loss=loss)
    elif how == "session":
        for i, (x, y) in session.enumerate(epochs=4):
            loss = backward(x, y)
            if (i + 1) % EVERY == 0:
                update()
            session.step(loss=loss)
    elif how == "number":
        for x, y in session.batches(epochs=4):
            loss = backward(x, y)
            if (session.step_number + 1) % EVERY == 0:
                update()
            session.step(loss=loss)
    else:  # one step for several batches
        batches = session.batches(max_steps=30)
        running = True
        while running:
            for _ in range(EVERY):
                batch = next(batches, None)
                if batch is None:
                    running = False
                    break
                loss = backward(*batch)
            else:
                update()
                session.step(loss=loss)
    session.finish()
