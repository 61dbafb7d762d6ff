"""In the style of masked autoencoders: generators deep in lists of transforms, in an object that
collates, in a subset, at the top of the file, and in the loop itself."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset

import tradewind.torch as tw
from tests.torch.scripts.small import BATCH, SAMPLES, features, loss_of, net

RNG = np.random.default_rng(7)


class Compose:
    def __init__(self, transforms: list[Any]) -> None:
        self.transforms = transforms

    def __call__(self, x: Any) -> Any:
        for each in self.transforms:
            x = each(x)
        return x


class Noise:
    def __init__(self) -> None:
        self.rng = random.Random(1)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.rng.random() / 10


class Images(Dataset[Any]):
    def __init__(self) -> None:
        self.x, self.y = features()
        self.transform = Compose([Compose([Compose([Compose([Noise()])])])])

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.transform(self.x[index]) * (1 + RNG.random() / 10), self.y[index]


class Masking:
    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(5)

    def __call__(self, samples: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.stack([each for each, _ in samples])
        mask = torch.rand(x.shape, generator=self.generator) > 0.2
        return x * mask, torch.stack([y for _, y in samples])


def main() -> None:
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    workers = int(sys.argv[1])
    data = DataLoader(
        Subset(Images(), range(44)),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        collate_fn=Masking(),
    )
    session = tw.session(model=model, optimizer=optimizer, data=data)
    for x, y in session.batches(max_steps=40):
        mix = float(RNG.beta(0.5, 0.5))
        loss = loss_of(model(x * mix + x.flip(0) * (1 - mix)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        session.step(loss=loss, mix=mix)
