"""One loop of `tradewind bench training`, in a process of its own:
`python -m … plain|session|silent MODEL DEVICE STEPS SAVE_EVERY FOLDER` prints what it took as JSON.

A decoder is trained on random tokens through a DataLoader. The plain loop has no checkpoints and
tells nothing, and nothing of a session is in its process; `silent` is a session without telemetry.
The steps are timed whole, from an idle device to an idle device, so that a stall counts wherever it
falls, between steps too. Then the end is: until the loop is left and the session is finished.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tradewind.base import clock
from tradewind.bench.decoder import decoder, loss

WARM = 10  # steps before anything is timed


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


SHAPES = {
    "big": Shape(24, 2048, 2048, 8),  # 1.3 billion weights
    "launches": Shape(24, 512, 128, 2, 1000),  # steps that are bound by launching kernels
    "small": Shape(2, 256, 64, 4, 1000),
}


class Job:
    def __init__(self, shape: Shape, device: str) -> None:
        import torch

        self._torch, self._device, self._shape = torch, torch.device(device), shape
        self._cuda = device == "cuda"
        torch.manual_seed(1)
        with self._device:
            self.model = decoder(shape.layers, shape.width, shape.vocab)
        self._optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=self._cuda)

    def run(self, kind: str, steps: int, save_every: int, folder: Path) -> dict[str, Any]:
        all_of_them = WARM + steps
        loop, session = self._loop(kind, all_of_them, save_every, folder)
        steps_s = self._timed(loop, steps)
        before = self._idle()
        for _ in loop:
            pass
        if session is not None:
            session.finish()
        return {
            "steps_s": steps_s,
            "end_s": self._idle() - before,
            "told": len(session.metrics) if session is not None else 0,
            "saves": all_of_them // save_every if session is not None else 0,
            **self._about(),
        }

    def in_turns(self, kind: str, steps: int, folder: Path, asked: Iterable[str]) -> Iterator[Any]:
        """Without checkpoints: `steps` for each line that is asked, and what they took."""
        loop, _ = self._loop(kind, 1 << 30, 1 << 30, folder)
        yield self._about()
        for _ in asked:
            yield self._timed(loop, steps)

    def _loop(
        self, kind: str, steps: int, save_every: int, folder: Path
    ) -> tuple[Iterator[None], Any]:
        """It, warm, and its session."""
        session: Any = None
        if kind == "plain":
            loop = self._plain(steps)
        else:
            import tradewind.torch as tw

            session = tw.session(
                model=self.model,
                optimizer=self._optimizer,
                data=self._loader(),
                folder=folder,
                every_steps=save_every,
                telemetry=kind != "silent",
            )
            loop = self._with(session, steps)
        for _ in range(WARM):
            next(loop)
        return loop, session

    def _timed(self, loop: Iterator[None], steps: int) -> float:
        began = self._idle()
        for _ in range(steps):
            next(loop)
        return self._idle() - began

    def _about(self) -> dict[str, Any]:
        return {
            "weights": sum(p.numel() for p in self.model.parameters()),
            "device": self._torch.cuda.get_device_name() if self._cuda else "cpu",
            "torch": str(self._torch.__version__),
        }

    def _plain(self, steps: int) -> Iterator[None]:
        batches = iter(self._loader())
        for _ in range(steps):
            self._step(next(batches))
            yield

    def _with(self, session: Any, steps: int) -> Iterator[None]:
        for batch in session.batches(max_steps=steps):
            session.step(loss=self._step(batch))
            yield

    def _step(self, batch: Any) -> Any:
        torch = self._torch
        tokens = batch.to(self._device, non_blocking=True)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._cuda):
            made = loss(self.model(tokens), tokens)
        made.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return made

    def _loader(self) -> Any:
        from torch.utils.data import DataLoader

        return DataLoader(
            _Windows(self._shape),
            batch_size=self._shape.micro_batch,
            shuffle=True,
            num_workers=min(4, os.cpu_count() or 1) if self._cuda else 0,
            pin_memory=self._cuda,
        )

    def _idle(self) -> float:
        if self._cuda:
            self._torch.cuda.synchronize()
        return clock.stopwatch()


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


def main(kind: str, model: str, device: str, steps: int, save_every: int, folder: Path) -> None:
    """With `save_every` 0 in turns: each line of the standard input is one."""
    import torch

    if device == "cpu":
        torch.set_num_threads(1)
    job = Job(SHAPES[model], device)
    found = (
        job.in_turns(kind, steps, folder, sys.stdin)
        if save_every == 0
        else [job.run(kind, steps, save_every, folder)]
    )
    for each in found:
        sys.stdout.write(json.dumps(each) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    what = sys.argv[1:]
    main(what[0], what[1], what[2], int(what[3]), int(what[4]), Path(what[5]))
