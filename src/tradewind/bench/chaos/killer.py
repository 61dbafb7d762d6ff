"""Whom to kill next, by a seeded generator, and the killing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base import clock, processes
from tradewind.bench.chaos import ours

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only

WEIGHTS = {
    "controller": 20,
    "supervisor": 20,
    "job": 14,
    "child": 10,
    "keeper": 6,
    "host": 10,
    "machine": 14,
    "all machines": 2,
    "everything": 4,
}
_GONE = ("host", "machine", "all machines", "everything")
"""With these a machine is gone for good, and so is what was only on its disk."""


@dataclass
class Killed:
    """Everything that a killer did."""

    moments: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    """When, by the monotonic clock, and the work of which runs was stopped by it."""
    kinds: Counter[str] = field(default_factory=Counter)
    processes: int = 0
    machines: dict[str, float] = field(default_factory=dict)
    """Those that were destroyed, and when."""


class Killer:
    def __init__(self, home: Path, chance: Random) -> None:
        self._home, self._chance = home, chance
        self.killed = Killed()

    def kill(self) -> str:
        """What was killed; empty if there was nothing of the kind."""
        found = sorted(ours.all_of(self._home), key=lambda each: (each.machine, each.pid))
        kind = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        pick = self._chance.random()
        victims = _victims(found, kind, pick)
        if not victims:
            return ""
        at = clock.monotonic()
        for each in victims:
            processes.kill(each.pid, each.birth)
        killed = self.killed
        killed.kinds[kind] += 1
        killed.processes += len(victims)
        killed.moments.append((at, frozenset(v.run_id for v in victims if v.machine)))
        if kind in _GONE:
            for victim in victims:
                killed.machines.setdefault(victim.machine, at)
        return kind


def _victims(found: list[ours.Process], kind: str, pick: float) -> list[ours.Process]:
    if kind == "everything":
        return found
    if kind == "all machines":
        return [each for each in found if each.machine]
    if kind == "machine":
        machines = sorted({each.machine for each in found if each.machine})
        chosen = machines[int(pick * len(machines))] if machines else ""
        return [each for each in found if chosen and each.machine == chosen]
    ones = [each for each in found if each.kind == kind]
    return [ones[int(pick * len(ones))]] if ones else []
