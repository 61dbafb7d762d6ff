"""Whether the job does anything: makes steps, or at least uses its machine.

A job that counts its steps and makes none has stalled. It is idle only if it uses nothing either:
GPUs where there are NVIDIA's, else processors. One that waits in a collective for a partner that is
gone keeps its GPUs busy: that has stalled, and is not idle.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tradewind.telemetry.gpus import Gpus

_LOOK_S = 15.0
"""Between two looks at what is used: counting processes is not free."""
_GPU_PERCENT = 5
_CPU_SHARE = 0.05
"""Of one processor. What only waits uses less, what works uses more."""

Use = Callable[[float], bool]
"""Whether there was any, up to this uptime; called at most every _LOOK_S."""


class Quiet:
    """Since when. Asked again and again, by the machine's uptime."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self.begin(0.0, 0.0)

    def begin(self, step: float, uptime_s: float) -> None:
        """A job has started."""
        self._step, self._counts = step, False
        self._moved_s = self._used_s = self._looked_s = uptime_s

    def seen(self, step: float, uptime_s: float) -> tuple[float, float]:
        """For how long it has stalled, and for how long it has been idle."""
        if step != self._step:
            self._step, self._counts, self._moved_s = step, True, uptime_s
        if uptime_s - self._looked_s >= _LOOK_S:
            self._looked_s = uptime_s
            if self._use(uptime_s):
                self._used_s = uptime_s
        stalled_s = uptime_s - self._moved_s if self._counts else 0.0
        # Until the last look: what came after it is not known.
        return stalled_s, max(self._looked_s - max(self._moved_s, self._used_s), 0.0)


def of_machine(pids: Callable[[], list[int]]) -> Use:
    """GPUs' where there are any, else that of the processes."""
    return _gpus() or _Processors(pids)


def _gpus() -> Use | None:
    found = Gpus.here()
    if found is None:
        return None

    def use(uptime_s: float) -> bool:
        busy = found.busy_percent()
        return busy is None or busy >= _GPU_PERCENT  # what cannot be seen is not called idle

    return use


class _Processors:
    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids
        self._last: dict[int, float] = {}
        self._at_s = 0.0

    def __call__(self, uptime_s: float) -> bool:
        now = {}
        for pid in self._pids():
            with suppress(OSError, ValueError, IndexError):
                now[pid] = _cpu_s(pid)
        # One that has ended takes its time with it; one that is new has had all of its own since.
        used_s = sum(taken_s - self._last.get(pid, 0.0) for pid, taken_s in now.items())
        passed_s = uptime_s - self._at_s
        self._last, self._at_s = now, uptime_s
        return used_s >= _CPU_SHARE * passed_s


def _cpu_s(pid: int) -> float:
    """User and system time, its own and of those children that it has buried."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
