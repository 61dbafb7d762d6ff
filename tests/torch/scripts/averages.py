"""Averages of the weights in every place where people keep them. `late`: they begin after the first
steps. A class that is not in the script's own files counts as a library's."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

import tradewind.torch as tw
from tests.torch.scripts.small import loader, loss_of, net

Update = Callable[[], None]


class Shadows:
    """As diffusers' and torch_ema's are."""

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self.shadow_params = [each.detach().clone() for each in parameters]

    def step(self, parameters: Iterable[torch.Tensor]) -> None:
        for mine, theirs in zip(self.shadow_params, parameters, strict=True):
            mine.sub_(0.1 * (mine - theirs.detach()))

    def state_dict(self) -> dict[str, Any]:
        return {"shadow_params": self.shadow_params}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.shadow_params = [each.clone() for each in state["shadow_params"]]


class Tables:
    """Without anything to save it by."""

    def __init__(self, model: nn.Module) -> None:
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}

    def step(self, model: nn.Module) -> None:
        for name, p in model.named_parameters():
            self.average[name] = 0.9 * self.average[name] + 0.1 * p.detach()


Shadows.__module__ = Tables.__module__ = "averaging"


class Trainer:
    """Which has everything, as many repositories do."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.helpers = {"ema": Shadows(model.parameters())}

    def update(self) -> None:
        self.helpers["ema"].step(self.model.parameters())


def in_closure(model: nn.Module) -> Update:
    average = [p.detach().clone() for p in model.parameters()]

    def update() -> None:
        torch._foreach_lerp_(average, [p.detach() for p in model.parameters()], 0.1)

    return update


def copied(model: nn.Module) -> Update:
    average = copy.deepcopy(model).requires_grad_(False)

    def update() -> None:
        for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(theirs.detach(), 0.1)

    return update


def main() -> None:
    where, _, late = sys.argv[1].partition("-")
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shadows, tables = Shadows(model.parameters()), Tables(model)
    trainer = Trainer(model)
    here = [p.detach().clone() for p in model.parameters()]
    long = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    closure, copy_of_it = in_closure(model), copied(model)
    extra = {"ema": shadows} if where == "given" else {"all": trainer.helpers["ema"]}
    session = tw.session(
        model=model,
        optimizer=optimizer,
        data=loader(),
        extra=extra if where in ("given", "inside") else None,
    )
    mine = session.variables(average=[each.clone() for each in here])
    for x, y in session.batches(max_steps=40):
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if late and session.step_number < 5:
            session.step(loss=loss)
            continue
        if where in ("attribute", "given"):
            shadows.step(model.parameters())
        elif where in ("nested", "inside"):
            trainer.update()
        elif where == "closure":
            closure()
        elif where == "copy":
            copy_of_it()
        elif where == "table":
            tables.step(model)
        elif where == "local":
            torch._foreach_lerp_(here, [p.detach() for p in model.parameters()], 0.1)
        elif where == "variables":
            torch._foreach_lerp_(mine.average, [p.detach() for p in model.parameters()], 0.1)
        elif where == "vector":
            long.lerp_(nn.utils.parameters_to_vector(model.parameters()).detach(), 0.1)
        session.step(loss=loss)


if __name__ == "__main__":
    main()
