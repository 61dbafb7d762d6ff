"""In the style of detection and TPU code: a class of one's own around a loader that shuffles.
`ahead`: it reads ahead in a thread, while a step is made. `threads`: so it does, and what it gives
is other each time."""

from __future__ import annotations

import queue
import random
import sys
import threading
import time

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


class AheadLoader(DeviceLoader):
    def __iter__(self):
        self.made: queue.Queue[object] = queue.Queue()
        self.wanted = threading.Semaphore(0)

        def read() -> None:
            iterator = iter(self.inner)
            while self.wanted.acquire():
                self.made.put(next(iterator, None))

        threading.Thread(target=read, daemon=True).start()
        self.ahead()
        while (batch := self.made.get()) is not None:
            yield batch
            if self.made.empty():  # what is read again when a training resumes
                self.ahead()

    def ahead(self) -> None:
        self.wanted.release()
        while self.made.empty():
            time.sleep(0.001)


WRAPPERS = {"class": DeviceLoader, "threads": ThreadedLoader, "ahead": AheadLoader}


def main() -> None:
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = WRAPPERS[sys.argv[1]](loader())
    session = tw.session(model=model, optimizer=optimizer, data=data)
    for x, y in session.batches(epochs=4):
        if isinstance(data, AheadLoader):
            data.ahead()
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
