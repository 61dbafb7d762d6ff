"""The training without a run and without interruption: what its weights are then, and how fast this
computer is."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median

from msgspec import DecodeError, Struct, json

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.providers.local import processes

COMMAND = "torchrun --standalone --nproc-per-node 2 train.py --steps {steps}"
_LOOK_S = 0.2
_STEPS = "steps.jsonl"
_PARTS = 10
_WEIGHTS = re.compile(r"^weights ([0-9a-f]+)$", re.MULTILINE)


class Alone(Struct, frozen=True, kw_only=True):
    weights: str
    start_s: float
    """Until its first step."""
    work_s: float
    """From there to its end."""


def train(folder: Path, steps: int, env: dict[str, str], tell: Callable[[int], None]) -> Alone:
    """`tell` is called with how far it is."""
    begun_s = clock.now().timestamp()
    with (folder / "alone.log").open("w+b") as log:
        process = subprocess.Popen(
            COMMAND.format(steps=steps).split(),
            cwd=folder,
            env=processes.marked(env | {"TRADEWIND_METRICS": str(folder / _STEPS)}, folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                clock.sleep(_LOOK_S)
                tell(len(_moments(folder)))
        finally:
            processes.kill_all(folder)  # torchrun's workers have sessions of their own
            process.wait()
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    found, moments = _WEIGHTS.findall(text), _moments(folder)
    if process.returncode or not found or len(moments) < 2:
        last = "\n".join(text.strip().splitlines()[-8:])
        raise TradewindError(
            f"the training could not be run on this computer (exit code {process.returncode}):"
            f"\n{last}",
            hint="`tradewind doctor` says what is missing",
        )
    # Told in batches; a moment in which the computer was busy with something else does not count.
    every = len(moments) // _PARTS or 1
    parts = [after - before for before, after in pairwise(moments[::every])]
    return Alone(
        weights=found[-1],
        start_s=max(moments[0] - begun_s, 0.1),
        work_s=max(median(parts) * len(moments) / every, 0.1),
    )


def weights_in(text: str) -> str:
    """What a job that has ended said of its weights; empty where it did not."""
    found = _WEIGHTS.findall(text)
    return found[-1] if found else ""


def _moments(folder: Path) -> list[float]:
    """When each step was made, as the session tells it to a run."""
    found = []
    with suppress(OSError):
        for line in (folder / _STEPS).read_bytes().splitlines():
            with suppress(DecodeError, KeyError, TypeError):
                row = json.decode(line)
                if "step" in row:
                    found.append(float(row["at_s"]))
    return found
