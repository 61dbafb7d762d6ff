"""Where a training runs: what a supervisor says in the environment, and who the other ranks are.

Every variable may be missing: the same script runs under `python` and `torchrun` alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.errors import InvalidValue

DEFAULT_EVERY_S = 600.0
FIRST_S = 60.0
"""Where nobody says how often: the first save comes so soon, the next after twice that time, and so
on up to the default. A training that is ended by hand in its first minutes has lost little."""


class Surroundings(Struct, frozen=True):
    rank: int
    world: int
    run_id: str = ""
    progress: Path | None = None
    save: Path | None = None
    cadence: Path | None = None
    metrics: Path | None = None
    telemetry: Path | None = None


def surroundings(env: Mapping[str, str] | None = None) -> Surroundings:
    import torch.distributed as dist

    known = os.environ if env is None else env
    rank, world = 0, 1
    if dist.is_available() and dist.is_initialized():
        rank, world = dist.get_rank(), dist.get_world_size()
    elif int(known.get("WORLD_SIZE") or 1) > 1:
        raise InvalidValue(
            f"this is one of {known['WORLD_SIZE']} processes, which do not know each other yet",
            hint="call torch.distributed.init_process_group before tradewind.torch.session",
        )

    def path(name: str) -> Path | None:
        value = known.get(f"TRADEWIND_{name}")
        return Path(value) if value else None

    return Surroundings(
        rank=rank,
        world=world,
        run_id=known.get("TRADEWIND_RUN", ""),
        progress=path("PROGRESS"),
        save=path("SAVE"),
        cadence=path("CADENCE"),
        metrics=path("METRICS"),
        telemetry=path("TELEMETRY"),
    )


class Cadence:
    """When the next save is due, by time: as the file says, which is written anew now and then,
    else as the script says, else every ten minutes."""

    def __init__(self, file: Path | None, every_s: float | None) -> None:
        self._file, self._own_s = file, every_s
        self._every_s = every_s or FIRST_S
        self._told = every_s is not None
        self.keep: int | None = None
        """How many checkpoints to keep, where the run's workload says."""
        self._from = clock.monotonic()
        self._once = self._done = 0
        self.read()

    def read(self) -> None:
        """From time to time, by another thread. What the script says holds against the file."""
        if self._file is None:
            return
        try:
            said = json.loads(self._file.read_bytes())
            every_s, keep = float(said["every_s"]), int(said.get("keep", 0))
            self._once = int(said.get("once", 0))
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return
        if keep > 0:
            self.keep = keep
        if every_s > 0 and self._own_s is None:
            self._every_s, self._told = every_s, True

    def due(self) -> bool:
        """Or wanted at once, since the machine may be taken."""
        return self._once > self._done or clock.monotonic() - self._from >= self._every_s

    def saved(self) -> None:
        self._from = clock.monotonic()
        self._done = self._once
        if not self._told:
            self._every_s = min(2 * self._every_s, DEFAULT_EVERY_S)

    def refused(self) -> None:
        """It could not begin, because another save still runs: soon again, and not at once."""
        self._from = clock.monotonic() - self._every_s * 0.9
