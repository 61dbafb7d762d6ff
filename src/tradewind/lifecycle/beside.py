"""Machines that are asked for while others work: what works is given up only for what is up.

Their job begins when the leg that works is over (supervisor/beat.py), which is drained once all of
them have reported. What is refused, or never comes up, has cost no work. In a queue that takes
hours; elsewhere minutes, in which both are paid.
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.lifecycle.money import at_most, cap, countable, needed
from tradewind.lifecycle.purchase import may_work_beside, purchase, seconds_for
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.event import LegRequested
from tradewind.model.run import Spec, Way
from tradewind.model.timing import DRAIN_S
from tradewind.policy.base import Choice, Known


def asked(
    state: RunState,
    spec: Spec,
    seen: Seen,
    leg: Leg,
    way: Way,
    known: Known,
    choice: Choice,
    now: float,
) -> LegRequested | None:
    """None: two at once are too many, and what works is to be drained first."""
    left = None
    if way.facts.queues and not may_work_beside(spec, seen):
        return None
    if not way.facts.queues:
        if _in_the_way(state, leg, way) or spec.max_duration_s is not None:
            return None
        most = cap(spec, seen)
        if most is not None:
            left = most - at_most(state, seen)
            if not countable(state, seen) or needed(state, seen, way) > left:
                return None
    assert choice.option is not None
    needed_s = seconds_for(state, spec, seen, known, known.options[choice.option])
    until_s = leg.request.until_s
    open_s = None if until_s is None else until_s - now - DRAIN_S
    request = purchase(state, spec, seen, way, now, left, open_s, needed_s, until_s)
    if left is not None and request.hard_stop_s < needed_s:
        return None  # alone it would be given enough
    request = replace(request, relieves=leg.number, waits=True)
    reason = f"{choice.reason}; leg {leg.number} goes on until its machines are there"
    return LegRequested(request=request, reason=reason)


def _in_the_way(state: RunState, leg: Leg, way: Way) -> bool:
    """Whether it was refused because this leg's own machines fill the quota."""
    refusal = state.refusals.get(f"throttled {way.what}")
    return refusal is not None and refusal.at > leg.at
