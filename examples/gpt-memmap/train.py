"""A training without a loader, in the style of nanoGPT: random places of a file of tokens, the
learning rate by a function of the step, micro-batches. Run it: python train.py"""

import math
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import tradewind.torch as tw

STEPS, WARM_UP, WINDOW, BATCH, MICRO = 400, 40, 32, 16, 2
HERE = Path(__file__).parent


def tokens() -> np.memmap:
    """Bytes of the text beside tiny-gpt, as a file of 16-bit tokens."""
    path = HERE / "train.bin"
    if not path.exists():
        text = np.frombuffer((HERE.parent / "tiny-gpt" / "text.txt").read_bytes(), dtype=np.uint8)
        text.astype(np.uint16).tofile(path)
    return np.memmap(path, dtype=np.uint16, mode="r")


def get_lr(step: int) -> float:
    if step < WARM_UP:
        return 3e-3 * (step + 1) / WARM_UP
    return 3e-4 + 0.5 * 2.7e-3 * (1 + math.cos(math.pi * (step - WARM_UP) / (STEPS - WARM_UP)))


class Model(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(256, width), nn.Embedding(WINDOW, width)
        self.blocks = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True), 2
        )
        self.out = nn.Linear(width, 256)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        hidden = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        return cross_entropy(self.out(self.blocks(hidden, mask=mask)).flatten(0, 1), y.flatten())


def main() -> None:
    torch.manual_seed(1337)
    data, model = tokens(), Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def get_batch() -> tuple[torch.Tensor, torch.Tensor]:
        starts = torch.randint(len(data) - WINDOW - 1, (BATCH,)).tolist()
        rows = torch.stack(
            [torch.from_numpy(data[i : i + WINDOW + 1].astype(np.int64)) for i in starts]
        )
        return rows[:, :-1], rows[:, 1:]

    with tw.session(model=model, optimizer=optimizer) as session:
        for step in session.steps(STEPS):  # those that are left
            for group in optimizer.param_groups:
                group["lr"] = get_lr(step)
            for _ in range(MICRO):
                loss = model(*get_batch()) / MICRO
                loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            session.step(loss=loss * MICRO, tokens=MICRO * BATCH * WINDOW)
            if step % 50 == 49:
                print(f"step {step + 1}  loss {loss.item() * MICRO:.3f}")


if __name__ == "__main__":
    main()
