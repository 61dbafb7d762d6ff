"""Done once, and done again where a training resumes: numbers that are drawn at the beginning of an
epoch (`seeded` by its number, or not), a layer that takes its parameters from the first batch, a
buffer that is made in the first forward pass."""

from __future__ import annotations

import random
import sys

import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


class Initialized(nn.Module):
    """As normalizing flows have it."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(6))
        self.ready = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.ready:
            self.shift.data = -x.mean(0)
            self.ready = True
        return x + self.shift


class Made(nn.Module):
    center: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "center"):
            self.register_buffer("center", torch.zeros(6))
        self.center = 0.9 * self.center + 0.1 * x.mean(0)
        return x - self.center


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    random.seed(0)
    first = {"initialized": Initialized, "made": Made}.get(how, nn.Identity)()
    model = nn.Sequential(first, net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = tw.session(model=model, optimizer=optimizer, data=loader())
    for epoch in range(4):
        if how == "seeded":
            random.seed(epoch)
            torch.random.manual_seed(epoch)
        mix = 1 + random.random()
        for x, y in session.batches():
            loss = loss_of(model(mix * x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            session.step(loss=loss)
    session.finish()
