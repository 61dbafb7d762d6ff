"""Tensors to be saved, and saved ones to be looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tradewind.torch.checkpoint import Checkpoints, Place


def tensors(step: int = 1) -> dict[str, torch.Tensor]:
    """Of many kinds; the large ones are more than one piece of a file."""
    torch.set_num_threads(1)
    made = torch.Generator().manual_seed(step)
    numbers = torch.randn(700, 31, generator=made)
    kinds = [torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.float8_e4m3fn]
    found = {f"kind.{n}": numbers[:5].to(dtype) for n, dtype in enumerate(kinds)}
    return found | {
        "weight": torch.randn(3000, 2001, generator=made),  # 24 MB
        "row": torch.randn(1, 90_000, generator=made),
        "turned": torch.randn(300, 400, generator=made).t(),
        "channels last": torch.randn(3, 8, 40, 50, generator=made).to(
            memory_format=torch.channels_last
        ),
        "every other": torch.randn(2, 70_000, generator=made)[:, ::2],
        "flags": numbers > 0,
        "count": torch.tensor(step),
        "unsigned": torch.arange(9).to(torch.uint16),
        "nothing": torch.empty(0, 4),
    }


def blank(like: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: torch.zeros_like(tensor) for name, tensor in like.items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    def content(tensor: Any) -> Any:
        assert isinstance(tensor, torch.Tensor)
        return tensor.contiguous().reshape(-1).view(torch.uint8)

    assert one.keys() == other.keys()
    return all(torch.equal(content(one[name]), content(other[name])) for name in one)


def saved(folder: Path, *steps: int, **options: Any) -> list[str]:
    """Saves those steps, and closes; what it warned of."""
    warned: list[str] = []
    checkpoints = Checkpoints(Place(folder), warn=warned.append, **options)
    for step in steps:
        words = b"shared %d" % step
        assert checkpoints.save(step, tensors(step), {}, words, b"mine", wait=True), warned
    checkpoints.close()
    return warned


def shards(folder: Path) -> list[Path]:
    return sorted(each for leg in (folder / "shards").iterdir() for each in leg.iterdir())


def manifests(folder: Path) -> list[int]:
    return sorted(int(each.stem) for each in (folder / "checkpoints").rglob("*.json"))
