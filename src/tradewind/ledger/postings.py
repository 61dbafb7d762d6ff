"""What each machine cost, from a run's events alone: the price that it was bought at, and from when
to when its provider says that it billed it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from tradewind.model.bill import bill
from tradewind.model.event import Event, LegRequested, MachineBack, MachineEnded, MachinesFound
from tradewind.model.run import Machine, Request


class Posting(Struct, frozen=True, kw_only=True):
    machine_id: str
    leg: int
    market: str
    price: int
    seconds: int | None
    """None while it is not known: the machine lives."""
    micros: int


def postings(events: Iterable[Event]) -> list[Posting]:
    requests: dict[int, Request] = {}
    machines: dict[str, Machine] = {}
    open_ones: set[str] = set()
    for event in events:
        if isinstance(event, LegRequested):
            requests[event.request.leg] = event.request
        elif isinstance(event, MachinesFound):
            for machine in event.machines:
                machines[machine.machine_id] = machine
                if machine.ended_s is None:
                    open_ones.add(machine.machine_id)
        elif isinstance(event, MachineEnded):
            machines[event.machine.machine_id] = event.machine
            open_ones.discard(event.machine.machine_id)
        elif isinstance(event, MachineBack):
            open_ones.add(event.machine_id)
    found = []
    for name, machine in machines.items():
        way = requests[machine.leg].way
        seconds = None
        if name not in open_ones and machine.ended_s is not None:
            seconds = machine.ended_s - machine.launched_s
        found.append(
            Posting(
                machine_id=name,
                leg=machine.leg,
                market=way.market,
                price=way.price,
                seconds=seconds,
                micros=0 if seconds is None else bill(way.price, seconds, way.facts.billing_step_s),
            )
        )
    return found
