"""Ranks that save without end and are killed at any moment, again and again.

    FOLDER SEED TIMES WORLD

Each time, what is found afterwards must be complete and right, and no older than what a rank was
told to be durable. They are forked from here, where torch is imported already: most of the moments
are then within a save."""

from __future__ import annotations

import os
import random
import select
import signal
import struct
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint.filesystem  # before forking: it takes a second

from tradewind.torch.checkpoint import Checkpoints, Group, Place

MANY = 5_000_003  # 20 MB: several pieces, and a last one that is not whole


def tensors(step: int) -> dict[str, torch.Tensor]:
    return {
        "large": torch.arange(MANY, dtype=torch.float32) + step,
        "small": torch.full((7,), float(step)),
        "count": torch.tensor(step),
    }


def rank(folder: Path, meeting: str, number: int, world: int, told: int) -> None:
    torch.set_num_threads(1)
    group = Group(dist.FileStore(meeting, world), number, world) if world > 1 else None
    place = Place(folder)
    checkpoints = Checkpoints(place, rank=number, world=world, group=group, keep=2, warn=len)
    found = checkpoints.newest()
    step, now, said = 0, tensors(0), 0
    if found is not None:
        restored = checkpoints.read(found, now)
        step = int(now["count"])
        assert restored.found.step == step
        assert restored.mine is None or restored.mine == b"%d of %d" % (number, step)
    while True:
        step += 1
        checkpoints.gate()
        for tensor in now.values():
            tensor += 1
        words = b"%d of %d" % (number, step)
        checkpoints.save(step, now, {}, b"step %d" % step, words)
        if world > 1:  # as training's own collectives would, keep step with the others
            checkpoints.finish(60)
        time.sleep(random.random() * 0.03)
        saved = checkpoints.poll()
        if saved is not None and saved.step > said:
            said = saved.step
            os.write(told, struct.pack("<q", said))


def look(folder: Path, durable: int) -> None:
    torch.set_num_threads(1)
    warned: list[str] = []
    checkpoints = Checkpoints(Place(folder), warn=warned.append)
    found = checkpoints.newest()
    assert not warned, warned
    if found is None:
        assert durable == 0
        return
    assert found.step >= durable, (found.step, durable)
    now = tensors(0)
    restored = checkpoints.read(found, now)
    assert not warned, warned
    assert restored.shared == b"step %d" % found.step
    for name, tensor in tensors(found.step).items():
        assert torch.equal(now[name], tensor), (name, found.step)
    checkpoints.tidy(60)
    shards = [each for leg in (folder / "shards").iterdir() for each in leg.iterdir()]
    manifests = list((folder / "checkpoints").rglob("*.json"))
    assert len(shards) == len(manifests) <= 3, (shards, manifests)  # the last may not be pruned yet


def fork(work: object, *args: object) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(*args)  # type: ignore[operator]
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def main(folder: Path, seed: int, times: int, world: int) -> None:
    rng = random.Random(seed)
    durable = 0
    for turn in range(times):
        meeting = str(folder / f"meeting-{turn}")
        reader, writer = os.pipe()
        ranks = [
            fork(rank, folder / "c", meeting, number, world, writer) for number in range(world)
        ]
        os.close(writer)
        if not turn:  # however slow the machine is, the first of them saves something
            select.select([reader], [], [], 120)
        time.sleep(0.15 + rng.random() * 0.6)
        rng.shuffle(ranks)
        for each in ranks:  # the others may notice, or not get round to it
            os.kill(each, signal.SIGKILL)
            time.sleep(rng.random() * 0.02)
        for each in ranks:
            _, status = os.waitpid(each, 0)
            assert os.WIFSIGNALED(status), f"a rank failed by itself in turn {turn}"
        data = b""
        while more := os.read(reader, 1 << 16):
            data += more
        os.close(reader)
        told = [step for (step,) in struct.iter_unpack("<q", data)]
        durable = max([durable, *told])
        _, status = os.waitpid(fork(look, folder / "c", durable), 0)
        assert status == 0, f"turn {turn}"
    sys.stdout.write(f"{durable} steps were durable")
    assert durable


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
