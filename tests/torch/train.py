"""A small training with every kind of state, for the tests of sessions: `python train.py FOLDER`.

It prints `step N` after each step, and writes to FOLDER: weights.pt at its end (by rank 0, whole),
and seen/RANK-PID, a line for each batch: step, epoch, the samples it was made of.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, IterableDataset

import tradewind.torch as tw

FEATURES = 12


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--samples", type=int, default=203)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--kind", default="plain", choices=["plain", "ddp", "fsdp"])
    kinds = ["map", "stream", "stateless", "weighted", "shards", "tokens"]
    parser.add_argument("--data", default="map", choices=kinds)
    parser.add_argument("--where", help="shards and tokens")
    parser.add_argument("--cache-bytes", type=int)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--amp", choices=["bf16", "scaler"])
    parser.add_argument("--powersgd", action="store_true")
    parser.add_argument("--ema", action="store_true")
    parser.add_argument("--every-steps", type=int)
    parser.add_argument("--every-s", type=float)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--step-s", type=float, default=0.0)
    parser.add_argument("--layernorm", action="store_true", help="which can do with one sample")
    parser.add_argument("--grace-s", type=float, default=25.0)
    parser.add_argument("--evaluate-s", type=float, help="for how long, after every tenth step")
    return parser.parse_args()


def noisy(features: torch.Tensor, own: Any) -> torch.Tensor:
    """Augmentation that draws from everything people draw from."""
    scale = 1 + 0.1 * random.random() + 0.1 * float(np.random.rand()) + 0.1 * float(own.random())
    return features * scale + 0.01 * torch.randn(FEATURES)


def made(index: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(index)
    features = torch.randn(FEATURES, generator=generator)
    return features, features.sum().tanh()


class Samples(Dataset[Any]):
    def __init__(self, number: int) -> None:
        self.number, self.own = number, np.random.default_rng()

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: int) -> Any:
        features, target = made(index)
        return index, noisy(features, self.own), target


class Endless(IterableDataset[Any]):
    """Every rank and worker its own part; goes on where it was."""

    def __init__(self, number: int, rank: int, world: int) -> None:
        self.number, self.rank, self.world, self.at = number, rank, world, 0
        self.own = random.Random()

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        part, parts = self.rank * workers + worker, self.world * workers
        start, self.at = self.at, 0
        for index in range(part, self.number, parts):
            if index < start:
                continue
            self.at = index + 1
            features, target = made(index)
            yield index, noisy(features, self.own), target


class Stateful(Endless):
    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


def from_shard(sample: dict[str, Any]) -> Any:
    index = sample["index"]
    features, target = made(index)
    assert sample["x.npy"].tolist() == [index] * 50
    return index, noisy(features, np.random), target


class Windows(Dataset[Any]):
    """Each window's tokens are its number."""

    def __init__(self, where: str) -> None:
        self.tokens = tw.tokens(where, length=4)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Any:
        inputs, targets = self.tokens[index]
        assert inputs.tolist() == [index] * 4
        assert targets.tolist()[:3] == [index] * 3
        features, target = made(index)
        return index, noisy(features, np.random), target


def loader(given: argparse.Namespace, rank: int, world: int) -> DataLoader[Any]:
    more: dict[str, Any] = {"batch_size": given.batch, "num_workers": given.workers}
    if given.data in ("stream", "stateless"):
        kind = Stateful if given.data == "stream" else Endless
        return DataLoader(kind(given.samples, rank, world), **more)
    if given.data == "shards":
        cache = {"cache": given.folder / "cache", "cache_bytes": given.cache_bytes}
        if given.cache_bytes is None:
            cache = {}
        found = tw.shards(given.where, transform=from_shard, mix=2, **cache)
        return DataLoader(found, shuffle=True, **more)
    if given.data == "tokens":
        return DataLoader(Windows(given.where), shuffle=True, **more)
    if given.data == "weighted":
        weights = [1.0 + index % 3 for index in range(given.samples)]
        sampler = torch.utils.data.WeightedRandomSampler(weights, given.samples)
        return DataLoader(Samples(given.samples), sampler=sampler, **more)
    return DataLoader(Samples(given.samples), shuffle=True, **more)


def network(norm: type[torch.nn.Module]) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32),
        norm(32),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(32, 16),
        torch.nn.Linear(16, 1),
    )


class Slow(Samples):
    def __init__(self, seconds: float) -> None:
        super().__init__(20)
        self.seconds = seconds

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.seconds)
        return super().__getitem__(index)


def evaluate(seconds: float) -> None:
    """By a loader of the script's own, which the session has never seen."""
    held_out = DataLoader(Slow(seconds / 10), batch_size=2, num_workers=2)
    print("evaluates", sum(len(batch) for batch in held_out), flush=True)  # noqa: T201


def main() -> None:
    given = parsed()
    torch.set_num_threads(1)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if given.kind != "plain":
        dist.init_process_group("gloo")
    rank = dist.get_rank() if given.kind != "plain" else 0
    torch.manual_seed(3)
    model: Any = network(torch.nn.LayerNorm if given.layernorm else torch.nn.BatchNorm1d)
    ema = None
    if given.ema:
        averaged = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=averaged)
    torch.manual_seed(100 + rank)
    powersgd = None
    if given.kind == "ddp":
        # Several buckets; but gloo's threads, which hooks wait in, suffice for one.
        model = DistributedDataParallel(model, bucket_cap_mb=25 if given.powersgd else 0.001)
        if given.powersgd:
            powersgd = powerSGD_hook.PowerSGDState(
                None, matrix_approximation_rank=1, start_powerSGD_iter=3, min_compression_rate=0.5
            )
            model.register_comm_hook(powersgd, powerSGD_hook.powerSGD_hook)
    elif given.kind == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for layer in model:
            if sum(p.numel() for p in layer.parameters()) > 100:
                fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.steps)
    scaler = torch.amp.GradScaler("cpu", growth_interval=5) if given.amp == "scaler" else None
    session = tw.session(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        data=loader(given, rank, world),
        scaler=scaler,
        ema=ema,
        powersgd=powersgd,
        folder=given.folder / "checkpoints",
        every_s=given.every_s,
        every_steps=given.every_steps,
        grace_s=given.grace_s,
        config={"batch": given.batch},
    )
    (given.folder / "seen").mkdir(parents=True, exist_ok=True)
    seen = (given.folder / "seen" / f"{rank}-{os.getpid()}").open("a", buffering=1)
    limits = {"epochs": given.epochs} if given.epochs else {"max_steps": given.steps}
    for indices, features, target in session.batches(**limits):
        last = (session.step_number + 1) % given.accumulate == 0
        alone = given.kind == "ddp" and not last
        with model.no_sync() if alone else contextlib.nullcontext():
            kind = torch.bfloat16 if given.amp == "bf16" else torch.float32
            with torch.autocast("cpu", kind, enabled=given.amp == "bf16"):
                loss = (model(features).squeeze(1) - target).square().mean()
            (scaler.scale(loss) if scaler else loss).backward()
        seen.write(f"{session.step_number + 1} {session.epoch} {indices.tolist()}\n")
        session.step(loss=loss)
        if last:
            if scaler:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()
            scheduler.step()  # after session.step: a step is over when its body is
            if ema:
                ema.update_parameters(model.module if given.kind == "ddp" else model)
        print("step", session.step_number, flush=True)  # noqa: T201
        if given.evaluate_s is not None and session.step_number % 10 == 0:
            evaluate(given.evaluate_s)
        if given.step_s:
            time.sleep(given.step_s)
    write(given, model, ema, rank)
    session.finish()
    if given.kind != "plain":
        dist.destroy_process_group()


def write(given: argparse.Namespace, model: Any, ema: Any, rank: int) -> None:
    """All of the weights, as one process would have them."""
    whole = {}
    for name, tensor in (model.module if given.kind == "ddp" else model).state_dict().items():
        whole[name] = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    whole |= {f"ema.{name}": tensor for name, tensor in (ema.state_dict() if ema else {}).items()}
    if rank == 0:
        torch.save(whole, given.folder / "weights.pt")


if __name__ == "__main__":
    main()
