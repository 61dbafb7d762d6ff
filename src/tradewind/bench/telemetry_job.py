"""One rank of `tradewind bench telemetry`: `python -m … FOLDER STEPS ROUNDS`.

The same loop, plain and with a session, in turns and in the same process; what each took is
printed as JSON. `session` is without telemetry, `telemetry` with all of it. A step has an optimizer
step and a loss and nothing else: what a session adds would be lost in the noise of a real one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tradewind.base import clock

WAYS = ("bare", "session", "telemetry")
_WARM = 50


def main(folder: Path, steps: int, rounds: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        world, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
        dist.init_process_group("gloo", init_method=os.environ["MEET"], world_size=world, rank=rank)
    found: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way in WAYS:
            found[way].append(_measured(way, steps, folder / f"{way}-{number}"))
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    sys.stdout.write(json.dumps(found) + "\n")


def _measured(way: str, steps: int, folder: Path) -> tuple[float, ...]:
    """Seconds for each step: by the clock, of this thread, and of all threads."""
    import torch

    import tradewind.torch as tw

    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    weight = model[1].bias
    session: Any = None
    if way != "bare":
        session = tw.session(
            model=model,
            optimizer=optimizer,
            folder=folder,
            every_s=1e9,
            telemetry=way == "telemetry",
        )
    made = session.step if session is not None else _nothing

    def go(number: int) -> None:
        for _ in range(number):
            loss = weight.sum()  # a new one each time, as in a training
            optimizer.step()
            made(loss=loss)

    go(_WARM)
    before = _clocks()
    go(steps)
    taken = tuple((b - a) / steps for a, b in zip(before, _clocks(), strict=True))
    if session is not None:
        session.close()
    return taken


def _clocks() -> tuple[float, float, float]:
    return clock.stopwatch(), time.thread_time(), time.process_time()


def _nothing(**values: Any) -> None:
    pass


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
