"""What looks as if it were wrong, and is not: a wrapper around the model, a frozen one that only
looks, a loss with a constant, batches that are passed over, and a clock."""

from __future__ import annotations

import time

import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.scripts.small import loader, net


class Wrapper(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


def main() -> None:
    torch.manual_seed(0)
    model = net()
    wrapped, frozen = Wrapper(model), net().eval().requires_grad_(False)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = tw.session(model=model, optimizer=optimizer, data=loader())
    began = time.perf_counter()
    for i, (x, y) in session.enumerate(max_steps=40):
        if i % 5 == 0:  # a bad batch
            continue
        loss = criterion(wrapped(x), y) + 0.1 * (wrapped(x) - frozen(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        took_s = time.perf_counter() - began
        began = time.perf_counter()
        session.step(loss=loss)
    assert took_s >= 0
