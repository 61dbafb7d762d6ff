"""A plain decoder and its AdamW, trained without waiting for the device at every step.

Steps are timed by events on the device, from the end of one to the end of the next. Python runs
ahead of it by a step at most, as it does in real training: a save that takes Python less than that
costs nothing, and a copy that does not wait for the last step copies what is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from tradewind.base import clock
from tradewind.bench.decoder import decoder, loss

BYTES_A_WEIGHT = 12  # in 32 bits, with the two moments of AdamW
_VOCAB = 32_000


class Trainer:
    def __init__(self, state_bytes: float, device: str) -> None:
        import torch

        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        torch.manual_seed(1)
        if not self.cuda:  # more would wait for each other, where others compute too
            torch.set_num_threads(1)
        width, vocab = (2048, _VOCAB) if self.cuda else (256, 1000)
        layers = max(1, round((state_bytes / BYTES_A_WEIGHT - 2 * vocab * width) / (12 * width**2)))
        self.model = decoder(layers, width, vocab).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=self.cuda)
        size = (8, 2048) if self.cuda else (1, 16)
        self._tokens = torch.randint(vocab, size, device=self.device)
        self._ends: list[Any] = []
        self.step(lambda: None)  # AdamW makes its state at the first

    def tensors(self) -> dict[str, Any]:
        found = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state[parameter].items():
                found[f"optimizer.{name}.{key}"] = value
        return found

    def step(self, gate: Callable[[], object], before: Callable[[], object] = lambda: None) -> Any:
        """One step: its end, for `seconds`. `before` is done first, and `gate` before the weights
        change."""
        import torch

        before()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.cuda):
            made = loss(self.model(self._tokens), self._tokens)
        made.backward()
        gate()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        end = self.mark()
        self._ends.append(end)
        if self.cuda and len(self._ends) > 1:
            self._ends.pop(0).synchronize()
        return end

    def wait(self) -> None:
        import torch

        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, ends: Sequence[Any]) -> list[float]:
        """From each to the next, when all have come: after `wait`."""
        if self.cuda:
            return [float(a.elapsed_time(b)) / 1e3 for a, b in pairwise(ends)]
        return [float(b - a) for a, b in pairwise(ends)]

    def mark(self) -> Any:
        import torch

        if not self.cuda:
            return clock.stopwatch()
        event = torch.cuda.Event(enable_timing=True, blocking=True)
        event.record()
        return event
