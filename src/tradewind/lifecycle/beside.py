"""Machines that are asked for while others work: what works is given up only for what is up.

Their job begins when the leg that works is over (supervisor/beat.py), which is drained once all of
them have reported. What is refused, or never comes up, has cost no work. In a queue that takes
hours; elsewhere minutes, in which both are paid.
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.lifecycle.fold import leg_limited
from tradewind.lifecycle.money import at_most, cap, countable, needed, up_s
from tradewind.lifecycle.purchase import may_work_beside, purchase, seconds_for
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.event import Event, LegLimited, LegRequested
from tradewind.model.run import Spec, Way
from tradewind.model.timing import BEAT_S, DRAIN_S, SHUTDOWN_S, UNREACHABLE_S
from tradewind.policy import careful, safety
from tradewind.policy.base import Choice, Known
from tradewind.policy.plain import REFUSED_S

_STOPS_S = 60.0
"""What works needs as a rule to save and to end."""
_LONGEST_GONE_S = 6 * 3600.0


def asked(
    state: RunState,
    spec: Spec,
    seen: Seen,
    leg: Leg,
    way: Way,
    known: Known,
    choice: Choice,
    now: float,
) -> list[Event]:
    """Nothing: two at once are too many, and what works is to be drained first."""
    if way.facts.queues:
        if not may_work_beside(spec, seen):
            return []
        return _asked(state, spec, seen, leg, way, known, choice, now, None)
    if _in_the_way(state, leg, way) or spec.max_duration_s is not None:
        return []
    most = cap(spec, seen)
    if most is None:
        return _asked(state, spec, seen, leg, way, known, choice, now, None)
    if not countable(state, seen):
        return []
    left = most - at_most(state, seen)
    found = _asked(state, spec, seen, leg, way, known, choice, now, left)
    told = None if found else _until_they_are_up(state, seen, leg, way)
    if told:
        left = most - at_most(leg_limited(state, told), seen)
        found = _asked(state, spec, seen, leg, way, known, choice, now, left)
        return [told, *found] if found else []
    return found


def _asked(
    state: RunState,
    spec: Spec,
    seen: Seen,
    leg: Leg,
    way: Way,
    known: Known,
    choice: Choice,
    now: float,
    left: int | None,
) -> list[Event]:
    """`left`: of a budget, beside what works."""
    if left is not None and needed(state, seen, way) > left:
        return []
    assert choice.option is not None
    needed_s = seconds_for(state, spec, seen, known, known.options[choice.option])
    until_s = leg.request.until_s
    open_s = None if until_s is None else until_s - now - DRAIN_S
    request = purchase(state, spec, seen, way, now, left, open_s, needed_s, until_s)
    if left is not None and request.hard_stop_s < needed_s:
        return []  # alone it would be given enough
    request = replace(request, relieves=leg.number, waits=True)
    reason = f"{choice.reason}; leg {leg.number} goes on until its machines are there"
    return [LegRequested(request=request, reason=reason)]


def _until_they_are_up(state: RunState, seen: Seen, leg: Leg, way: Way) -> LegLimited | None:
    """What works may be up for until the others must have reported and it has saved, and no longer:
    else both together could pass a budget. Should they be refused, it is told its old time again
    (leg.py); should nobody look, it saves and ends by itself."""
    more_s = UNREACHABLE_S + way.facts.boot_timeout_s + DRAIN_S + SHUTDOWN_S + 2 * BEAT_S
    most_s = int(up_s(state, seen, leg) + more_s)
    if leg.request.hard_stop_s <= most_s:
        return None
    why = f"until {way.words} is up or refused, a budget has no room for two that work on"
    return LegLimited(leg=leg.number, hard_stop_s=most_s, reason=why)


def is_gone(state: RunState, seen: Seen, way: Way) -> bool:
    """Whether it was refused so lately, or so often, that what works is not given up for it."""
    ago_s = [seen.known_s(r.at) for r in state.refusals.values() if r.what == way.what]
    row = 0
    for sight in reversed(state.sights.get(way.what, ())):
        if sight.up is not False:
            break
        row += 1
    return bool(ago_s) and row > 0 and min(ago_s) < min(REFUSED_S * 2.0**row, _LONGEST_GONE_S)


def pays(known: Known, choice: Choice) -> bool:
    """Whether a move that is made for money saves any: what works goes on, and is paid, until the
    others are up. One that is made for time is not asked."""
    assert known.holding is not None
    assert choice.option is not None
    held, next_ = known.options[known.holding], known.options[choice.option]
    stays_s = known.work / held.rate
    if safety.is_safe(next_) and not safety.affordable(careful.with_margin(known), known.holding):
        return True
    if known.time_s is not None and stays_s > known.time_s:
        return True
    both_s = next_.start_s + _STOPS_S
    if stays_s <= both_s:
        return False
    rest_s = (known.work - next_.start_s * held.rate) / next_.rate
    moved = both_s * (held.price + next_.price) + max(rest_s, 0.0) * next_.price
    return moved + 3600 * next_.start_cost < stays_s * held.price


def _in_the_way(state: RunState, leg: Leg, way: Way) -> bool:
    """Whether it was refused because this leg's own machines fill the quota."""
    refusal = state.refusals.get(f"throttled {way.what}")
    return refusal is not None and refusal.at > leg.at
