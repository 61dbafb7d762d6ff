"""How soon a killed job gets on, under plain torchrun and under Tradewind, in turn in one run.

The job is a small real one (recovery_job.py). Under `torchrun --max-restarts` its process is
killed with SIGKILL; under `tradewind run --local` first its process, then its whole machine: host,
supervisor, job. Each time it counts from the kill until the first step that is new. Both jobs live
all the while: the kills of one repeat are seconds apart, and a busy machine slows them alike.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.base.errors import MissingExtra
from tradewind.bench.recovery_kills import under_torchrun, under_tradewind

RATIO_LIMIT = 1.3
EXCESS_LIMIT_S = 3.0


def measure(
    repeats: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    if find_spec("torch") is None:
        raise MissingExtra(
            "the job that is killed needs PyTorch", hint="pip install 'tradewind[torch]'"
        )
    torchrun_s: list[float] = []
    job_s: list[float] = []
    machine_s: list[float] = []
    with (
        _ended_by_sigterm(),
        tempfile.TemporaryDirectory(prefix="tradewind-bench-") as place,
        under_torchrun(Path(place) / "torchrun", repeats) as kill_worker,
        under_tradewind(Path(place) / "tradewind") as ours,
    ):
        for number in range(repeats):
            progress(number, repeats)
            torchrun_s.append(kill_worker())
            job_s.append(ours.kill_job())
            machine_s.append(ours.kill_machine())
    return figures(torchrun_s, job_s, machine_s)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """As by Ctrl-C: the jobs must not outlive whoever was to kill them."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def figures(torchrun_s: list[float], job_s: list[float], machine_s: list[float]) -> dict[str, Any]:
    """Medians, in seconds, what they are against each other, and every value."""
    plain, job, machine = median(torchrun_s), median(job_s), median(machine_s)
    return {
        "torchrun_s": round(plain, 3),
        "job_killed_s": round(job, 3),
        "job_ratio": round(job / plain, 3),
        "machine_killed_s": round(machine, 3),
        "machine_excess_s": round(machine - job, 3),
        "machine_over_torchrun_s": round(machine - plain, 3),
        "within": job / plain <= RATIO_LIMIT and machine - job <= EXCESS_LIMIT_S,
        "repeats": len(torchrun_s),
        "all": {
            "torchrun_s": [round(value, 3) for value in torchrun_s],
            "job_killed_s": [round(value, 3) for value in job_s],
            "machine_killed_s": [round(value, 3) for value in machine_s],
        },
    }
