"""Two sources for each step, by `zip`: a list of batches that goes round, a loader that does, or
the session's stream. `thread`: batches are read ahead by a thread of the script's own."""

from __future__ import annotations

import itertools
import queue
import sys
import threading
from typing import Any

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    more = loader(20)
    kept = list(more)
    session = tw.session(model=model, optimizer=optimizer, data=loader())
    batches: Any = session.batches(max_steps=40)
    if how == "thread":
        made: queue.Queue[Any] = queue.Queue(maxsize=2)

        def read() -> None:
            for batch in session.batches(max_steps=40):
                made.put(batch)

        threading.Thread(target=read, daemon=True).start()
        pairs: Any = ((batch, batch) for batch in iter(made.get, None))
    elif how == "stream":
        pairs = zip(batches, session.stream(more), strict=False)
    else:
        pairs = zip(batches, itertools.cycle(kept if how == "cycle" else more), strict=False)
    for (x, y), (u, _) in pairs:
        loss = loss_of(model(x), y) + model(u).softmax(1).var()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
