"""Whether the money that is spent still buys anything.

A job that counts its steps and makes none for long is begun once more, from its last checkpoint;
after that its run ends, and can be resumed. Interruptions do not help it: time without a step is
added up from leg to leg until something new is saved. And a run whose hard deadline no machine can
meet any more is told so, and ends a little later.
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.base.units import format_hours
from tradewind.lifecycle import forecast
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.event import Event, Warned
from tradewind.model.run import Heartbeat, Spec, Way
from tradewind.policy import late
from tradewind.policy.base import MEASURED, UNMEASURED, Known

LOST = "lost"
GRACE_S = 600.0
"""So long after a hard deadline is known to be lost it goes on: what is known may change."""
_LEAST_S = 7200.0
_SHARE = 0.25
"""A job may stand still for so much of the time that all of its work takes."""
_TRIES = 1.9
"""It is begun once more: twice as long, but for what passes between two looks."""
MOST_HARD_STOPS = 2


def most_s(state: RunState, spec: Spec) -> float:
    """How long a leg may be without a step, in our time: evaluating takes time too."""
    way = spec.ways[0]
    whole_s = spec.work / (way.rate * state.ratio_of(way))
    least_s = _LEAST_S if spec.speed == 1 else _LEAST_S / spec.speed
    return max(least_s, _SHARE * whole_s)


def still_s(leg: Leg, beats: list[Heartbeat]) -> float:
    """For how long the job makes no step on any machine; 0 where one of them has not told."""
    if len(beats) < len(leg.machines):
        return 0.0
    return float(round(min((beat.stalled_s for beat in beats), default=0.0)))


def stalled(state: RunState, spec: Spec, leg: Leg, beats: list[Heartbeat]) -> str:
    """Why the leg is to end; empty while it gets on."""
    now_s = still_s(leg, beats)
    limit_s = most_s(state, spec)
    if not now_s or (now_s < limit_s and state.stalled_s + now_s < _TRIES * limit_s):
        return ""
    return f"the job has made no step for {format_hours(now_s / 3600)}"


def given_up(state: RunState, spec: Spec) -> str:
    """Why the run ends; empty while it may go on."""
    if state.stalled_s >= _TRIES * most_s(state, spec):
        hours = format_hours(state.stalled_s / 3600)
        return f"the job made no step for {hours} of its machines' time, begun anew and all"
    if state.hard_stops >= MOST_HARD_STOPS:
        return (
            f"{state.hard_stops} legs in a row were up for all the time that they were given, twice"
            " what the work should take, and have saved nothing"
        )
    return ""


def is_lost(state: RunState, spec: Spec, known: Known) -> bool:
    """Whether a hard deadline cannot be met. What was measured here says little against machines
    that were not tried: those are as fast as was thought."""
    if not spec.hard or spec.untold or not state.ratios:
        return False
    options = tuple(
        option
        if option.way is None or option.way.kind in state.ratios
        else replace(option, rate=option.rate / min(state.ratio_of(option.way), 1.0))
        for option in known.options
    )
    tried = all(option.way and option.way.kind in state.ratios for option in options)
    doubt = MEASURED if tried else UNMEASURED
    return late.is_lost(replace(known, options=options, doubt=doubt))


def hopeless(
    state: RunState, spec: Spec, seen: Seen, ways: tuple[Way, ...], now: float
) -> list[Event]:
    """Said once that a hard deadline cannot be met any more, and taken back if it can."""
    if not spec.hard or spec.deadline_s is None or not state.ratios:
        return []
    known = forecast.known(state, spec, seen, ways or spec.ways, now, None)
    lost, said = is_lost(state, spec, known), bool(state.warned.get(LOST))
    if lost == said:
        return []
    if not lost:
        return [Warned(about=LOST, level=0, reason="the hard deadline can be met after all")]
    until, over = (format_hours(s / 3600) for s in (known.time_s or 0.0, GRACE_S))
    why = (
        f"no machine can meet the hard deadline any more, {until} before it: the run saves and ends"
        f" in {over}; `tradewind resume --deadline` continues it"
    )
    # The level is the commit that says so, and so for how long it has been known.
    return [Warned(about=LOST, level=state.number + 1, reason=why)]
