"""What DistributedDataParallel knows of its own communication.

It times the first ten steps and then one in a hundred: from the first bucket of gradients that is
ready until the last is reduced. What of that did not happen beside the backward pass is waited for.
On a processor timing costs nothing, and one step in ten is timed. On a GPU it is left as PyTorch
has it, as reading a timer there waits for the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

_EVERY = 10
_EACH_S = 2.0
_SMOOTH = 0.5


class Comms:
    """Asked by the main thread between two steps: then nothing else uses the reducer."""

    def __init__(self, modules: Iterable[Any], device: str) -> None:
        self._loggers = [found for each in modules if (found := getattr(each, "logger", None))]
        self._loggers = [each for each in self._loggers if hasattr(each, "_get_ddp_logging_data")]
        self._seen: dict[int, int] = {}
        self._waits: dict[int, float] = {}
        self._next_s = 0.0
        if device == "cpu":
            for each in modules:
                with suppress(AttributeError, RuntimeError):
                    each._set_ddp_runtime_logging_sample_rate(_EVERY)

    def look(self, now_s: float) -> None:
        if now_s < self._next_s or not self._loggers:
            return
        self._next_s = now_s + _EACH_S
        for number, logger in enumerate(self._loggers):
            told = logger._get_ddp_logging_data()
            numbers = told.ints_map
            step = numbers.get("iteration", 0)
            if step == self._seen.get(number, 0) or "backward_comm_time" not in numbers:
                continue
            self._seen[number] = step
            beside_ns = numbers.get("backward_compute_comm_overlap_time", 0)
            wait_s = max(numbers["backward_comm_time"] - beside_ns, 0) / 1e9
            before = self._waits.get(number, wait_s)
            self._waits[number] = before + _SMOOTH * (wait_s - before)

    @property
    def wait_s(self) -> float | None:
        """Of each step; None: nobody knows."""
        return sum(self._waits.values()) if self._waits else None
