"""Figures of the last twenty seconds, from marks that are taken each second."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any, NamedTuple

from tradewind.torch.telemetry.tally import Tally

WINDOW_S = 20.0
_LONGEST_S = 600.0
_ENOUGH = 5
"""Steps: where they take long, the window is longer."""
_SLOWEST_OF = 512


class Mark(NamedTuple):
    at_s: float
    steps: int
    data_s: float
    saving_s: float
    tokens: float
    samples: float
    busy_s: float
    crowded_s: float | None
    looks: int
    talking: int


class Window:
    def __init__(self) -> None:
        self._marks: deque[Mark] = deque()

    def mark(self, mark: Mark) -> None:
        self._marks.append(mark)
        while len(self._marks) > 2 and mark.at_s - self._marks[1].at_s > _LONGEST_S:
            self._marks.popleft()

    def _since(self) -> Mark | None:
        """The mark to reckon from: none before the first step, if that can be, as what comes before
        it is another matter."""
        newest = self._marks[-1]
        begun = [each for each in self._marks if each.steps] or list(self._marks)
        if begun[0] is newest:
            begun = list(self._marks)[-2:]
        for mark in reversed(begun):
            if newest.at_s - mark.at_s >= WINDOW_S and newest.steps - mark.steps >= _ENOUGH:
                return mark
        return begun[0] if begun[0] is not newest else None

    def figures(self, tally: Tally, ddp_wait_s: float | None) -> dict[str, Any]:
        """Those that follow from counting, by the names that `Figures` gives them."""
        if not self._marks or (since := self._since()) is None:
            return {}
        now = self._marks[-1]
        window_s = now.at_s - since.at_s
        if window_s <= 0:
            return {}
        found: dict[str, Any] = {
            "window_s": round(window_s, 3),
            "steps": now.steps - since.steps,
            "saving": _share(now.saving_s - since.saving_s, window_s),
            "cpu": round((now.busy_s - since.busy_s) / window_s, 3),
        }
        ends = list(tally.ends)  # at once: the loop goes on meanwhile
        ends = [end for end in ends if end >= since.at_s]
        if ends:
            found["last_s"] = round(max(now.at_s - ends[-1], 0.0), 3)
        ends = ends[-_SLOWEST_OF:]
        if len(ends) > 1:
            found["step_s"] = step_s = (ends[-1] - ends[0]) / (len(ends) - 1)
            found["slowest_s"] = max(b - a for a, b in pairwise(ends))
        elif found["steps"]:
            found["step_s"] = step_s = window_s / found["steps"]
        else:
            return found
        if tally.data_s is not None:
            found["data"] = _share(now.data_s - since.data_s, window_s)
        if now.tokens > since.tokens:
            found["tokens_rate"] = round((now.tokens - since.tokens) / window_s, 1)
        if now.samples > since.samples:
            found["samples_rate"] = round((now.samples - since.samples) / window_s, 2)
        if now.crowded_s is not None and since.crowded_s is not None:
            found["crowded"] = _share(now.crowded_s - since.crowded_s, window_s)
        looks, by = now.looks - since.looks, []
        comm = 0.0
        if ddp_wait_s is not None:
            comm, by = comm + ddp_wait_s / step_s, ["ddp"]
        if looks and (ddp_wait_s is None or now.talking > since.talking):
            comm, by = comm + (now.talking - since.talking) / looks, [*by, "stacks"]
        if by:
            found["comm"], found["comm_by"] = _share(comm, 1.0), "+".join(by)
        return found


def _share(part_s: float, whole_s: float) -> float:
    return round(min(max(part_s / whole_s, 0.0), 1.0), 4)
