"""What a session, and telemetry in it, add to each step: for one rank and for two, against a bare
loop in the same processes. The least of several rounds counts: on a busy machine the others
measure the machine. Limits are held against what processors work, of all threads: the clock counts
whatever else runs there too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tradewind.base.errors import MissingExtra, SourceFailed
from tradewind.bench.telemetry_job import WAYS

FIRST_LIMIT_US, WORST_LIMIT_US = 20.0, 50.0
_LIMIT_S = 600


def measure(
    steps: int, rounds: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, Any]:
    if find_spec("torch") is None:
        raise MissingExtra("steps need PyTorch", hint="pip install 'tradewind[torch]'")
    worlds = {}
    for number, world in enumerate((1, 2)):
        progress(number, 2)
        worlds[str(world)] = [_figures(told) for told in _ranks(world, steps, rounds)]
    added = [rank["telemetry"]["added_cpu_us"] for ranks in worlds.values() for rank in ranks]
    return {
        "steps": steps,
        "rounds": rounds,
        "ranks": worlds,
        "first_us": worlds["2"][0]["telemetry"]["added_cpu_us"],
        "worst_us": max(added),
    }


def _ranks(world: int, steps: int, rounds: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="tradewind-bench-") as folder:
        command = [sys.executable, "-P", "-m", "tradewind.bench.telemetry_job", folder]
        started = [
            subprocess.Popen(
                [*command, str(steps), str(rounds)],
                env={**os.environ, **_env(world, rank, Path(folder))},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]
        try:
            told = [process.communicate(timeout=_LIMIT_S) for process in started]
        finally:
            for process in started:
                process.kill()
    for process, (_, errors) in zip(started, told, strict=True):
        if process.returncode:
            raise SourceFailed(f"a rank of the benchmark has failed: {errors.strip()[-500:]}")
    return [json.loads(out.splitlines()[-1]) for out, _ in told]


def _env(world: int, rank: int, folder: Path) -> dict[str, str]:
    """Ranks meet by a file: no port has to be free."""
    if world == 1:
        return {"WORLD_SIZE": "1"}
    return {"WORLD_SIZE": str(world), "RANK": str(rank), "MEET": f"file://{folder}/meet"}


def _figures(told: dict[str, list[list[float]]]) -> dict[str, dict[str, float]]:
    """Microseconds a step: by the clock, and what processors worked for all threads."""
    least = {way: [1e6 * min(kind) for kind in zip(*told[way], strict=True)] for way in WAYS}
    return {
        way: {
            "step_us": round(wall, 1),
            "added_us": round(wall - least["bare"][0], 1),
            "added_cpu_us": round(every - least["bare"][2], 1),
        }
        for way, (wall, _, every) in least.items()
    }
