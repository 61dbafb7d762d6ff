"""What machines have said of their use of the store, and for how long that could be read.

A controller reads each machine's last heartbeat and then closes the run; in between it may stall,
and a machine that was taken for dead, or a heartbeat that was long on its way, may come. So what is
recorded must be what could be read at some moment shortly before.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import json

from tradewind.lifecycle.beats import ONE_REPORT
from tradewind.model.event import Event, MachineUsed
from tradewind.model.run import Heartbeat
from tradewind.sim.world import Violation, World

_decode = json.Decoder(Heartbeat).decode
_SIGNATURE = 65
_SHORTLY_S = 900
"""Twice what a controller can be stopped for at one step, and more."""


class Said:
    def __init__(self, world: World) -> None:
        self._world = world
        self._beats: dict[str, list[tuple[int, Heartbeat]]] = {}

    def hears(self, name: str, data: bytes) -> bool:
        """Whether it is news: one that was long on its way is none."""
        told, now = self._beats.setdefault(name, []), self._world.now
        beat = _decode(data[:-_SIGNATURE])
        news = all(beat.beat > before.beat for _, before in told)
        told.append((now, beat))
        while len(told) > 1 and told[1][0] < now - _SHORTLY_S:
            del told[0]
        return news

    def check(self, events: Iterable[Event], machines: Iterable[str]) -> None:
        """When a run is closed; `machines` are those of its present life."""
        recorded = {e.machine_id: e.usage for e in events if isinstance(e, MachineUsed)}
        since = self._world.now - _SHORTLY_S
        for name in machines:
            told = self._beats.get(name, [])
            last = max((n for n, (at, _) in enumerate(told) if at < since), default=0)
            could = [beat.usage for _, beat in told[last:]]
            if not told or told[0][0] >= since:
                could.append(None)
            known = recorded.get(name)
            # What is known stays where what came was an older one, long on its way: that is not
            # believed.
            kept = known is not None and any(
                each is None or not each + ONE_REPORT >= known for each in could
            )
            if known not in could and not kept:
                raise Violation(
                    f"{name} said that it used {could[-1]}, and {recorded.get(name)} is recorded"
                )
