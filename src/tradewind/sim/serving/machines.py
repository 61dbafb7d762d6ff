"""Replicas as they really are: bought, coming up, ready, taken, given back, and paid for.

Nobody decides anything here. One that is on spot is told `notice_s` before it is taken, and takes
no requests from then on; what it still answers when it is taken is lost. It is paid from the order
until it is taken, or until the answers that it still gives are done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tradewind.services.replay import PERIOD_S, Replicas
from tradewind.sim.serving.market import ON_DEMAND, Market

if TYPE_CHECKING:
    from tradewind.services.replay import Column


@dataclass(slots=True)
class Machine:
    zone: str
    ordered: int
    """Periods, all of them."""
    ready: int
    noticed: int
    taken: int


@dataclass
class Machines:
    market: Market
    kind: Replicas
    answers: Column
    """Requests by period, for what is lost with a machine."""
    cost: float = 0.0
    """Micro-dollars."""
    seconds: float = 0.0
    lost: float = 0.0
    interruptions: int = 0
    _never: int = field(init=False)

    def __post_init__(self) -> None:
        import numpy as np

        self._never = 10 * len(self.answers) + 1000
        self._zones = {name: at for at, name in enumerate(self.market.zones)}
        self._taken = self.market.taken()
        self._cold = -(-self.kind.cold_s // PERIOD_S)
        prices = self.market.price
        self._spent = np.concatenate([np.zeros((len(prices), 1)), np.cumsum(prices, axis=1)], 1)

    def has(self, zone: str, now: int) -> bool:
        """Where machines are being taken none is sold any more."""
        if zone == ON_DEMAND:
            return True
        return int(self._taken[self._zones[zone], now]) - self.market.notice > now

    def buy(self, zone: str, now: int, *, warm: bool = False) -> Machine | None:
        """None: refused. `warm`: it is there from the beginning."""
        if not self.has(zone, now):
            return None
        taken = self._never
        if zone != ON_DEMAND:
            taken = int(self._taken[self._zones[zone], now])
        ready = now if warm else now + self._cold
        return Machine(zone, now, ready, max(taken - self.market.notice, now), taken)

    def end(self, machine: Machine, now: int, ready: int) -> None:
        """Paid from the order to here, and until its answers are done or it is taken. `ready`:
        among so many were requests shared out, before a notice."""
        end = min(now, machine.taken)
        drain_s = self.kind.drain_s if machine.ready < end else 0
        left_s = (machine.taken - end) * PERIOD_S
        self._pay(machine, end, min(drain_s, left_s))
        if now < machine.noticed:
            return
        self.interruptions += 1
        # What came just before the notice and takes longer than that.
        notice_s = (machine.taken - machine.noticed) * PERIOD_S
        if drain_s > notice_s:
            at = min(machine.noticed, len(self.answers)) - 1
            rate = float(self.answers[at]) / PERIOD_S / max(ready, 1)
            self.lost += rate * (drain_s - notice_s)

    def _pay(self, machine: Machine, end: int, more_s: float) -> None:
        held_s = max(end - machine.ordered, 0) * PERIOD_S + more_s
        self.seconds += held_s
        if machine.zone == ON_DEMAND:
            self.cost += held_s / 3600 * self.market.on_demand
            return
        at, last = self._zones[machine.zone], len(self.answers)
        spent = self._spent[at, min(end, last)] - self._spent[at, min(machine.ordered, last)]
        now = self.market.price[at, min(end, last - 1)]
        self.cost += float(spent * PERIOD_S + now * more_s) / 3600
