"""Passes to the store that machines without an identity of their own are lent, as objects there:
lent anew while a machine works, taken back when it holds one, and removed when its run is over."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.base.errors import TradewindError
from tradewind.base.steps import Steps
from tradewind.controller.memory import RunMemory
from tradewind.lifecycle.decide import LENT_S
from tradewind.model import places
from tradewind.model.action import Lend
from tradewind.model.event import Event, LegOver, LegUp, Warned
from tradewind.store.lending import LendPass
from tradewind.store.steps import Delete, ListAfter


def lend(memory: RunMemory, action: Lend, watch: float) -> Steps[Warned | None]:
    """A lender that refuses is told of once a leg: the machine will save and stop in time."""
    whose = action.machine_id or action.launch_id
    if action.rank is None:
        key = places.first_pass(memory.run_id, action.launch_id)
    else:
        key = places.a_pass(memory.run_id, action.launch_id, action.rank)
    memory.lent[whose] = watch
    try:
        yield LendPass(memory.run_id, key, action.for_s)
    except TradewindError as error:
        if action.rank is None:  # no machine will say that its own ends: soon again
            memory.lent[whose] -= action.for_s / 2 - LENT_S
        legs = memory.state.requests.items()
        leg = next(number for number, each in legs if each.launch_id == action.launch_id)
        over = memory.state.phase not in ("waiting", "active")  # another has recorded it just now
        if not over and memory.state.warned.get("pass", 0) < leg:
            who = f"machine {whose}" if action.machine_id else f"leg {leg}, in its queue,"
            why = f"{who} was lent no new pass to the store: {error}"
            return Warned(about="pass", level=leg, reason=why)
    return None


def take_back(memory: RunMemory, events: Sequence[Event]) -> Steps[None]:
    """What machines began with, once all of them hold it, or none will: a link to what was in a
    queue lasts for days. It ends by itself, too."""
    for event in events:
        if isinstance(event, LegUp | LegOver):
            request = memory.state.requests[event.leg]
            if request.way.pass_s and (isinstance(event, LegUp) or request.way.facts.queues):
                yield Delete(places.first_pass(memory.run_id, request.launch_id))


def forget(memory: RunMemory) -> Steps[None]:
    if any(request.way.pass_s for request in memory.state.requests.values()):
        for key in (yield ListAfter(places.passes(memory.run_id))):
            yield Delete(key)
