"""What others' wishes for so many replicas come to where there is spot, as well as any does it.

Spot wherever there is any, over all zones, with so many spares; on demand where there is none, and
spot again half an hour later; another one as soon as a notice comes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tradewind.services.decide import SPOT_AGAIN_S
from tradewind.services.replay import PERIOD_S, Replicas
from tradewind.sim.serving.machines import Machine, Machines
from tradewind.sim.serving.market import ON_DEMAND, Market

if TYPE_CHECKING:
    from tradewind.services.replay import Column

_AGAIN = int(SPOT_AGAIN_S // PERIOD_S)


def bought(
    wished: Column, market: Market, kind: Replicas, answers: Column, spare: int
) -> tuple[Column, Machines]:
    """How many were ready, by period, and what was paid."""
    import numpy as np

    machines, held = Machines(market, kind, answers), list[Machine]()
    change = np.zeros(len(wished) + 1)
    going: list[tuple[int, Machine]] = []
    """On demand, until what replaces it is ready."""

    def over(machine: Machine, now: int) -> None:
        if machine.ready < now:
            change[machine.ready] += 1
            change[now] -= 1
        machines.end(machine, now, len(held) + 1)

    def buy(now: int, *, spot_only: bool = False) -> Machine | None:
        there = Counter(each.zone for each in held)
        for zone in sorted(market.zones, key=lambda each: there[each]):
            found = machines.buy(zone, now, warm=now == 0)
            if found is not None:
                return found
        return None if spot_only else machines.buy(ON_DEMAND, now, warm=now == 0)

    last, nothing_until = -1.0, 0
    for now, count in enumerate(wished.tolist()):
        if count == last and now < nothing_until:
            continue
        last = count
        for machine in [each for each in held if each.noticed <= now]:
            held.remove(machine)
            over(machine, machine.noticed)
        for when, machine in [each for each in going if each[0] <= now]:
            going.remove((when, machine))
            over(machine, now)
        if now % _AGAIN == 0:
            for machine in [each for each in held if each.zone == ON_DEMAND]:
                new = buy(now, spot_only=True)
                if new is None:
                    break
                held.remove(machine)
                held.append(new)
                going.append((new.ready, machine))
        want = int(count) + spare
        while len(held) < want:
            new = buy(now)
            assert new is not None
            held.append(new)
        if len(held) > want:
            held.sort(key=lambda each: (each.ready <= now, each.zone != ON_DEMAND, -each.ordered))
            for machine in held[: len(held) - want]:
                over(machine, now)
            del held[: len(held) - want]
        nothing_until = min(
            [each.noticed for each in held]
            + [when for when, _ in going]
            + [now - now % _AGAIN + _AGAIN],
            default=len(wished),
        )
    end = len(wished)
    for machine in [*held, *(each for _, each in going)]:
        over(machine, end)
    return np.cumsum(change)[:end], machines
