"""A model that does not fit on one device: sharded over the processes, or cut into stages.

    torchrun --nproc-per-node 2 train.py                       sharded (FSDP2), recomputing
    torchrun --nproc-per-node 2 train.py --spread pipeline     a stage on each process
    tradewind run work.yaml --local --yes                      on machines that may be taken away

Here the model is small and learns to add. `--layers 32 --width 4096 --data tokens.bin` is the real
thing; under `tradewind run` the plan says how it is spread (`--spread plan`).
"""

from __future__ import annotations

import argparse
import hashlib
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

import tradewind.torch as tw

SPREADS: dict[str, Any] = {
    "sharded": {"sharding": "zero3", "recompute": "full"},
    "pipeline": {"pp": int(os.environ.get("WORLD_SIZE", "1")), "micro_batch": 8},
    "plan": None,
}


class Sums(Dataset[Any]):
    """Texts such as `417+385=802 ` one after another, and what comes one byte later."""

    def __init__(self, number: int, length: int) -> None:
        self.number, self.length = number, length

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        own = torch.Generator().manual_seed(index)
        text = ""
        while len(text) <= self.length:
            a, b = torch.randint(100, (2,), generator=own).tolist()
            text += f"{a}+{b}={a + b} "
        tokens = torch.tensor(list(text.encode()[: self.length + 1]))
        return tokens[:-1], tokens[1:]


class Begin(nn.Module):
    """Tokens and their places."""

    def __init__(self, width: int, vocab: int, length: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(length, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.token(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 64)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, s, d = x.shape
        parts = self.attend(self.norm1(x)).view(b, s, 3, self.heads, d // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, s, d))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--spread", choices=SPREADS, default="sharded")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=64, help="tokens of a sequence")
    parser.add_argument("--vocab", type=int, default=256)
    parser.add_argument("--data", type=Path, help="a file of tokens, made by tw.write_tokens")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32, help="of all processes together")
    parser.add_argument("--rate", type=float, default=2e-3)
    return parser.parse_args()


def main() -> None:
    given = options()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)  # a process for each core is faster, and sums come out the same
    torch.manual_seed(1)
    model = nn.Sequential(
        Begin(given.width, given.vocab, given.length),
        *(Block(given.width) for _ in range(given.layers)),
        nn.LayerNorm(given.width),
        nn.Linear(given.width, given.vocab, bias=False),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.rate, weight_decay=0.01)
    spread = tw.prepare(model, optimizer, SPREADS[given.spread], loss=loss_of, blocks=[Block])
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    first = ranks == 1 or dist.get_rank() == 0
    data: Any = (
        Sums(100_000, given.length)
        if given.data is None
        else tw.tokens(given.data, length=given.length)
    )
    replicas = ranks // (spread.layout.pp * spread.layout.tp)
    loader = DataLoader(data, batch_size=given.batch // replicas, shuffle=True, drop_last=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(spread.optimizer, given.rate, given.steps)
    session = spread.session(scheduler=scheduler, data=loader, config=given)
    for batch in session.batches(max_steps=given.steps):
        loss = spread.step(batch, clip=1.0)
        scheduler.step()
        session.step(loss=loss)
        if first and session.step_number % 50 == 0:
            print(f"step {session.step_number}  loss {loss.item():.3f}", flush=True)
    held = sum(p.numel() for p in map(local, spread.model.parameters()))
    whole = digest(spread.model)
    if first:
        print(f"{held:,} parameters are on this process")
        print("weights", whole, flush=True)
    session.finish()
    if dist.is_initialized():
        dist.destroy_process_group()


def loss_of(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


def local(tensor: Any) -> torch.Tensor:
    """What of it is on this process."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def digest(model: nn.Module) -> str:
    """Of all processes' parts, the same on each."""
    parts = b"".join(local(p).detach().cpu().numpy().tobytes() for p in model.parameters())
    own = torch.frombuffer(bytearray(hashlib.sha256(parts).digest()), dtype=torch.uint8)
    found = [own]
    if dist.is_initialized():
        device = next(model.parameters()).device
        found = [torch.empty_like(own, device=device) for _ in range(dist.get_world_size())]
        dist.all_gather(found, own.to(device))
    names = "".join(bytes(each.tolist()).hex() for each in found)
    return hashlib.sha256(names.encode()).hexdigest()[:16]


if __name__ == "__main__":
    main()
