"""Reinforcement learning: no loader, and a buffer of what was seen, that grows."""

from __future__ import annotations

import random
import sys
from collections import deque
from typing import Any

import torch

import tradewind.torch as tw


class Buffer(deque[list[float]]):
    def state_dict(self) -> dict[str, Any]:
        return {"items": list(self)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.clear()
        self.extend(state["items"])


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    random.seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    buffer: Any = Buffer(maxlen=500) if how == "kept" else deque(maxlen=500)
    extra = {"buffer": buffer} if how == "kept" else None
    session = tw.session(model=model, optimizer=optimizer, extra=extra)
    for _ in session.steps(40):
        for _ in range(3):
            buffer.append([random.random() for _ in range(3)])
        x = torch.tensor(random.choices(list(buffer), k=4))
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
