"""What a session costs a training: the same loop without and with one, each in a process of its
own, in turns (training_job.py). What is less than nothing is said too: it shows how far two runs of
the same loop lie apart.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import MissingExtra, SourceFailed
from tradewind.bench.training_job import SHAPES, WARM
from tradewind.model import Accelerator

LIMIT = 0.01
_LIMIT_S = 1800
BIG = SHAPES["big"]


def measure(
    folder: Path,
    device: str,
    *,
    model: str = "",
    steps: int = 100,
    turns: int = 2,
    save_every: int = 100,
    kinds: tuple[str, ...] = ("plain", "session"),
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """`steps` a turn; `turns` of each loop. The first of `kinds` is what the others are held
    against."""
    if find_spec("torch") is None:
        raise MissingExtra("training needs torch", hint="pip install 'tradewind[torch]'")
    model = model or ("big" if device == "cuda" else "small")
    shape = SHAPES[model]
    place = folder / f"tradewind-bench-{clock.new_id('t')}"
    place.mkdir(parents=True)
    told: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    try:
        for turn in range(turns):
            # There and back: a machine that gets slower must not count for one of them.
            for kind in kinds if turn % 2 == 0 else reversed(kinds):
                one = place / f"{kind}-{turn}"
                found = _job(kind, model, device, steps, save_every, one)
                shutil.rmtree(one, ignore_errors=True)
                told[kind].append(found)
                progress(f"{kind}: {steps * shape.tokens / found['steps_s']:,.0f} tokens/s")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    taken = {kind: sum(each["steps_s"] for each in found) for kind, found in told.items()}
    rates = {
        kind: [steps * shape.tokens / each["steps_s"] for each in found]
        for kind, found in told.items()
    }
    first, last = kinds[0], told[kinds[-1]]
    return {
        "device": last[0]["device"],
        "torch": last[0]["torch"],
        "weights": last[0]["weights"],
        "sequence": shape.sequence,
        "batch": shape.micro_batch,
        "steps": steps * turns,
        "warm": WARM,
        "saves": sum(each["saves"] for each in last),
        "told": last[-1]["told"],
        **{f"{kind}_tokens_s": round(median(found)) for kind, found in rates.items()},
        **{f"{kind}_overhead": round(taken[kind] / taken[first] - 1, 5) for kind in kinds[1:-1]},
        "overhead": round(taken[kinds[-1]] / taken[first] - 1, 5),
        "end_s": round(median(each["end_s"] for each in last), 3),
        "turns": {kind: [round(each) for each in found] for kind, found in rates.items()},
    }


def in_turns(
    folder: Path,
    device: str,
    *,
    model: str = "",
    steps: int = 20,
    turns: int = 20,
    kinds: tuple[str, ...] = ("plain", "session"),
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """All loops at once, each in its process, taking turns of a few steps. A machine whose speed
    drifts by more than a session costs drifts for all of them; what one turn of a loop took is held
    against the turn of the first kind beside it."""
    model = model or ("launches" if device == "cuda" else "small")
    place = folder / f"tradewind-bench-{clock.new_id('t')}"
    place.mkdir(parents=True)
    jobs: dict[str, subprocess.Popen[str]] = {}
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        about: dict[str, Any] = {}
        for kind in kinds:
            jobs[kind] = _started(kind, model, device, steps, 0, place / kind)
            about = _answer(kind, jobs[kind])
        for turn in range(turns):
            for kind in kinds if turn % 2 == 0 else reversed(kinds):
                stdin = jobs[kind].stdin
                assert stdin is not None
                stdin.write("go\n")
                stdin.flush()
                took[kind].append(_answer(kind, jobs[kind]))
            progress(f"turn {turn + 1} of {turns}")
    finally:
        for job in jobs.values():
            job.kill()
            job.communicate()
        shutil.rmtree(place, ignore_errors=True)
    found: dict[str, Any] = {**about, "steps": steps * turns, "turns": turns}
    for kind in kinds:
        found[f"{kind}_ms"] = round(1e3 * median(took[kind]) / steps, 3)
    for kind in kinds[1:]:
        pairs = zip(took[kind], took[kinds[0]], strict=True)
        ratios = [ours / plain - 1 for ours, plain in pairs]
        found[f"{kind}_overhead"] = round(median(ratios), 5)
        low, _, high = quantiles(ratios, n=4, method="inclusive")
        found[f"{kind}_half_within"] = [round(low, 5), round(high, 5)]
    return found


def _answer(kind: str, job: subprocess.Popen[str]) -> Any:
    assert job.stdout is not None
    line = job.stdout.readline()
    if not line:
        assert job.stderr is not None
        raise SourceFailed(f"the loop {kind!r} has failed: {job.stderr.read().strip()[-500:]}")
    return json.loads(line)


def _job(
    kind: str, model: str, device: str, steps: int, save_every: int, folder: Path
) -> dict[str, Any]:
    job = _started(kind, model, device, steps, save_every, folder)
    try:
        out, err = job.communicate(timeout=_LIMIT_S)
    finally:
        job.kill()
    if job.returncode:
        raise SourceFailed(f"the loop {kind!r} has failed: {err.strip()[-500:]}")
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def _started(
    kind: str, model: str, device: str, steps: int, save_every: int, folder: Path
) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "tradewind.bench.training_job", kind, model, device]
    return subprocess.Popen(
        [*command, str(steps), str(save_every), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def estimated_tokens_s(accelerator: Accelerator) -> float:
    """Of the plain loop, by `tradewind estimate`'s own model."""
    from tradewind.bench import gpu_shapes, gpu_steps

    shape = gpu_shapes.Step(
        BIG.layers, BIG.width, BIG.sequence, BIG.micro_batch, recompute=False, compiled=False
    )
    return BIG.tokens / gpu_steps.estimated(shape, accelerator)[0]
