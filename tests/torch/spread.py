"""A small GPT, trained as a layout says, for the tests of strategies: `python spread.py FOLDER`.

It prints `step N` after each step and the losses at its end, and writes FOLDER/weights.pt (by rank
0, whole, as one process would have them).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

import tradewind.torch as tw
from tradewind.torch.ranks import ranks_of

VOCAB, WIDTH, LENGTH = 40, 32, 12


class Block(nn.Module):
    def __init__(self, dropout: float, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wq, self.wk = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.wv, self.wo = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        normed = self.norm(x)
        q, k, v = (
            each(normed).view(batch, length, self.heads, -1).transpose(1, 2)
            for each in (self.wq, self.wk, self.wv)
        )
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.wo(seen.transpose(1, 2).reshape(batch, length, -1)))
        out: torch.Tensor = x + self.dropout(self.fc2(functional.gelu(self.fc1(self.norm2(x)))))
        return out


class Whole(nn.Module):
    """The same as a module with a forward of its own, which no pipeline can cut as it is."""

    def __init__(self, inside: nn.Sequential) -> None:
        super().__init__()
        self.embed, self.head = inside[0], inside[-1]
        self.blocks = nn.ModuleList(list(inside)[1:-1])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        out: torch.Tensor = self.head(x)
        return out


def network(dropout: float = 0.0, depth: int = 3) -> nn.Sequential:
    members = [Block(dropout) for _ in range(depth)]
    return nn.Sequential(nn.Embedding(VOCAB, WIDTH), *members, nn.Linear(WIDTH, VOCAB))


def loss_of(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    ahead = logits[:, :-1].flatten(0, 1).float()
    return functional.cross_entropy(ahead, tokens[:, 1:].flatten())


def text(number: int) -> list[torch.Tensor]:
    """Counting up, from anywhere: it can be learnt."""
    generator = torch.Generator().manual_seed(7)
    starts = torch.randint(0, VOCAB, (number,), generator=generator)
    return [(torch.arange(LENGTH) + start) % VOCAB for start in starts.tolist()]


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layout", type=json.loads)
    parser.add_argument("--compress", type=json.loads)
    parser.add_argument("--batch", type=int, default=8, help="of all ranks")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--every-steps", type=int, default=5)
    parser.add_argument("--step-s", type=float, default=0.0)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--schedule", default="1f1b")
    parser.add_argument("--clip", type=float)
    parser.add_argument("--traced", action="store_true")
    parser.add_argument("--short-mib", type=int, help="memory that rank 0 has, beyond what it uses")
    parser.add_argument("--wide", type=int, default=0, help="numbers that each sample takes")
    parser.add_argument("--short-at", type=int, default=0, help="the step from which it is so")
    return parser.parse_args()


class Wide(nn.Module):
    """Takes much memory for each sample, and no time."""

    def __init__(self, inside: nn.Module, many: int) -> None:
        super().__init__()
        self.inside, self.many = inside, many

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        room = torch.empty(len(tokens) * self.many)
        out: torch.Tensor = self.inside(tokens)
        del room
        return out


def only(mib: int) -> None:
    """From now on this process gets no more than that."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (mib << 20), resource.RLIM_INFINITY))


def refuse(stream: Any) -> Any:
    """In place of what PyTorch reads the other ranks' objects with."""
    raise AssertionError("something of another rank was about to be unpickled")


def main() -> None:
    given = parsed()
    theirs = dist.distributed_c10d._unpickler
    if given.engine == "torch":  # DeepSpeed's ranks send each other objects
        dist.distributed_c10d._unpickler = refuse
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.manual_seed(3)
    model: Any = network(given.dropout)
    if given.traced:
        model = Whole(model)
    if given.wide:
        model = Wide(model, given.wide)
    torch.manual_seed(100 + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    micro = (given.layout or {}).get("micro_batch", given.batch)
    prepared = tw.prepare(
        model,
        optimizer,
        given.layout,
        loss=loss_of,
        compress=given.compress,
        engine=given.engine,
        schedule=given.schedule,
        example=torch.zeros(micro, LENGTH, dtype=torch.int64) if given.traced else None,
        folder=given.folder / "checkpoints",
    )
    ranks = ranks_of([prepared.model], 0, 1)
    each = given.batch // ranks.data_world
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(prepared.optimizer, given.steps)
    session = prepared.session(
        data=DataLoader(text(96), batch_size=each, shuffle=True, drop_last=True),
        scheduler=scheduler,
        seed=5,
        folder=given.folder / "checkpoints",
        every_steps=given.every_steps,
    )
    losses = []
    for batch in session.batches(max_steps=given.steps):
        if given.short_mib and rank == 0 and session.step_number == given.short_at:
            only(given.short_mib)
        loss = prepared.step(batch, clip=given.clip)
        scheduler.step()
        losses.append(float(loss))
        session.step(loss=loss)
        print("step", session.step_number, flush=True)  # noqa: T201
        time.sleep(given.step_s)
    print("losses", json.dumps(losses), "micro", prepared.micro_batch, flush=True)  # noqa: T201
    session.finish()
    dist.distributed_c10d._unpickler = theirs
    write(given.folder, prepared, rank)
    if dist.is_initialized():
        dist.destroy_process_group()


def write(folder: Path, prepared: Any, rank: int) -> None:
    from tradewind.torch.sessions.state import bare, clean

    whole: dict[str, Any] = {}
    if hasattr(prepared, "engine"):
        import deepspeed  # type: ignore[import-untyped,import-not-found,unused-ignore]

        parameters = dict(prepared.model.named_parameters())
        with deepspeed.zero.GatheredParameters(list(parameters.values())):
            whole = {name: each.detach().clone() for name, each in parameters.items()}
            if rank == 0:
                torch.save(whole, folder / "weights.pt")
        return
    for name, tensor in bare(prepared.model).state_dict().items():
        full = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        whole[clean(name)] = full.clone()
    if prepared.layout.pp > 1:
        stages: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(stages, whole)
        whole = {name: tensor for stage in stages for name, tensor in stage.items()}
    if rank == 0:
        torch.save(whole, folder / "weights.pt")


if __name__ == "__main__":
    main()
