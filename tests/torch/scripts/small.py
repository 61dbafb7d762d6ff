"""What these scripts train: small, and with everything that can go wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SAMPLES, BATCH = 48, 4  # 12 batches an epoch


def features(size: int = SAMPLES) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(size, 6, generator=generator)
    return x, (x.sum(1) > 0).long()


def dataset(size: int = SAMPLES) -> TensorDataset:
    return TensorDataset(*features(size))


def loader(size: int = SAMPLES, **more: Any) -> DataLoader[Any]:
    return DataLoader(dataset(size), batch_size=BATCH, shuffle=True, **more)


def net() -> nn.Module:
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2)
    )


loss_of = nn.functional.cross_entropy
