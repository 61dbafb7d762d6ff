"""Each way in turn: trains, saves while it trains, and compares what was saved with what was.

The stall of a save is how much longer the steps took, and what lay between them, from the one that
it began in to the one in which it was durable, than as many undisturbed ones right before; less
than nothing is said too. `first` is the first save, `steady` the median of the others; `copying`
counts the first four steps only. `bare` is a step before there was anything of a way in the
process, and `end` a last save that is waited for, with all that a way does after it.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, MissingExtra, NotFound
from tradewind.bench.checkpoint import disk
from tradewind.bench.checkpoint.trainer import Trainer
from tradewind.bench.checkpoint.ways import WAYS, Way

STEADY_LIMIT_S, FIRST_LIMIT_S = 0.05, 0.1
WRITE_LIMIT, READ_LIMIT = 0.85, 0.83
_LEAST = 4  # steps after a save
_MOST_S = 200.0  # until it is durable
_ROOM = 3.2  # the newest, two before, and a little: none is removed while another is written


def measure(
    state_bytes: float,
    folder: Path,
    device: str,
    ways: Sequence[str] = tuple(WAYS),
    *,
    limit_s: float = 900.0,
    progress: Callable[[str], object] = lambda what: None,
) -> dict[str, Any]:
    torch = _torch(device)
    unknown = [name for name in ways if name not in WAYS]
    if unknown:
        raise InvalidValue(f"there is no way {unknown[0]!r}", hint=f"known: {', '.join(WAYS)}")
    began = clock.stopwatch()
    place = folder / f"tradewind-bench-{clock.new_id('c')}"
    place.mkdir(parents=True)
    try:
        fits = shutil.disk_usage(place).free / _ROOM
        if fits < state_bytes:
            progress(f"the disk has room for three of {fits / 1e9:.1f} GB, so that is saved")
        progress("building the model")
        trainer = Trainer(min(state_bytes, fits), device)
        size = sum(t.numel() * t.dtype.itemsize for t in trainer.tensors().values())
        progress("measuring the disk")
        found: dict[str, Any] = {
            "device": torch.cuda.get_device_name() if trainer.cuda else "cpu",
            "torch": torch.__version__,
            "bytes": size,
            "tensors": len(trainer.tensors()),
            "disk": _rounded(disk.ceiling(place, size)),
            "check_bytes_s": float(f"{_check_rate():.3g}"),
            "bare_step_s": float(f"{_base(trainer):.4g}"),
            "ways": {},
        }
        for name in ways:
            if clock.stopwatch() - began > 0.8 * limit_s:
                found["ways"][name] = {"left_out": "the time was up"}
                continue
            progress(WAYS[name][1])
            found["ways"][name] = done = _way(trainer, name, place / name, found["disk"])
            progress(f"{name}: {done}")
            shutil.rmtree(place / name, ignore_errors=True)
        found["step_s"] = median(way["step_s"] for way in found["ways"].values() if "step_s" in way)
        found["took_s"] = round(clock.stopwatch() - began, 1)
        return found
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _way(trainer: Trainer, name: str, folder: Path, ceiling: dict[str, float]) -> dict[str, Any]:
    """Whatever a way cannot do here is said in its place; the others go on."""
    make, _, saves = WAYS[name]
    way: Way | None = None
    try:
        way = make(folder, trainer.device)
        found = _measured(trainer, way, saves, ceiling)
        found["end_s"] = way.end(saves, trainer.tensors())
        return _rounded(found)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:500]}
    finally:
        if way is not None:
            with suppress(Exception):
                way.close()
            del way
        gc.collect()  # tens of gigabytes of memory, for the next one


def _measured(trainer: Trainer, way: Way, saves: int, ceiling: dict[str, float]) -> dict[str, Any]:
    base = _base(trainer)
    began = clock.stopwatch()
    way.prepare(trainer.tensors())
    called_s = clock.stopwatch() - began
    meanwhile: list[Any] = []
    while not way.ready() or len(meanwhile) < 3:
        meanwhile.append(trainer.step(way.gate))
    trainer.wait()
    slowed_s = sum(taken - base for taken in trainer.seconds(meanwhile))
    stalls, copying, worst, durable = [], [], [], []
    kept: dict[str, Any] = {}
    facts: list[dict[str, float]] = []
    for number in range(saves):
        base = _base(trainer)  # anew: what a clock drifts by would count once for each step
        taken, durable_s, kept = _save(trainer, way, number, last=number == saves - 1)
        stalls.append(sum(taken) - base * len(taken))
        copying.append(sum(taken[:_LEAST]) - base * _LEAST)
        worst.append(max(taken) - base)
        durable.append(durable_s)
        facts += way.facts()
    found: dict[str, Any] = {
        "step_s": base,
        "prepare_s": called_s,
        "prepare_slowed_s": slowed_s,
        "first_stall_s": stalls[0],
        "steady_stall_s": median(stalls[1:]) if saves > 1 else None,
        "steady_copying_s": median(copying[1:]) if saves > 1 else None,
        "worst_step_s": max(worst[1:] or worst),
        "durable_s": median(durable),
    }
    size = sum(tensor.numel() * tensor.dtype.itemsize for tensor in kept.values())
    if facts:
        found |= {key: median(each[key] for each in facts) for key in ("copy_s", "write_s")}
        found["write_share"] = facts[0]["bytes"] / found["write_s"] / ceiling["write"]
    trainer.wait()
    way.settle()
    disk.forget(way.folder)
    tensors = trainer.tensors()
    began = clock.stopwatch()
    way.restore(tensors)
    trainer.wait()
    found["restore_s"] = clock.stopwatch() - began
    found["restore_share"] = size / found["restore_s"] / ceiling["read"]
    found["wrong_tensors"] = sum(1 for _ in _wrong(kept, tensors))
    return found


def _base(trainer: Trainer) -> float:
    """An undisturbed step."""
    steps = [trainer.step(lambda: None) for _ in range(9)]
    trainer.wait()
    return median(trainer.seconds(steps[1:]))


def _save(
    trainer: Trainer, way: Way, number: int, *, last: bool
) -> tuple[list[float], float, dict[str, Any]]:
    """How long each step took until it was durable, how long that took, and, of the last, what
    should be in it."""
    tensors = trainer.tensors()
    kept: dict[str, Any] = {}
    steps = [trainer.step(way.gate)]
    if last:  # cloned on the device, in order, before the save begins
        kept = {key: tensor.detach().clone() for key, tensor in tensors.items()}
        steps = [trainer.mark()]
    began = clock.stopwatch()
    steps.append(trainer.step(way.gate, lambda: way.save(number, tensors)))
    durable_s = 0.0
    while True:
        if not durable_s and way.durable():
            durable_s = clock.stopwatch() - began
        if durable_s and len(steps) > _LEAST:
            break
        if clock.stopwatch() - began > _MOST_S:
            raise TimeoutError(f"not durable after {_MOST_S:g} s")
        steps.append(trainer.step(way.gate))
    trainer.wait()
    return trainer.seconds(steps), durable_s, kept


def _wrong(kept: dict[str, Any], tensors: dict[str, Any]) -> Iterator[str]:
    import torch

    for name, tensor in kept.items():
        if not torch.equal(tensor, tensors[name].detach()):
            yield name


def _check_rate() -> float:
    """Bytes a second of which one thread makes check sums."""
    from tradewind.torch.checkpoint.pieces import checksum

    data = bytes(16 << 20)
    began = clock.stopwatch()
    checksum(data)
    return len(data) / (clock.stopwatch() - began)


def best_device() -> str:
    return "cuda" if _torch("cpu").cuda.is_available() else "cpu"


def _torch(device: str) -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtra(
            "saving checkpoints needs torch", hint="pip install 'tradewind[torch]'"
        ) from None
    if device == "cuda" and not torch.cuda.is_available():
        raise NotFound("there is no GPU that PyTorch can use", hint="--device cpu")
    return torch


def _rounded(found: dict[str, Any]) -> dict[str, Any]:
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in found.items()
    }
