"""What is done between making the session and the loop, and should have been done before."""

from __future__ import annotations

import sys

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import features, loader, loss_of, net


class Counting(torch.nn.Module):
    """Changes by being used: an attribute, and a buffer that is not persistent."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen += x.abs().mean().detach()
        return x * (1 + 0.01 * self.calls) + 0.001 * self.seen


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = torch.nn.Sequential(Counting(), net()) if how == "attributes" else net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    session = tw.session(model=model, optimizer=optimizer, data=loader())
    if how == "double":
        model.double()
    if how == "loaded":
        model.load_state_dict(net().state_dict())
    if how == "warm":
        x, y = features(8)
        loss_of(model(x), y).backward()
        optimizer.step()
    for x, y in session.batches(max_steps=40):
        loss = loss_of(model(x.double() if how == "double" else x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss)
