"""The next leg, begun while the one before it saves and stops.

Machines take a while to come up, and a leg that is to end takes a while to save. Where both can go
on at once nothing is paid for it: new machines need at least as long to come up as the old ones may
take to stop, so none of them ever waits. What is won is the time of the save. Its job begins when
the leg before it is over, and so from the last that it has saved (supervisor/beat.py).
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.lifecycle.fold import leg_over
from tradewind.lifecycle.moving import saving
from tradewind.lifecycle.next import after
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.bill import bill
from tradewind.model.event import Event, LegOver, LegRequested
from tradewind.model.run import Spec, Way
from tradewind.model.timing import DRAIN_S
from tradewind.policy.base import Policy

_CAUSES = ("interrupted", "moved")
"""A leg that ends for another cause is not followed, or for reasons that it may take along."""


def relief(
    state: RunState,
    spec: Spec,
    leg: Leg,
    seen: Seen,
    ways: tuple[Way, ...],
    now: float,
    policy: Policy,
) -> list[Event]:
    if not state.buys or leg.cause not in _CAUSES or _in_the_way(state, leg):
        return []
    way = leg.request.way
    # Until then it may still cost what its end, in money.exposed, does not count.
    kept = way.nodes * bill(way.price, DRAIN_S, way.facts) + saving(state, way, DRAIN_S)
    records = after(_as_if_over(state, leg, seen), spec, seen, ways, now, policy, kept)
    if not records or not isinstance(records[-1], LegRequested):
        return []  # whatever else there is to say is said when the leg is over
    asked = records[-1]
    chosen = asked.request.way
    if chosen.what == way.what or chosen.start_s < _stops_s(leg, seen):
        return []
    reason = f"{asked.reason}; they come up while leg {leg.number} saves"
    return [replace(asked, request=replace(asked.request, relieves=leg.number), reason=reason)]


def _in_the_way(state: RunState, leg: Leg) -> bool:
    """Whether one was refused for as long as this leg's machines are there: by a quota that has
    room for one leg."""
    return any(
        refusal.kind == "throttled" and refusal.at > leg.at for refusal in state.refusals.values()
    )


def _stops_s(leg: Leg, seen: Seen) -> float:
    """In how long it is over, at the latest."""
    most_s = DRAIN_S
    if leg.cause == "interrupted":
        most_s = min(leg.request.way.facts.notice_s or DRAIN_S, DRAIN_S)
    return most_s - seen.known_s(leg.at)


def _as_if_over(state: RunState, leg: Leg, seen: Seen) -> RunState:
    """With what the job has done until now: that is what it saves."""
    beats = [seen.beats[name][0] for name in leg.machines if name in seen.beats]
    done = min((beat.step for beat in beats), default=state.saved)
    over = LegOver(leg=leg.number, cause=leg.cause, reason="", saved=max(done, state.saved))
    then = leg_over(state, over)
    # One that was refused is not asked for again at once.
    then.barren, then.troubles = state.barren, state.troubles
    then.fruitless = state.fruitless
    then.over_at = max(state.over_at, leg.at)
    return then
