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
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
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
        self.spent: list[tuple[float, float, float]] = []  # by step: batch, hooks, session
        self._own: _Own | None = None
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
        """Without checkpoints: `steps` for each line that is asked, and what they took. First the
        plain loop, whatever the kind; the line `change` begins the kind's own."""
        loop, _ = self._loop("plain", 1 << 30, 1 << 30, folder)
        yield self._about()
        for line in asked:
            if line.strip() != "change":
                yield self._timed(loop, steps)
                continue
            loop.close()
            loop, _ = self._loop(kind, 1 << 30, 1 << 30, folder)
            yield kind

    def parts(self, kind: str, steps: int, folder: Path) -> dict[str, Any]:
        """What each step spends where a session has its hand in it, in seconds: taking a batch,
        hooks around the optimizer's step, telling the session; and what the threads of Python
        beside it worked."""
        loop, _ = self._loop(kind, WARM + steps, 1 << 30, folder)
        self._own = _Own(self._optimizer)
        self.spent = []
        before, began = _beside(), self._idle()
        for _ in range(steps):
            next(loop)
        took = self._idle() - began
        beside = _beside() - before
        names = ("batch", "hooks", "session")
        parts = {name: [one[k] for one in self.spent] for k, name in enumerate(names)}
        return {"step_s": took / steps, "beside_s": beside / steps, "parts": parts, **self._about()}

    def _loop(
        self, kind: str, steps: int, save_every: int, folder: Path
    ) -> tuple[Generator[None], Any]:
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
        if save_every > steps // 2:
            _pin()
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

    def _plain(self, steps: int) -> Generator[None]:
        return self._steps(iter(self._loader()), lambda loss: None, steps)

    def _with(self, session: Any, steps: int) -> Generator[None]:
        batches = iter(session.batches(max_steps=steps))
        return self._steps(batches, lambda loss: session.step(loss=loss), steps)

    def _steps(
        self, batches: Iterator[Any], told: Callable[[Any], object], steps: int
    ) -> Generator[None]:
        """The same lines for every kind, stopwatches too."""
        for _ in range(steps):
            began = clock.stopwatch()
            batch = next(batches)
            taken = clock.stopwatch()
            made, hooks_s = self._step(batch)
            before = clock.stopwatch()
            told(made)
            self.spent.append((taken - began, hooks_s, clock.stopwatch() - before))
            yield
        next(batches, None)  # a session's loop has an end of its own

    def _step(self, batch: Any) -> tuple[Any, float]:
        """The loss, and how long the optimizer's hooks took, where somebody wants to know."""
        torch = self._torch
        tokens = batch.to(self._device, non_blocking=True)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._cuda):
            made = loss(self.model(tokens), tokens)
        made.backward()
        began = clock.stopwatch()
        self._optimizer.step()
        hooks_s = clock.stopwatch() - began - self._own.step_s if self._own is not None else 0.0
        self._optimizer.zero_grad(set_to_none=True)
        return made, hooks_s

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


class _Own:
    """How long the optimizer's own step took, without what others have hooked around it: that one
    differs from process to process by more than all the hooks take."""

    def __init__(self, optimizer: Any) -> None:
        self.step_s = self._began = 0.0
        optimizer.register_step_pre_hook(self._begin)  # after those that are there
        last = optimizer.register_step_post_hook(self._end)
        optimizer._optimizer_step_post_hooks.move_to_end(last.id, last=False)  # and before them

    def _begin(self, *_: Any) -> None:
        self._began = clock.stopwatch()

    def _end(self, *_: Any) -> None:
        self.step_s = clock.stopwatch() - self._began


def _beside() -> float:
    """Seconds of a processor that Python's other threads have worked."""
    others = (one for one in threading.enumerate() if one is not threading.main_thread())
    return sum(time.clock_gettime(time.pthread_getcpuclockid(one.ident or 0)) for one in others)


def _pin() -> None:
    """The threads that launch kernels stay on two cores, the same in all processes that take turns:
    wherever else the system might put them, another loop would be faster for it."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 4:
        return
    for task in Path("/proc/self/task").iterdir():
        name = (task / "comm").read_text().strip()
        if task.name == str(os.getpid()):
            os.sched_setaffinity(int(task.name), {cores[-1]})
        elif name.startswith("pt_autograd"):
            os.sched_setaffinity(int(task.name), {cores[-2]})


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
    """With `save_every` 0 in turns: each line of the standard input is one. With -1: by parts."""
    import torch

    if device == "cpu":
        torch.set_num_threads(1)
    job = Job(SHAPES[model], device)
    found: Iterable[Any]
    if save_every == 0:
        found = job.in_turns(kind, steps, folder, sys.stdin)
    elif save_every < 0:
        found = [job.parts(kind, steps, folder)]
    else:
        found = [job.run(kind, steps, save_every, folder)]
    for each in found:
        sys.stdout.write(json.dumps(each) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    what = sys.argv[1:]
    main(what[0], what[1], what[2], int(what[3]), int(what[4]), Path(what[5]))
