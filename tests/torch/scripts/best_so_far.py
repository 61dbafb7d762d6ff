"""The best loss so far decides something, and begins with infinity; or an environment of somebody
else's has a generator of its own (`environment`); or the next batch is fetched in the middle of a
step, in a loop of the script's own (`ahead`)."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import features, loader, loss_of, net


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(x, y):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        return loss

    if how == "best":
        session = tw.session(model=model, optimizer=optimizer, data=loader())
        best = float("inf")
        for x, y in session.batches(max_steps=40):
            loss = train(x, y)
            optimizer.param_groups[0]["lr"] = 0.1 * min(best, 1.0)
            optimizer.step()
            best = min(best, loss.item())
            session.step(loss=loss)
        return
    whole = features()
    session = tw.session(model=model, optimizer=optimizer)
    if how == "environment":
        environment = SimpleNamespace(inner=SimpleNamespace(np_random=random.Random(5)))
        for _ in session.steps(40):
            chosen = environment.inner.np_random.sample(range(48), 4)
            loss = train(*(each[chosen] for each in whole))
            optimizer.step()
            session.step(loss=loss)
        return

    def get_batch():
        chosen = torch.randint(48, (4,))
        return [each[chosen] for each in whole]

    batch = get_batch()
    while session.step_number < 40:
        loss = loss_of(model(batch[0]), batch[1])
        batch = get_batch()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
