"""Factories that go wrong, each in its own way."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor, nn

NOT_CALLABLE = 3


def raises() -> Any:
    raise KeyError("no such size: huge")


def leaves() -> Any:
    sys.exit(0)


def gives_a_number() -> Any:
    return 42


def four_parts() -> Any:
    return nn.Linear(1, 1), torch.zeros(2, 1), None, None


def odd_inputs() -> Any:
    return nn.Linear(1, 1), "words"


def odd_loss() -> Any:
    return nn.Linear(1, 1), torch.zeros(2, 1), "words"


def scalar_inputs() -> Any:
    return nn.Linear(1, 1), torch.tensor(3.0)


def vector_loss() -> Any:
    return nn.Linear(1, 4), torch.zeros(2, 1), lambda output: output.sum(0)


def frozen() -> Any:
    return nn.Linear(1, 4).requires_grad_(False), torch.zeros(2, 1)


def lazy() -> Any:
    return nn.LazyLinear(4), torch.zeros(2, 1)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:  # needs a value
            return x
        out: Tensor = self.line(x)
        return out


def branching() -> Any:
    return Branching(), torch.zeros(2, 4)


class Picking(Branching):
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.line(x[x[:, 0] > 0])
        return out


def picking() -> Any:
    return Picking(), torch.zeros(2, 4)


class Wrong(Branching):
    def forward(self, x: Tensor) -> Tensor:
        return x @ torch.zeros(5, 5)


def wrong_shapes() -> Any:
    return Wrong(), torch.zeros(2, 4)


class Square(Branching):
    """Every sample is compared with every other."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.line(x)
        return out @ out.t()


def quadratic() -> Any:
    return Square(), torch.zeros(2, 4)


def talks() -> Any:
    print("building")  # noqa: T201
    return nn.Linear(1, 4), torch.zeros(2, 1)
