"""One of two ranks that send each other messages: `python -m tests.torch.messaging RANK FOLDER`. It
writes what came of each case to FOLDER/<case>.<rank>.

Where one of them is malicious it is rank 1: it takes part in the same collectives, and puts into
them whatever it likes.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from msgspec import Struct

from tradewind.base.errors import TradewindError
from tradewind.torch import messages, trees
from tradewind.torch.ranks import Ranks
from tradewind.torch.sessions import stages


class Said(Struct):
    rank: int
    data: bytes


class Trap:
    """Whoever unpickles this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def trap(folder: Path) -> torch.Tensor:
    return torch.frombuffer(bytearray(pickle.dumps(Trap(folder / "ran"))), dtype=torch.uint8)


def lengths(rank: int, folder: Path) -> None:
    """Of other lengths by rank; empty; one that says nothing; large."""
    for sizes in ([5, 0], [0, 0], [3 << 20, 1], [None, 7], [None, None]):
        said = [None if size is None else Said(n, b"x" * size) for n, size in enumerate(sizes)]
        assert messages.gathered(said[rank], Said) == said
    for source in range(2):
        value = Said(source, b"y" * (source * (2 << 20)))
        assert messages.broadcast(value if rank == source else None, Said, source) == value


def too_long(rank: int, folder: Path) -> None:
    most, messages.MOST_BYTES = messages.MOST_BYTES, 1000
    try:
        messages.gathered(Said(rank, b"z" * (2000 if rank else 10)), Said)
    finally:
        messages.MOST_BYTES = most


def no_length(rank: int, folder: Path) -> None:
    """As many bytes as no computer has."""
    if rank == 0:
        messages.gathered(Said(rank, b""), Said)
    else:
        dist.all_gather([torch.zeros(1, dtype=torch.int64)] * 2, torch.tensor([-(1 << 62)]))


def gathers_pickle(rank: int, folder: Path) -> None:
    if rank == 0:
        messages.gathered(Said(rank, b""), Said)
        return
    data = trap(folder)
    dist.all_gather(
        [torch.zeros(1, dtype=torch.int64) for _ in range(2)], torch.tensor([len(data)])
    )
    dist.all_gather([torch.zeros_like(data) for _ in range(2)], data)


def broadcasts_pickle(rank: int, folder: Path) -> None:
    if rank == 0:
        messages.broadcast(None, Said, 1)
        return
    data = trap(folder)
    dist.broadcast(torch.tensor([len(data)]), src=1)
    dist.broadcast(data, src=1)


def sends_pickle(rank: int, folder: Path) -> None:
    if rank == 0:
        messages.received(Said, 1)
        return
    data = trap(folder)
    dist.send(torch.tensor([len(data)]), dst=0)
    dist.send(data, dst=0)


def one_to_one(rank: int, folder: Path) -> None:
    for size in (0, 2 << 20):
        if rank:
            messages.send(Said(1, b"v" * size), 0)
        else:
            assert messages.received(Said, 1) == Said(1, b"v" * size)


def stage_pickles(rank: int, folder: Path) -> None:
    """A well-formed message whose opaque part is a pickle that runs something."""
    own = Ranks(0, 1, 0, 1, stage=rank, stages=2, group=dist.group.WORLD)
    rest: dict[str, Any] = {"models": {"model": {}}, "optimizers": {}, "gradients": 0}
    if rank == 0:
        stages.merged(rest, own)
    else:
        packed = trees.dumped({"name": Trap(folder / "ran")})
        own.gathered(stages.StageState({"model": packed}, {}, 0), stages.StageState)


def stage_cannot(rank: int, folder: Path) -> None:
    """One stage has state that no checkpoint takes: all of them stop."""
    own = Ranks(0, 1, 0, 1, stage=rank, stages=2, group=dist.group.WORLD)
    besides = {"_extra_state": Path("x") if rank else 1}
    stages.merged({"models": {"model": besides}, "optimizers": {}, "gradients": 0}, own)


CASES = (
    lengths,
    too_long,
    no_length,
    gathers_pickle,
    broadcasts_pickle,
    sends_pickle,
    one_to_one,
    stage_pickles,
    stage_cannot,
)


def main() -> None:
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    dist.init_process_group("gloo", f"file://{folder / 'met'}", rank=rank, world_size=2)
    for case in CASES:
        try:
            case(rank, folder)
            said = "well"
        except TradewindError as error:
            said = f"{type(error).__name__}: {error}"
        (folder / f"{case.__name__}.{rank}").write_text(said)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
