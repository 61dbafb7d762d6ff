"""Sharpness-aware minimization, whose optimizer has another one inside that makes the steps."""

from __future__ import annotations

import sys
from typing import Any

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho: float = 0.05, **more):
        super().__init__(params, dict(rho=rho, **more))
        self.base_optimizer = base(self.param_groups, **more)
        self.param_groups: list[dict[str, Any]] = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["e"] = e = p.grad * 0.05
                p.add_(e)
        self.zero_grad()

    @torch.no_grad()
    def second_step(self) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e"])
        self.base_optimizer.step()
        self.zero_grad()


def main() -> None:
    torch.manual_seed(0)
    model = net()
    sam = SAM(model.parameters(), torch.optim.AdamW, lr=0.01)
    both = {"sam": sam, "base": sam.base_optimizer}
    given = both if sys.argv[1] == "both" else sam
    session = tw.session(model=model, optimizer=given, data=loader())
    for x, y in session.batches(max_steps=40):
        loss = loss_of(model(x), y)
        loss.backward()
        sam.first_step()
        loss_of(model(x), y).backward()
        sam.second_step()
        session.step(loss=loss)
