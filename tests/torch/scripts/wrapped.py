"""In the style of detection and TPU code: a class of one's own around a loader that shuffles.
`threads`: it reads ahead in a thread, and what it gives is other each time."""

from __future__ import annotations

import queue
import random
import sys
import threading

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


class DeviceLoader:
    """Moves batches to where the model is, and turns some of them."""

    def __init__(self, inner):
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self):
        for x, y in self.inner:
            yield (x.flip(1) if random.random() < 0.5 else x), y


class ThreadedLoader(DeviceLoader):
    def __iter__(self):
        made: queue.Queue[object] = queue.Queue()
        entropy = random.SystemRandom().random()

        def read() -> None:
            for x, y in self.inner:
                made.put((x * entropy, y))
            made.put(None)

        threading.Thread(target=read, daemon=True).start()
        while (batch := made.get()) is not None:
            yield batch


def main() -> None:
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapper = ThreadedLoader if sys.argv[1] == "threads" else DeviceLoader
    session = tw.session(model=model, optimizer=optimizer, data=wrapper(loader()))
    for x, y in session.batches(epochs=4):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
