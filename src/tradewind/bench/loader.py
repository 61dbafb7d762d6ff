"""What a loader's settings are worth: usual ones and those that `tw.loader` chooses, in one run.

The training is a step that waits, as for a GPU. What is counted is samples a second that get
through steps and loader together, once the first batch is there; the settings take turns, so that a
busy machine slows them alike.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.base import clock
from tradewind.torch.data import machine as machines
from tradewind.torch.data import measuring
from tradewind.torch.data import tokens as tokens_

REPEATS = 2
_FIXED = 4  # what many scripts have

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Kind:
    """One dataset, and the step that it feeds."""

    name: str
    dataset: Any
    batch: int
    step_s: float


class Images:
    """224×224 crops of compressed 256×256 pictures, flipped and scaled: all of it computing."""

    def __init__(self) -> None:
        import numpy as np

        rng = np.random.RandomState(0)
        base = rng.randint(0, 256, (32, 32, 3)).astype("uint8").repeat(8, 0).repeat(8, 1)
        noise = [rng.randint(0, 16, base.shape).astype("uint8") for _ in range(8)]
        self._files = [zlib.compress((base ^ each).tobytes(), 1) for each in noise]

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> Any:
        import torch

        data = bytearray(zlib.decompress(self._files[index % len(self._files)]))
        picture = torch.frombuffer(data, dtype=torch.uint8).view(256, 256, 3)
        top, left, flip = (int(each) for each in torch.randint(0, 33, (3,)))
        crop = picture[top : top + 224, left : left + 224].permute(2, 0, 1).float() / 255
        return (crop.flip(2) if flip % 2 else crop).contiguous(), index % 1000


class Tiny:
    """Four numbers and a label."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        import torch

        return torch.full((4,), float(index)), index % 10


class Distant:
    """A read from a store that takes 10 ms and no processor."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> Any:
        import torch

        clock.sleep(0.01)
        return torch.zeros(3, 64, 64), index


def kinds(folder: Path) -> Iterator[Kind]:
    """Realistic ones, made on the spot."""
    import numpy as np

    rng = np.random.RandomState(0)
    path = folder / "tokens.npy"
    some = (rng.randint(0, 50_000, 1_000_000) for _ in range(16))
    tokens_.write_tokens(path, some, vocab=50_257)
    yield Kind("images", Images(), 32, 0.020)
    yield Kind("tiny samples", Tiny(), 256, 0.005)
    yield Kind("tokens", tokens_.tokens(path, 1024), 16, 0.005)
    yield Kind("slow store", Distant(), 16, 0.020)


def measure(
    many: Callable[[Path], Iterator[Kind]] = kinds,
    *,
    seconds: float = 1.5,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory(prefix="tradewind-loader-") as folder:
            chosen = list(many(Path(folder)))
            found = {}
            for number, kind in enumerate(chosen):
                found[kind.name] = _measured(kind, Path(folder), seconds)
                progress(number + 1, len(chosen))
    finally:
        torch.set_num_threads(before)
    here = machines.machine(gpu=torch.cuda.is_available())
    return {"cores": here.cores, "seconds": seconds, "repeats": REPEATS, "datasets": found}


def _measured(kind: Kind, folder: Path, seconds: float) -> dict[str, Any]:
    from tradewind.torch.data.loader import loader

    cores = max(1, len(os.sched_getaffinity(0)))
    began = clock.stopwatch()
    ours = loader(
        kind.dataset,
        kind.batch,
        folder=folder / kind.name.replace(" ", "-"),
        step_s=kind.step_s,
        quiet=True,
    )
    took_s = clock.stopwatch() - began
    mine = {"num_workers": ours.num_workers, "prefetch_factor": ours.prefetch_factor}
    settings: dict[str, dict[str, Any]] = {
        "0 workers": {"num_workers": 0},
        f"{cores} workers, one a core": {"num_workers": cores},
        f"{_FIXED} workers": {"num_workers": _FIXED},
        "ours": mine,
    }
    rates: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(REPEATS):
        for name, options in settings.items():
            rates[name].append(_rate(kind, options, seconds))
    speeds = {name: round(median(each), 1) for name, each in rates.items()}
    others = max(speed for name, speed in speeds.items() if name != "ours")
    return {
        "batch": kind.batch,
        "step_ms": round(1e3 * kind.step_s, 1),
        "samples_per_s": speeds,
        "ours": {**mine, "chosen_in_s": round(took_s, 2)},
        "ours_against_best": round(speeds["ours"] / others, 2),
        "ours_against_0_workers": round(speeds["ours"] / speeds["0 workers"], 2),
    }


def _rate(kind: Kind, options: dict[str, Any], seconds: float) -> float:
    """Samples a second that get through steps and loader."""
    from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

    in_order = SequentialSampler(kind.dataset)
    sampler = measuring.Ending(BatchSampler(in_order, kind.batch, drop_last=False))
    with measuring.unwarned():
        loader = DataLoader(kind.dataset, batch_sampler=sampler, **options)
        batches = iter(loader)
    next(batches)
    began, count = clock.stopwatch(), 0
    while clock.stopwatch() - began < seconds:
        try:
            next(batches)
        except StopIteration:
            with measuring.unwarned():
                batches = iter(loader)
            continue
        count += 1
        clock.sleep(kind.step_s)
    rate = count * kind.batch / (clock.stopwatch() - began)
    sampler.end(batches)
    return max(rate, 1e-9)
