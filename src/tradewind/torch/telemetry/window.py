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


class Mark(NamedTuple):
    at_s: float
    steps: int
    data_s: float
    saving_s: float
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
        ends = [end for end in ends if end[0] >= since.at_s]
        if ends:
            found["last_s"] = round(max(now.at_s - ends[-1][0], 0.0), 3)
        # All by the same steps, from the end of one to the end of another: a rate that went by
        # other seconds than the time of a step would contradict it.
        if len(ends) > 1:
            (first_s, *first), (last_s, *last), steps = ends[0], ends[-1], len(ends) - 1
            found["slowest_s"] = max(b[0] - a[0] for a, b in pairwise(ends))
        elif found["steps"]:
            first_s, last_s, steps = since.at_s, now.at_s, found["steps"]
            first = last = [0.0, 0.0]
        else:
            return found
        found["step_s"] = step_s = (last_s - first_s) / steps
        if tally.data_s is not None:
            found["data"] = _share(now.data_s - since.data_s, window_s)
        tokens, samples = (b - a for a, b in zip(first, last, strict=True))
        if tokens > 0:
            found["tokens_rate"] = round(tokens / (last_s - first_s), 1)
        if samples > 0:
            found["samples_rate"] = round(samples / (last_s - first_s), 2)
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
