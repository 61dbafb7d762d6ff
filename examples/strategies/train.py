"""A small GPT that learns to count, spread over ranks as a layout says.

    python train.py
    torchrun --nproc-per-node 2 train.py --layout '{"sharding": "zero3"}'
    torchrun --nproc-per-node 2 train.py --layout '{"tp": 2}'
    torchrun --nproc-per-node 2 train.py --layout '{"pp": 2, "micro_batch": 2}'

Under `tradewind run` no layout is given: it is the plan's. Kill it and start it again, with the
same layout or another: it goes on.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import tradewind.torch as tw

WORDS, WIDTH, HEADS, LENGTH = 64, 64, 4, 16


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = HEADS
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        normed = self.first(x)
        q, k, v = (
            each(normed).view(batch, length, self.heads, -1).transpose(1, 2)
            for each in (self.wq, self.wk, self.wv)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(seen.transpose(1, 2).reshape(batch, length, -1))
        return x + self.fc2(functional.gelu(self.fc1(self.second(x))))


def loss_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layout", type=json.loads)
    parser.add_argument("--compress", help="fp16, bf16, powersgd or topk")
    parser.add_argument("--engine", default="torch", help="or deepspeed")
    parser.add_argument("--steps", type=int, default=40)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(WORDS, WIDTH), *(Block() for _ in range(4)), nn.Linear(WIDTH, WORDS)
    )
    work = tw.prepare(
        model,
        torch.optim.AdamW(model.parameters(), lr=0.003),
        given.layout,
        loss=loss_of,
        compress=given.compress,
        engine=given.engine,
    )
    lines = [(torch.arange(LENGTH) + start) % WORDS for start in range(512)]
    data = DataLoader(lines, batch_size=work.batch_size or 8, shuffle=True, drop_last=True)
    session = work.session(data=data, every_steps=20)
    for batch in session.batches(max_steps=given.steps):
        loss = work.step(batch, clip=1.0)
        session.step(loss=loss)
        if session.step_number % 10 == 0 and work.rank == 0:
            print(f"step {session.step_number}  loss {float(loss):.3f}", flush=True)
    session.finish()


if __name__ == "__main__":
    main()
