"""What a session costs a training: the same loop without and with one, in turns.

A decoder is trained on random tokens through a DataLoader. The plain loop has no checkpoints and
tells nothing; ours saves every so many steps, tells its progress and keeps its metrics. Each turn
is timed whole, from an idle device to an idle device, so that a save's stall counts wherever it
falls. On a GPU the plain loop's tokens are compared with their estimate too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tradewind import clock
from tradewind.bench.decoder import decoder, loss
from tradewind.errors import MissingExtra
from tradewind.model import Accelerator

LIMIT = 0.01
_WARM = 10  # steps before anything is timed


@dataclass(frozen=True, slots=True)
class Shape:
    layers: int
    width: int
    sequence: int
    micro_batch: int
    vocab: int = 32_000

    @property
    def tokens(self) -> int:
        return self.sequence * self.micro_batch


BIG = Shape(24, 2048, 2048, 8)  # 1.3 billion weights
SMALL = Shape(2, 256, 64, 4, 1000)


def measure(
    folder: Path,
    device: str,
    *,
    steps: int = 100,
    turns: int = 2,
    save_every: int = 100,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """`steps` a turn; `turns` of each loop."""
    torch = _torch()
    shape = BIG if device == "cuda" else SMALL
    if device == "cpu":
        torch.set_num_threads(1)
    place = folder / f"tradewind-bench-{clock.new_id('t')}"
    place.mkdir(parents=True)
    try:
        training = _Training(torch, shape, device)
        weights = sum(p.numel() for p in training.model.parameters())
        progress(f"a model of {weights:,} weights")
        plain, ours = training.plain(), training.ours(place, save_every)
        for loop in (plain, ours):
            for _ in range(_WARM):
                next(loop)
        taken: dict[str, list[float]] = {"plain": [], "session": []}
        for _ in range(turns):
            for name, loop in (("plain", plain), ("session", ours)):
                taken[name].append(training.timed(loop, steps))
                progress(f"{name}: {steps * shape.tokens / taken[name][-1]:,.0f} tokens/s")
        rows = training.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    rates = {name: [steps * shape.tokens / each for each in found] for name, found in taken.items()}
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": str(torch.__version__),
        "weights": weights,
        "sequence": shape.sequence,
        "batch": shape.micro_batch,
        "steps": steps * turns,
        "saves": training.saves,
        "told": rows,
        "plain_tokens_s": round(median(rates["plain"])),
        "session_tokens_s": round(median(rates["session"])),
        "overhead": round(sum(taken["session"]) / sum(taken["plain"]) - 1, 5),
        "turns": {name: [round(each) for each in found] for name, found in rates.items()},
    }


class _Training:
    """One model, one optimizer, two loops that take turns."""

    def __init__(self, torch: Any, shape: Shape, device: str) -> None:
        self._torch, self._device = torch, torch.device(device)
        self._cuda = device == "cuda"
        torch.manual_seed(1)
        self.model = decoder(shape.layers, shape.width, shape.vocab).to(self._device)
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=self._cuda)
        self._shape = shape
        self._session: Any = None
        self.saves = 0

    def _loader(self) -> Any:
        from torch.utils.data import DataLoader

        return DataLoader(
            _Windows(self._shape),
            batch_size=self._shape.micro_batch,
            shuffle=True,
            num_workers=min(4, os.cpu_count() or 1) if self._cuda else 0,
            pin_memory=self._cuda,
        )

    def _step(self, batch: Any) -> Any:
        torch = self._torch
        tokens = batch.to(self._device, non_blocking=True)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._cuda):
            made = loss(self.model(tokens), tokens)
        made.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return made

    def plain(self) -> Iterator[None]:
        while True:
            for batch in self._loader():
                self._step(batch)
                yield

    def ours(self, folder: Path, save_every: int) -> Iterator[None]:
        import tradewind.torch as tw

        self._session = session = tw.session(
            model=self.model,
            optimizer=self._optimizer,
            data=self._loader(),
            folder=folder,
            every_steps=save_every,
        )
        for batch in session.batches(max_steps=1 << 40):
            session.step(loss=self._step(batch))
            self.saves += session.step_number % save_every == 0
            yield

    def timed(self, loop: Iterator[None], steps: int) -> float:
        self._wait()
        began = clock.stopwatch()
        for _ in range(steps):
            next(loop)
        self._wait()
        return clock.stopwatch() - began

    def _wait(self) -> None:
        if self._cuda:
            self._torch.cuda.synchronize()

    def finish(self) -> int:
        """How many rows of metrics it has told."""
        self._session.close()
        return len(self._session.metrics)


def estimated_tokens_s(accelerator: Accelerator) -> float:
    """Of the plain loop, by `tradewind estimate`'s own model."""
    from tradewind.bench import gpu_steps

    shape = gpu_steps.Step(
        BIG.layers, BIG.width, BIG.sequence, BIG.micro_batch, recompute=False, compiled=False
    )
    return BIG.tokens / gpu_steps.estimated(shape, accelerator)[0]


class _Windows:
    """Random tokens, the same for the same number."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> Any:
        import torch

        own = torch.Generator().manual_seed(index)
        return torch.randint(self._shape.vocab, (self._shape.sequence,), generator=own)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra("training needs torch", hint="pip install 'tradewind[torch]'") from None
    return torch
