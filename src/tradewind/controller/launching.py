"""One launch of what was recorded: look first, adopt or buy, and say what came of it.

What came of it is an event, which whoever asked records while that is news: it may have happened
before, by us or by another controller, and whoever comes second adopts it."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.base import signing
from tradewind.base.errors import SourceFailed
from tradewind.base.steps import Steps
from tradewind.lifecycle.fold import UNTOLD
from tradewind.lifecycle.state import RunState
from tradewind.model.event import Event, LaunchRefused, LaunchUnknown, LegQueued, MachinesFound
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import LaunchMachines, ListMachines, Refused


def launch(request: Request, after: int, seed: bytes) -> Steps[Event | None]:
    """`after` is the commit that asks for it. None: nothing is known, and the next pass tries."""
    provider, leg = request.way.provider, request.leg
    try:
        listing: Listing = yield ListMachines(provider)
    except SourceFailed as error:
        # What is not looked at first is not bought; and without a token nobody else does.
        if request.way.facts.tokens:
            return None
        unseen = f"what there is could not be listed: {error.message}"
        return LaunchRefused(leg=leg, kind="throttled", reason=unseen)
    found = tuple(m for m in listing.machines if m.launch_id == request.launch_id)
    if found:
        return MachinesFound(machines=found, reason="they were bought already")
    if any(queued.launch_id == request.launch_id for queued in listing.queued):
        return LegQueued(leg=leg, reason=UNTOLD[1])
    key = signing.given(seed, request.launch_id, request.run_id) if request.signed else ""
    try:
        bought: Sequence[Machine] = yield LaunchMachines(request, after, key)
    except Refused as refused:
        said = refused.message.rstrip(". ")
        why = f"{said}; {refused.hint}" if refused.hint else refused.message
        return LaunchRefused(leg=leg, kind=refused.kind, reason=why)
    except SourceFailed as error:
        return LaunchUnknown(leg=leg, reason=error.message)
    if bought or not request.way.facts.queues:
        return MachinesFound(machines=tuple(bought), reason="the provider launched them")
    return LegQueued(leg=leg, reason=UNTOLD[0])


def news(state: RunState, event: Event) -> bool:
    """Whether what came of a launch is still to be recorded, now that others wrote something."""
    if isinstance(event, MachinesFound):
        return any(machine.machine_id not in state.machines for machine in event.machines)
    assert isinstance(event, LaunchRefused | LaunchUnknown | LegQueued)
    leg = next((each for each in state.legs if each.number == event.leg), None)
    if leg is None or leg.state != "requested":
        return False
    return not isinstance(event, LaunchUnknown) or not leg.unknown
