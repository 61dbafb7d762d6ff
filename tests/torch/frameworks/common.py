"""What the small trainings under frameworks share: data that is drawn, a model, and words."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset

FEATURES = 12

for name in ("deepspeed", "mlflow"):  # Accelerate asks for what is installed: once, for all lives
    with suppress(ImportError):
        import_module(name)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=103)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--every-steps", type=int)
    parser.add_argument("--every-s", type=float)
    parser.add_argument("--step-s", type=float, default=0.0)
    parser.add_argument("--best", action="store_true", help="keep the best, and stop early")
    parser.add_argument("--resume", default="", help="as a script's own argument says")
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--stream", action="store_true")
    return parser.parse_args()


class Samples(Dataset[Any]):
    """Augmented by everything people draw from."""

    def __init__(self, number: int, *, noise: float = 0.1) -> None:
        self.number, self.noise, self.own = number, noise, np.random.default_rng()

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        x = torch.randn(FEATURES, generator=generator)
        scale = random.random() + float(np.random.rand()) + float(self.own.random())
        return {
            "x": x * (1 + self.noise * scale) + self.noise * torch.randn(FEATURES),
            "labels": x.sum().tanh(),
        }


class Stream(IterableDataset[Any]):
    """The same samples, one after the other, goes on where it was."""

    def __init__(self, samples: Samples) -> None:
        self.samples, self.at = samples, 0

    def __iter__(self) -> Iterator[Any]:
        start, self.at = self.at, 0
        for index in range(start, len(self.samples)):
            self.at = index + 1
            yield self.samples[index]
        self.at = 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


def data(given: argparse.Namespace) -> Dataset[Any]:
    samples = Samples(given.samples)
    return Stream(samples) if given.stream else samples


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, 32),
            torch.nn.BatchNorm1d(32),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(32, 16),
            torch.nn.Linear(16, 1),
        )

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        made = self.layers(x).squeeze(1)
        return {"loss": (made - labels).square().mean(), "logits": made}


def begun(seed: int) -> None:
    torch.set_num_threads(1)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def stepped(given: argparse.Namespace, step: int) -> None:
    print("step", step, flush=True)  # noqa: T201
    time.sleep(given.step_s)


def written(given: argparse.Namespace, model: Any, rank: int) -> None:
    whole = {}
    for name, tensor in model.state_dict().items():
        whole[name] = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    if rank == 0:
        torch.save(whole, given.folder / "weights.pt")
