"""A small GPT that learns to write like Tradewind's documentation, byte by byte.

    python train.py                              one process
    torchrun --nproc-per-node 2 train.py         two, with DistributedDataParallel
    tradewind run work.yaml --local --yes        on machines that may be taken away

Kill it at any time and start it again: it goes on, and the line of its weights at the end is the
one that it would have had. What makes it so are the lines that say `session`.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import tradewind.torch as tw

HERE = Path(__file__).parent
WINDOW = 64
WIDTH, HEADS, LAYERS = 96, 4, 2


class Windows(Dataset[Any]):
    """Pieces of a text: what is read, and what comes one byte later."""

    def __init__(self, text: bytes) -> None:
        self.data = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()

    def __len__(self) -> int:
        return (len(self.data) - 1) // (WINDOW // 4) - 4

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        # Where it begins is a little random: no two epochs see the same pieces.
        start = index * (WINDOW // 4) + int(torch.randint(WINDOW // 4, ()))
        piece = self.data[start : start + WINDOW + 1]
        return piece[:-1], piece[1:]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.05)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        heads = self.attend(self.first(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.think(self.second(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.byte, self.place = nn.Embedding(256, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.byte(x) + self.place(torch.arange(x.shape[1], device=x.device))
        return self.head(self.norm(self.blocks(x)))

    @torch.no_grad()
    def write(self, begin: str, length: int) -> str:
        text = torch.tensor([list(begin.encode())], device=self.head.weight.device)
        for _ in range(length):
            chances = (self(text[:, -WINDOW:])[:, -1] / 0.7).softmax(-1)
            text = torch.cat([text, torch.multinomial(chances, 1)], 1)
        return bytes(text[0].tolist()).decode(errors="replace")


def loss_of(model: nn.Module, batch: Any) -> torch.Tensor:
    device = next(model.parameters()).device
    read, wanted = (each.to(device, non_blocking=True) for each in batch)
    return functional.cross_entropy(model(read).flatten(0, 1), wanted.flatten())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=16, help="of all processes together")
    parser.add_argument("--workers", type=int, default=0)
    given = parser.parse_args()
    ranks, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if ranks > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = ranks == 1 or dist.get_rank() == 0

    torch.set_num_threads(1)  # a process for each core is faster, and sums come out the same
    if device.type == "cuda":  # there they do only if they are asked to
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    text = (HERE / "text.txt").read_bytes()
    learned, kept = text[: len(text) * 19 // 20], text[len(text) * 19 // 20 :]
    gpt = GPT().to(device)
    model: nn.Module = DistributedDataParallel(gpt) if ranks > 1 else gpt
    loader = DataLoader(
        Windows(learned),
        batch_size=given.batch // ranks,
        shuffle=True,
        drop_last=True,
        num_workers=given.workers,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1, betas=(0.9, 0.98))

    def rate(step: int) -> float:
        decay = (1 + math.cos(math.pi * step / given.steps)) / 2
        return min(1.0, (step + 1) / 50) * (0.05 + 0.95 * decay)

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    session = tw.session(
        model=model, optimizer=optimizer, scheduler=scheduler, data=loader, config=given
    )
    for batch in session.batches(max_steps=given.steps):
        loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        session.step(loss=loss)
        if first and session.step_number % 100 == 0:
            print(f"step {session.step_number}  loss {loss.item():.3f}", flush=True)
            with Path("losses.csv").open("a") as losses:  # an output: see work.yaml
                losses.write(f"{session.step_number},{loss.item():.3f}\n")

    if first:
        finish(gpt, kept)
    session.finish()
    if ranks > 1:
        dist.destroy_process_group()


def finish(gpt: GPT, kept: bytes) -> None:
    gpt.eval()
    with torch.no_grad():
        unseen = [loss_of(gpt, batch).item() for batch in DataLoader(Windows(kept), batch_size=64)]
    print(f"loss on text it has not seen: {sum(unseen) / len(unseen):.3f}")
    torch.manual_seed(7)
    sample = gpt.write("A machine that is taken ", 300)
    print(sample)
    Path("sample.txt").write_text(sample)
    numbers = b"".join(tensor.cpu().numpy().tobytes() for tensor in gpt.state_dict().values())
    print("weights", hashlib.sha256(numbers).hexdigest()[:16], flush=True)


if __name__ == "__main__":
    main()
