"""A leg that waits in a queue: for hours perhaps, unpaid, while another may work.

Never do two legs work: the job of one that waits begins when the journal has found all its machines
and every leg that worked meanwhile is over (supervisor/beat.py). So when its machines come, one of
the two is chosen at once, and the other one ends.
"""

from __future__ import annotations

from tradewind.base.units import format_hours
from tradewind.lifecycle import forecast
from tradewind.lifecycle.ask import ask, must_move
from tradewind.lifecycle.fold import ENDED_EARLY, NOT_NEEDED
from tradewind.lifecycle.leg import requested, to_end
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.event import Event, LegDraining, LegOver
from tradewind.model.run import TAKEN, Spec
from tradewind.model.timing import GRACE_S
from tradewind.policy.base import Policy


def while_queued(
    state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float, policy: Policy
) -> list[Event]:
    if leg.state == "requested":
        return requested(state, spec, leg, seen, now)
    asked = to_end(state, spec, leg, seen, now)
    if asked:
        return [LegOver(leg=leg.number, cause=asked[0], reason=asked[1])]
    if leg.state == "booting":
        return _arrived(state, spec, leg, seen, now, policy)
    way, launch_id = leg.request.way, leg.request.launch_id
    if way.provider not in seen.clocks or launch_id in seen.queued:
        return []
    missing_s = seen.unqueued_s(launch_id)
    if missing_s >= way.facts.listing_lag_s + GRACE_S:
        some = f"{len(leg.machines)} of {way.nodes} machines are"
        why = f"its provider has not listed it for {missing_s:.0f} s, and {some} there"
        return [LegOver(leg=leg.number, cause="launch_unknown", reason=why)]
    return []


def _up(leg: Leg, at_work: Leg, seen: Seen) -> list[Event]:
    """It was asked for because it is better, and what works goes on until it has come up."""
    beats = [seen.beats[name][0] for name in leg.machines if name in seen.beats]
    for beat in beats:
        if beat.doing in ("stopped", "failed"):
            cause = ENDED_EARLY if beat.notice else "infrastructure"
            why = beat.reason or "it did not come up"
            return [LegOver(leg=leg.number, cause=cause, reason=why)]
    if len(beats) < len(leg.machines):
        limit_s = leg.request.way.facts.boot_timeout_s
        if seen.known_s(leg.at) < limit_s:
            return []
        silent = len(leg.machines) - len(beats)
        why = f"{silent} of {len(leg.machines)} machines did not report within {limit_s} s"
        return [LegOver(leg=leg.number, cause="boot_timeout", reason=why)]
    if at_work.state != "running":
        return []  # it ends by itself, or has just begun
    why = f"the machines of leg {leg.number} are up: {leg.request.way.words}"
    return [LegDraining(leg=at_work.number, cause="moved", reason=why)]


def _arrived(
    state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float, policy: Policy
) -> list[Event]:
    """Its machines are there, and another leg is under way: both are paid for."""
    at_work = state.leg
    assert at_work is not None
    lost = [name for name in leg.machines if state.machines[name].ended]
    if lost:
        machine = state.machines[lost[0]].machine
        early = leg.request.way.market == "spot" or machine.ended_by == TAKEN
        cause = ENDED_EARLY if early else "infrastructure"
        told = f": {machine.ended_why}" if machine.ended_why else ""
        why = f"machine {lost[0]} ended before it was used{told}"
        return [LegOver(leg=leg.number, cause=cause, reason=why)]
    if state.relief:
        why = f"leg {state.relief.number} relieves leg {at_work.number} already"
        return [LegOver(leg=leg.number, cause=NOT_NEEDED, reason=why)]
    if not leg.request.way.facts.queues:
        return _up(leg, at_work, seen)
    question = forecast.known(state, spec, seen, (leg.request.way,), now, None)
    choice, trouble = ask(policy, question)
    if at_work.state == "running":
        better = must_move(question, choice, trouble)
    else:
        better = choice.option == 1
    if not better:
        left = format_hours(question.work / question.options[0].rate / 3600)
        why = f"leg {at_work.number} goes on, with {left} of work left: a start costs more"
        return [LegOver(leg=leg.number, cause=NOT_NEEDED, reason=why)]
    why = f"the machines of leg {leg.number}, which was in a queue, are there: {choice.reason}"
    began = any(
        name in seen.beats and seen.beats[name][0].doing != "setup" for name in at_work.machines
    )
    if at_work.state == "requested" or not began:
        return [LegOver(leg=at_work.number, cause=NOT_NEEDED, reason=why)]
    return [LegDraining(leg=at_work.number, cause="moved", reason=why)]
