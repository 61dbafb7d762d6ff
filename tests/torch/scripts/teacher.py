"""Self-distillation: a teacher that is an average of the student, updated by hand. Not given to the
session, given, given with frozen=False, or kept as a table of tensors."""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net


class Shadow:
    """As many repositories have it."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self, model: torch.nn.Module) -> None:
        for name, p in model.named_parameters():
            self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p.detach()

    def total(self) -> float:
        return float(sum(each.double().sum() for each in self.shadow.values()))


class Kept(Shadow):
    def state_dict(self) -> dict[str, Any]:
        return {"shadow": self.shadow}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.shadow = dict(state["shadow"])


def main() -> None:
    how = sys.argv[1]
    torch.manual_seed(0)
    model = net()
    teacher = copy.deepcopy(model).requires_grad_(False)
    average = (Kept if how == "extra" else Shadow)(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    more: dict[str, Any] = {}
    if how == "given":
        more = {"ema": teacher}
    elif how == "frozen":
        model.add_module("teacher", teacher)
        more = {"frozen": False}
    elif how == "extra":
        more = {"extra": {"average": average}}
    session = tw.session(model=model, optimizer=optimizer, data=loader(), **more)
    student = model if how != "frozen" else model[:-1]
    for x, y in session.batches(max_steps=40):
        loss = loss_of(student(x), y)
        told = 0.0
        if how in ("shadow", "extra"):
            told = average.total()
        else:
            target = teacher(x).softmax(1)
            loss = loss + (student(x).softmax(1) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if how in ("shadow", "extra"):
            average.update(model)
        else:
            with torch.no_grad():
                for mine, theirs in zip(teacher.parameters(), student.parameters(), strict=True):
                    mine.data.mul_(0.9).add_(theirs.data, alpha=0.1)
        session.step(loss=loss, told=told)
