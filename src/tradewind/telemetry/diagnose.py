"""What holds a training up: `diagnose(figures)`. Pure.

Each finding has the share of time that it costs, the figures that show it, and what to do next. The
first is the one to look after. A training that loses little time to anything is bound by what it
computes, and how is said then: there is always an answer, also `starting` and `unclear`.

Ranks wait for each other in collectives. What all of them wait is the network's; what the others
wait more is for the one that comes late, and that one's own troubles are the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tradewind.model.figures import Figures
from tradewind.telemetry import advice

WAITS = 0.10
"""From this share of time on, waiting for data or for checkpoints is worth a word."""
TALKS = 0.15
"""The same for collectives: some of it is the price of having several GPUs."""
LATE = 0.10
"""The share of a step that others wait for a rank that straggles."""
CROWDED = 0.15
IDLE_GPU = 0.80
BUSY_MEMORY = 0.55
"""NVML's own figure is of time, not of bytes: kernels that do nothing but read memory show 0.6 to
1, matrix products well below a half."""
SLOW_CLOCK = 0.85
"""A GPU that is held at its power limit is slowed down by it from here on: a little is usual."""
BUSY_CPU = 0.70
FEW = 3
"""Steps that there must be before a share of them says anything."""
STALL_S, STALL_STEPS = 30.0, 20.0


class Diagnosis(Struct, frozen=True, kw_only=True):
    kind: str
    """starting, stalled, throttled, checkpoint-bound, input-bound, communication-bound, straggling,
    crowded, launch-bound, memory-bound, compute-bound, unclear, over"""
    share: float
    """Of the time: what would be won without it, at most."""
    evidence: str
    todo: str = ""
    rank: int | None = None
    """Whose it is, where it is not everybody's."""

    @property
    def words(self) -> str:
        who = self.kind if self.rank is None else f"{self.kind}, rank {self.rank}"
        return f"{who}: {self.evidence}" + (f"; {self.todo}" if self.todo else "")


def diagnose(figures: Sequence[Figures]) -> list[Diagnosis]:
    """The heaviest first. Of the ranks of one training, in any order; [] for none at all."""
    if not figures:
        return []
    ranks = sorted(figures, key=lambda each: each.rank)
    alone = _not_under_way(ranks)
    if alone is not None:
        return [alone]
    under_way = [each for each in ranks if each.steps >= FEW]
    found = [
        *_throttled(under_way),
        *_saving(under_way),
        *_apart(under_way),
        *_crowded(under_way),
    ]
    found.sort(key=lambda each: -each.share)
    return found or [_bound(under_way)]


def _not_under_way(ranks: list[Figures]) -> Diagnosis | None:
    first = ranks[0]
    if all(each.over for each in ranks):
        return Diagnosis(kind="over", share=0.0, evidence=f"it has ended after step {first.step:,}")
    quiet = min(ranks, key=lambda each: each.last_s)
    usual_s = max((each.step_s or 0.0 for each in ranks), default=0.0)
    if usual_s and quiet.last_s > max(STALL_S, STALL_STEPS * usual_s):
        return Diagnosis(
            kind="stalled",
            share=1.0,
            evidence=f"no step for {quiet.last_s:.0f} s, where one took {_time(usual_s)}",
            todo=advice.stalled(ranks),
        )
    if all(each.steps < FEW for each in ranks):
        what = f"{first.steps} steps" if first.steps else "no step"
        return Diagnosis(
            kind="starting",
            share=0.0,
            evidence=f"{what} in the {first.up_s:.0f} s since it began",
            todo=advice.starting(first),
        )
    return None


# -- what takes time away --------------------------------------------------------------------------


def _throttled(ranks: list[Figures]) -> list[Diagnosis]:
    found = []
    for each in ranks:
        gpu = each.gpu
        if gpu is None or not gpu.slowed or not gpu.clock_mhz or not gpu.top_mhz:
            continue
        speed = gpu.clock_mhz / gpu.top_mhz
        if gpu.slowed == ("power",) and speed > SLOW_CLOCK:
            continue
        power = f", {gpu.power_w:.0f} of {gpu.limit_w:.0f} W" if gpu.power_w and gpu.limit_w else ""
        heat = f", {gpu.temperature_c} °C" if gpu.temperature_c else ""
        found.append(
            Diagnosis(
                kind="throttled",
                share=max(1 - speed, 0.0),
                evidence=f"the GPU runs at {gpu.clock_mhz} of {gpu.top_mhz} MHz because of"
                f" {' and '.join(gpu.slowed)}{power}{heat}",
                todo=advice.throttled(gpu),
                rank=each.rank if each.world > 1 else None,
            )
        )
    return found


def _saving(ranks: list[Figures]) -> list[Diagnosis]:
    worst = max(ranks, key=lambda each: each.saving)
    if worst.saving < WAITS:
        return []
    return [
        Diagnosis(
            kind="checkpoint-bound",
            share=worst.saving,
            evidence=f"training stands still for checkpoints {_share(worst.saving)} of the time",
            todo=advice.saving(),
        )
    ]


def _apart(ranks: list[Figures]) -> list[Diagnosis]:
    """Input, communication, and who is late: ranks are compared, as each waits for the others."""
    waits = sum(each.data or 0.0 for each in ranks) / len(ranks)
    talks = min(each.comm or 0.0 for each in ranks)
    late, lead = _latest(ranks)
    found = []
    if late is not None and lead >= LATE:
        found.append(_straggler(late, lead, ranks))
    if waits >= WAITS and not (late is not None and lead >= LATE and len(ranks) > 1):
        worst = max(ranks, key=lambda each: each.data or 0.0)
        found.append(
            Diagnosis(
                kind="input-bound",
                share=waits,
                evidence=f"{_share(waits)} of each step waits for data{_workers(worst)}",
                todo=advice.data(worst),
            )
        )
    if talks >= TALKS:
        how = next(each.comm_by for each in ranks if each.comm is not None)
        step = _time(max(each.step_s or 0.0 for each in ranks))
        found.append(
            Diagnosis(
                kind="communication-bound",
                share=talks,
                evidence=f"{_share(talks)} of each step ({step}) waits for collectives of"
                f" {ranks[0].world} ranks ({advice.how_known(how)})",
                todo=advice.communication(ranks),
            )
        )
    return found


def _latest(ranks: list[Figures]) -> tuple[Figures | None, float]:
    """The rank that the others wait for, and how much longer they wait than it does."""
    known = [each for each in ranks if each.comm is not None]
    if len(known) < 2:
        return None, 0.0
    late = min(known, key=lambda each: each.comm or 0.0)
    others = sorted(each.comm or 0.0 for each in known if each is not late)
    return late, others[len(others) // 2] - (late.comm or 0.0)


def _straggler(late: Figures, lead: float, ranks: list[Figures]) -> Diagnosis:
    others = [each for each in ranks if each is not late]
    why, todo = "", advice.straggling(late)
    data = (late.data or 0.0) - sum(each.data or 0.0 for each in others) / len(others)
    if data >= lead / 2:
        why = f"; it waits for data {_share(late.data or 0.0)} of the time{_workers(late)}"
        todo = advice.data(late)
    elif (late.crowded or 0.0) >= CROWDED:
        why = f"; other processes have its processor {_share(late.crowded or 0.0)} of the time"
        todo = advice.crowded(late)
    elif late.gpu is not None and late.gpu.slowed:
        why = f"; its GPU is slowed down by {' and '.join(late.gpu.slowed)}"
    where = f" on {late.host}" if late.host else ""
    who = "the other waits" if len(others) == 1 else "the others wait"
    return Diagnosis(
        kind="straggling",
        share=lead,
        evidence=f"{who} {_share(lead)} of each step for it{where}{why}",
        todo=todo,
        rank=late.rank,
    )


def _crowded(ranks: list[Figures]) -> list[Diagnosis]:
    """Where all ranks share one computer that has too little for them."""
    least = min(each.crowded or 0.0 for each in ranks)
    if least < CROWDED:
        return []
    return [
        Diagnosis(
            kind="crowded",
            share=least,
            evidence=f"other processes use the CPU {_share(least)} of the time in which"
            " training could run",
            todo=advice.crowded(ranks[0]),
        )
    ]


# -- what it is bound by where nothing takes time away ---------------------------------------------


def _bound(ranks: list[Figures]) -> Diagnosis:
    with_gpu = [each for each in ranks if each.gpu is not None and each.gpu.busy is not None]
    return _of_gpus(with_gpu) if with_gpu else _of_processors(ranks)


def _of_gpus(ranks: list[Figures]) -> Diagnosis:
    gpus = [each.gpu for each in ranks if each.gpu is not None]
    busy = sum(gpu.busy or 0.0 for gpu in gpus) / len(gpus)
    memory = sum(gpu.memory_busy or 0.0 for gpu in gpus) / len(gpus)
    watts = [gpu.power_w / gpu.limit_w for gpu in gpus if gpu.power_w and gpu.limit_w]
    power = f", {_share(sum(watts) / len(watts))} of its power" if watts else ""
    if busy < IDLE_GPU:
        return Diagnosis(
            kind="launch-bound",
            share=1 - busy,
            evidence=f"the GPU is busy {_share(busy)} of the time{power}, and nothing waits for"
            " data, checkpoints or other ranks: Python does not keep up",
            todo=advice.launches(),
        )
    kind = "memory-bound" if memory >= BUSY_MEMORY else "compute-bound"
    return Diagnosis(
        kind=kind,
        share=memory if kind == "memory-bound" else 0.0,
        evidence=f"the GPU is busy {_share(busy)} and its memory {_share(memory)} of the time"
        f"{power}",
        todo=advice.bandwidth() if kind == "memory-bound" else advice.compute(ranks[0]),
    )


def _of_processors(ranks: list[Figures]) -> Diagnosis:
    first = ranks[0]
    used, threads = first.cpu or 0.0, max(first.threads, 1)
    if used >= BUSY_CPU * threads or used >= BUSY_CPU * max(first.cores, 1):
        return Diagnosis(
            kind="compute-bound",
            share=0.0,
            evidence=f"it keeps {used:.1f} of {first.cores} processors busy with {threads} threads",
            todo=advice.processors(first),
        )
    return Diagnosis(
        kind="unclear",
        share=max(1 - used / threads, 0.0),
        evidence=f"it keeps {used:.1f} of {first.cores} processors busy and has {threads} threads,"
        " and waits for nothing that is measured",
        todo="look at it with torch.profiler: sleeps, files and networks in the loop are not seen",
    )


# -- words -----------------------------------------------------------------------------------------


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def _workers(each: Figures) -> str:
    if each.workers is None or not each.cores:
        return ""
    one = "worker" if each.workers == 1 else "workers"
    return f"; {each.workers or 'no'} loader {one} on {each.cores} cores"
