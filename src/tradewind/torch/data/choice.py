"""How many workers a loader gets, from what was measured. Pure.

What a step costs with n workers is the longer of the training's step and the time between two
batches, and what taking over a batch costs the training process; without workers, making the batch
comes on top of the step. Where the step is not known it is taken to be as long as the batches need
at best: there the choice matters most. Of those that are nearly as good the fewest workers win.
"""

from __future__ import annotations

from math import ceil

from msgspec import Struct

from tradewind.torch.data.machine import Machine

_NEARLY = 1.05
_UNSURE = 1.25
"""What is made beside the training cannot hold it up: a short trial on a busy machine must not talk
a loader out of its workers."""
_MOST = 16
_SMALL_S = 0.001
"""A batch that is made so fast: handing it over takes about as long."""
_OF_MEMORY, _OF_SHARED = 0.15, 0.5


class Probe(Struct, frozen=True):
    """A batch, made in the training process by one thread."""

    batch_s: float
    cpu_s: float
    """Of these, how long it needed the processor."""
    queued_s: float
    """Of these again, how long it waited for others to leave it."""
    batch_bytes: int
    uneven: float
    """How much longer a slow batch takes than the usual one."""


class Trial(Struct, frozen=True):
    workers: int
    every_s: float
    """Between two batches."""
    taking_s: float
    """What taking one over costs the training process."""
    paced: bool = False
    """With the step in between: then `every_s` is all that a step takes."""


class Choice(Struct, frozen=True):
    num_workers: int
    prefetch_factor: int | None
    pin_memory: bool
    persistent_workers: bool
    why: str


def waits(probe: Probe) -> bool:
    """Whether it mostly waits, for a disk or a network: then cores are not what it needs."""
    return probe.cpu_s < 0.5 * probe.batch_s


def is_small(probe: Probe) -> bool:
    return probe.batch_s - probe.queued_s < _SMALL_S


def candidates(probe: Probe, machine: Machine, step_s: float | None) -> list[int]:
    """Numbers of workers worth a trial, the fewest first."""
    if is_small(probe):
        return []
    cores = max(1, int(machine.cores))
    wanted = {1, cores} | ({cores - 1, cores // 2} if cores > 2 else set())
    if waits(probe):
        wanted = {cores, 2 * cores, 4 * cores}
    if step_s:  # no more than could be needed, if they were fast
        needed = ceil(1.2 * probe.batch_s / step_s)
        needed = needed if waits(probe) else min(needed, ceil(machine.cores))
        wanted = {needed, *(each for each in wanted if each > needed)}
    most = min(_MOST, room(probe, machine) // 2)
    return sorted({min(each, most) for each in wanted if each > 0} - {0})


def room(probe: Probe, machine: Machine) -> int:
    """How many batches may wait in all."""
    if not probe.batch_bytes:
        return 1 << 20
    most = min(_OF_MEMORY * machine.memory, _OF_SHARED * machine.shared)
    return int(most / probe.batch_bytes)


def expected(workers: int, probe: Probe, machine: Machine) -> Trial:
    """Where there is no time to try."""
    taking_s = 0.0004 + probe.batch_bytes / 4e9
    busy_s = probe.cpu_s / max(1.0, min(machine.cores, workers))
    return Trial(workers, max(probe.batch_s / workers, busy_s, taking_s), taking_s)


def chosen(
    probe: Probe, trials: list[Trial], machine: Machine, step_s: float | None, took_s: float
) -> Choice:
    best_s = min([probe.batch_s, *(trial.every_s for trial in trials if trial.workers)])
    step = step_s if step_s else best_s
    costs = {0: step + probe.batch_s}
    for trial in trials:
        beside_s = max(step, trial.every_s) + trial.taking_s
        costs[trial.workers] = trial.every_s if trial.paced else beside_s
    if any(probe.batch_s - probe.queued_s > 10 * trial.taking_s for trial in trials):
        costs[0] *= _UNSURE
    least = min(costs.values())
    workers = min(number for number, cost in costs.items() if cost <= _NEARLY * least)
    ahead = None
    if workers:
        ahead = 4 if probe.uneven > 3 or waits(probe) else 2
        ahead = max(1, min(ahead, room(probe, machine) // workers))
    why = _why(probe, trials, machine, step_s, took_s)
    return Choice(workers, ahead, machine.gpu, workers > 0, why)


def _why(
    probe: Probe, trials: list[Trial], machine: Machine, step_s: float | None, took_s: float
) -> str:
    own_s = max(0.0, probe.cpu_s - probe.queued_s)
    words = f"a batch takes {_time(probe.batch_s)} to make"
    words += f", {100 * own_s / probe.batch_s:.0f} % of it on the CPU"
    if probe.queued_s > 0.2 * probe.batch_s:
        words += f" and {100 * probe.queued_s / probe.batch_s:.0f} % waiting for other programs"
    if trials:
        rates = {0: probe.batch_s} | {trial.workers: trial.every_s for trial in trials}
        unit = "steps" if any(trial.paced for trial in trials) else "batches"
        said = ", ".join(f"{1 / s:.3g} with {n}" for n, s in rates.items() if n)
        words += f"; {1 / rates[0]:.3g} {unit}/s without workers, {said}"
    elif is_small(probe):
        words += ", about what handing it over takes"
    if room(probe, machine) < 2 * _MOST:
        free = min(machine.memory, machine.shared) / 1e6
        words += (
            f"; batches of {probe.batch_bytes / 1e6:.3g} MB leave room for few:"
            f" {free:.3g} MB of /dev/shm and memory are free"
        )
    cores = f"{machine.cores:.3g} core{'' if machine.cores == 1 else 's'}"
    words += f"; {cores} for each of {machine.ranks} ranks" if machine.ranks > 1 else f"; {cores}"
    if step_s:
        words += f", a step of {_time(step_s)}"
    return f"{words}; measured in {took_s:.1f} s"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
