"""A plain decoder and its AdamW, trained without waiting for the device at every step.

Steps are timed by events on the device, from the beginning of one to its end. Python runs ahead of
it by a step at most, as it does in real training: a save that takes Python less than that costs
nothing, and a copy that does not wait for the last step copies what is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tradewind import clock

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
        self.model = _decoder(layers, width, vocab).to(self.device)
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

    def step(
        self, gate: Callable[[], object], before: Callable[[], object] = lambda: None
    ) -> tuple[Any, Any]:
        """One step: its beginning and its end, for `seconds`. `before` is done within it, at its
        beginning, and `gate` before the weights change."""
        import torch

        begin = self._mark()
        before()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.cuda):
            logits = self.model(self._tokens)
            flat = logits.flatten(0, 1).float()
            loss = torch.nn.functional.cross_entropy(flat, self._tokens.flatten())
        loss.backward()
        gate()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        end = self._mark()
        self._ends.append(end)
        if self.cuda and len(self._ends) > 1:
            self._ends.pop(0).synchronize()
        return begin, end

    def wait(self) -> None:
        import torch

        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, step: tuple[Any, Any]) -> float:
        """When both have come: after `wait`."""
        begin, end = step
        return float(begin.elapsed_time(end)) / 1e3 if self.cuda else float(end - begin)

    def _mark(self) -> Any:
        import torch

        if not self.cuda:
            return clock.stopwatch()
        event = torch.cuda.Event(enable_timing=True, blocking=True)
        event.record()
        return event


def _decoder(layers: int, width: int, vocab: int) -> Any:
    from torch import nn

    head = min(128, width)

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.up = nn.Linear(width, 4 * width, bias=False)
            self.down = nn.Linear(4 * width, width, bias=False)

        def forward(self, x: Any) -> Any:
            b, s, d = x.shape
            parts = self.qkv(self.norm1(x)).view(b, s, 3, d // head, head).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(*parts.unbind(0), is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(b, s, d))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    embed = nn.Embedding(vocab, width)
    return nn.Sequential(
        embed,
        *(Block() for _ in range(layers)),
        nn.RMSNorm(width),
        nn.Linear(width, vocab, bias=False),
    )
