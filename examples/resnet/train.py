"""A residual network that tells pictures apart: the classic data-parallel training.

    python train.py                              one process
    torchrun --nproc-per-node 2 train.py         two, with DistributedDataParallel
    tradewind run work.yaml --local --yes        on machines that may be taken away

Without `--data` it draws its own pictures, small ones of six shapes. With it, it reads a folder
that has one folder of pictures for each class, and `--depth 50 --size 224` is the real thing.
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

SHAPES = ("disc", "ring", "square", "frame", "cross", "stripes")


class Shapes(Dataset[Any]):
    """Drawn pictures: one of six shapes somewhere, in some colour, on noise. Each is what its
    number says; crops and flips are random."""

    classes = SHAPES

    def __init__(self, number: int, size: int, *, first: int = 0, augment: bool = True) -> None:
        self.number, self.size, self.first, self.augment = number, size, first, augment

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        own = torch.Generator().manual_seed(self.first + index)
        kind = index % len(SHAPES)
        picture = draw(kind, self.size, own)
        return (augmented(picture) if self.augment else picture), kind


def draw(kind: int, size: int, own: torch.Generator) -> torch.Tensor:
    place, colour, radius = (torch.rand(n, generator=own) for n in (2, 3, 1))
    y, x = torch.meshgrid(*(torch.linspace(-1, 1, size) - (p - 0.5) for p in place), indexing="ij")
    r = 0.35 + 0.4 * radius
    far, box = (x**2 + y**2).sqrt(), torch.maximum(x.abs(), y.abs())
    inside = (
        far < r,
        (far < r) & (far > 0.6 * r),
        box < r * 0.9,
        (box < r * 0.9) & (box > 0.55 * r),
        (box < r) & (torch.minimum(x.abs(), y.abs()) < 0.25 * r),
        (box < r) & ((x * 6 / r).sin() > 0),
    )[kind]
    noise = 0.35 * torch.randn(3, size, size, generator=own)
    return noise + inside * (colour - 0.3).view(3, 1, 1) * 1.5


class Pictures(Dataset[Any]):
    """A folder of folders: each is a class, and has pictures in it."""

    def __init__(self, folder: Path, size: int, *, augment: bool = True) -> None:
        self.classes = tuple(sorted(each.name for each in folder.iterdir() if each.is_dir()))
        self.files = [
            (file, number)
            for number, name in enumerate(self.classes)
            for file in sorted((folder / name).iterdir())
        ]
        self.size, self.augment = size, augment

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        import numpy
        from PIL import Image

        file, kind = self.files[index]
        with Image.open(file) as opened:
            pixels = numpy.asarray(opened.convert("RGB").resize((self.size, self.size)))
        picture = torch.from_numpy(pixels.copy()).permute(2, 0, 1) / 127.5 - 1
        return (augmented(picture) if self.augment else picture), kind


def augmented(picture: torch.Tensor) -> torch.Tensor:
    pad = picture.shape[-1] // 8
    top, left, flip = torch.randint(2 * pad, (3,)).tolist()
    wide = functional.pad(picture, (pad,) * 4)
    cut = wide[:, top : top + picture.shape[1], left : left + picture.shape[2]]
    return cut.flip(-1) if flip % 2 else cut


class Block(nn.Module):
    """Two convolutions of 3×3, or three with a bottleneck, around which the input goes as it is."""

    def __init__(self, before: int, width: int, stride: int, *, deep: bool) -> None:
        super().__init__()
        after = width * 4 if deep else width
        sizes = [(before, width, 1), (width, width, 3), (width, after, 1)]
        if not deep:
            sizes = [(before, width, 3), (width, width, 3)]
        layers: list[nn.Module] = []
        for number, (a, b, kernel) in enumerate(sizes):
            step = stride if number == int(deep) else 1
            layers += [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(b)]
            layers += [nn.ReLU()] if number < len(sizes) - 1 else []
        self.way = nn.Sequential(*layers)
        nn.init.zeros_(self.way[-1].weight)  # type: ignore[arg-type]
        same = before == after and stride == 1
        self.past = (
            nn.Identity()
            if same
            else nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.past(x) + self.way(x))


DEPTHS = {8: (1, 1, 1), 14: (2, 2, 2), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}


def resnet(depth: int, classes: int) -> nn.Sequential:
    """Depth 8 and 14 are for small pictures, the others the well-known ones."""
    deep, small = depth >= 50, depth < 18
    width = at = 16 if small else 64
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 3 if small else 7, 1 if small else 2, 1 if small else 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *([] if small else [nn.MaxPool2d(3, 2, 1)]),
    ]
    for stage, blocks in enumerate(DEPTHS[depth]):
        for number in range(blocks):
            stride = 2 if number == 0 and stage > 0 else 1
            layers.append(Block(at, width << stage, stride, deep=deep))
            at = (width << stage) * (4 if deep else 1)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(at, classes))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, help="a folder with train/ and val/ in it")
    parser.add_argument("--pictures", type=int, default=6000, help="to draw, without --data")
    parser.add_argument("--depth", type=int, choices=sorted(DEPTHS), default=8)
    parser.add_argument("--size", type=int, default=24, help="of a picture's side")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=64, help="of all processes together")
    parser.add_argument("--rate", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    given = options()
    ranks, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if ranks > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = ranks == 1 or dist.get_rank() == 0
    if device.type == "cpu":
        torch.set_num_threads(1)  # a process for each core is faster, and sums come out the same
    torch.manual_seed(1)
    if given.data is not None:
        learned: Any = Pictures(given.data / "train", given.size)
        kept: Any = Pictures(given.data / "val", given.size, augment=False)
    else:
        learned = Shapes(given.pictures, given.size)
        kept = Shapes(600, given.size, first=1_000_000, augment=False)
    net = resnet(given.depth, len(learned.classes)).to(device)
    model: nn.Module = DistributedDataParallel(net) if ranks > 1 else net
    loader = DataLoader(
        learned,
        batch_size=given.batch // ranks,
        shuffle=True,
        drop_last=True,
        num_workers=given.workers,
        pin_memory=device.type == "cuda",
    )
    optimizer = torch.optim.SGD(
        model.parameters(), lr=given.rate, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    steps = given.epochs * (len(learned) // given.batch)

    def rate(step: int) -> float:
        return min(1.0, (step + 1) / (0.1 * steps)) * (1 + math.cos(math.pi * step / steps)) / 2

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    session = tw.session(
        model=model, optimizer=optimizer, scheduler=scheduler, data=loader, config=given
    )
    for epoch in session.epochs(given.epochs):
        model.train()
        for pictures, kinds in session.batches():
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                guessed = model(pictures.to(device, non_blocking=True))
                loss = functional.cross_entropy(
                    guessed, kinds.to(device, non_blocking=True), label_smoothing=0.05
                )
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
            session.step(loss=loss)
        if first:
            right = accuracy(net, kept, device)
            print(f"epoch {epoch + 1}  right {right:.1%}", flush=True)
    if first:
        print("weights", digest(net), flush=True)
    session.finish()
    if ranks > 1:
        dist.destroy_process_group()


@torch.no_grad()
def accuracy(net: nn.Module, kept: Any, device: torch.device) -> float:
    """Of pictures that it has not seen."""
    net.eval()
    right = 0
    for pictures, kinds in DataLoader(kept, batch_size=100):
        right += int((net(pictures.to(device)).argmax(1).cpu() == kinds).sum())
    return right / len(kept)


def digest(net: nn.Module) -> str:
    numbers = b"".join(tensor.cpu().numpy().tobytes() for tensor in net.state_dict().values())
    return hashlib.sha256(numbers).hexdigest()[:16]


if __name__ == "__main__":
    main()
