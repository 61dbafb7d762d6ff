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
from math import hypot, sqrt
from pathlib import Path
from statistics import mean, median, stdev
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
    processes: int = 3,
    kinds: tuple[str, ...] = ("plain", "session"),
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """One process of each kind at once, taking turns of a few steps: a machine whose speed drifts
    by more than a session costs drifts for all of them. One process may be a tenth slower than the
    next, all its life long, with the same loop in it: so each is held against itself, first with
    the plain loop, before there is a session in it, then with the loop of its kind. Those that stay
    plain tell what the change itself costs."""
    model = model or ("launches" if device == "cuda" else "small")
    place = folder / f"tradewind-bench-{clock.new_id('t')}"
    place.mkdir(parents=True)
    ms: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    about: dict[str, Any] = {}
    try:
        for number in range(processes):
            took, about = _one_of_each(place / str(number), device, model, steps, turns, kinds)
            for kind, each in took.items():
                ms[kind].append((_ms(each[:turns], steps), _ms(each[turns:], steps)))
            progress(f"{number + 1} of {processes} processes of each")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return {**about, "steps": steps, "turns": turns, "processes": processes, **_compared(ms)}


def by_parts(
    folder: Path,
    device: str,
    *,
    model: str = "",
    steps: int = 200,
    processes: int = 3,
    kinds: tuple[str, ...] = ("plain", "session"),
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    """Where a session has its hand in a step, timed by itself: taking a batch, hooks around the
    optimizer's step, `session.step()`. Where whole steps of the same loop differ by a tenth from
    one minute to the next, this still tells a thousandth. Threads beside the loop can hold it up by
    no more than they work. Microseconds a step, medians of the steps, and of the processes the
    middle one."""
    model = model or ("launches" if device == "cuda" else "small")
    place = folder / f"tradewind-bench-{clock.new_id('t')}"
    place.mkdir(parents=True)
    told: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    about: dict[str, Any] = {}
    try:
        for number in range(processes):
            for kind in kinds:
                found = _job(kind, model, device, steps, -1, place / f"{kind}-{number}")
                parts = found.pop("parts")
                told[kind].append(
                    {name: median(taken) for name, taken in parts.items()}
                    | {"beside": found.pop("beside_s"), "step": found.pop("step_s")}
                )
                about = found
            progress(f"{number + 1} of {processes} processes of each")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    us = {
        kind: {name: 1e6 * median(each[name] for each in found) for name in found[0]}
        for kind, found in told.items()
    }
    plain = us[kinds[0]]
    return {
        **about,
        "steps": steps,
        "processes": processes,
        "us": {
            kind: {name: round(each, 1) for name, each in of.items()} for kind, of in us.items()
        },
        **{
            f"{kind}_overhead": round(
                sum(us[kind][name] - plain[name] for name in plain if name != "step")
                / plain["step"],
                5,
            )
            for kind in kinds[1:]
        },
    }


def _one_of_each(
    folder: Path, device: str, model: str, steps: int, turns: int, kinds: tuple[str, ...]
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """What the turns of each took, in seconds, as many plain as of its kind; and about them."""
    jobs: dict[str, subprocess.Popen[str]] = {}
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    about: dict[str, Any] = {}
    try:
        for kind in kinds:
            jobs[kind] = _started(kind, model, device, steps, 0, folder / kind)
        for kind in kinds:
            about = _answer(kind, jobs[kind])
        for turn in range(2 * turns):
            if turn == turns:
                for kind in kinds:
                    _asked(kind, jobs[kind], "change")
            for kind in kinds if turn % 2 == 0 else reversed(kinds):
                took[kind].append(_asked(kind, jobs[kind], "go"))
    finally:
        for job in jobs.values():
            job.kill()
            job.communicate()
    return took, about


def _ms(taken_s: list[float], steps: int) -> float:
    return 1e3 * median(taken_s) / steps


def _compared(ms: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """What steps of each kind took, by process, before and after the change; and how much more the
    change made of them than it made of those that stayed plain."""
    found: dict[str, Any] = {}
    for kind, each in ms.items():
        found[f"{kind}_before_ms"] = [round(before, 3) for before, _ in each]
        found[f"{kind}_ms"] = [round(after, 3) for _, after in each]
    grown = {kind: [after / before for before, after in each] for kind, each in ms.items()}
    (_, plain), *others = grown.items()
    for kind, ratios in others:
        found[f"{kind}_overhead"] = round(mean(ratios) / mean(plain) - 1, 5)
        margin = hypot(_of_mean(ratios), _of_mean(plain)) / mean(plain)
        found[f"{kind}_margin"] = round(margin, 5)
    return found


def _of_mean(values: list[float]) -> float:
    """The standard error of their mean."""
    return float(stdev(values) / sqrt(len(values)))


def _asked(kind: str, job: subprocess.Popen[str], word: str) -> Any:
    assert job.stdin is not None
    job.stdin.write(word + "\n")
    job.stdin.flush()
    return _answer(kind, job)


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
