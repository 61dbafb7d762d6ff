"""From commits to state. Every journal that controllers can have written folds, and every prefix of
one; anything else is BadFile, never a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from tradewind.base.errors import BadFile
from tradewind.lifecycle.state import Leg, Refusal, Rented, RunState, Sight
from tradewind.lifecycle.states import LEG, RUN, impossible, moved
from tradewind.model import event as events
from tradewind.model.run import Machine

LASTING = ("no_quota", "not_allowed", "not_found")
"""Refusals for what will not change by itself."""
_COUNTED_S = 300.0
"""Providers count machines that have ended for some minutes more."""
MOST_SIGHTS = 24
"""So many are remembered of each way: older ones say little."""
ENDED_EARLY = "ended_early"
"""A spot machine was taken, or has ended by itself: only a row of them tells which."""
NOT_NEEDED = "not_needed"
"""It was to relieve a leg whose job has ended well after all."""
UNATTENDED = "unattended"
"""Its machines saved and stopped, because no controller came to renew their pass to the store: the
next one that looks goes on, at once."""
UNTOLD = (
    "the provider has no machines for it yet",
    "it is in the provider's queue already",
)
"""What is said of a queue by whoever has just launched: the provider's own reason comes later."""
WINDOW = "window"
"""Its window closes: it goes on in the next."""
STALLED = "stalled"
"""The job made no step for long."""
HARD_STOP = "hard_stop"
"""Its machines were up for as long as they might be."""
DISBELIEVED = "disbelieved"
"""What lies under a machine's name cannot be believed: a bad machine, and no trouble of the job.
The next one is bought elsewhere where that can be had, and a little later each time."""
TROUBLES = (
    "boot_timeout", "lost", "infrastructure", "launch_unknown", "stopped", ENDED_EARLY, STALLED,
    HARD_STOP,
)  # fmt: skip
"""Causes that are nobody's wish and bring nothing: after them, wait a little longer each time."""


def fold(commits: Iterable[events.Commit], state: RunState | None = None) -> RunState:
    """The state after `commits`, which follow those that made `state`."""
    new = state.copy() if state else RunState()
    for commit in commits:
        if commit.number != new.number + 1:
            raise BadFile(f"commit {commit.number} does not follow {new.number}")
        new.number = commit.number
        new.at_s = commit.at.timestamp()
        for event in commit.events:
            _APPLY[type(event)](new, event)
    return new


def leg_over(state: RunState, event: events.LegOver) -> RunState:
    """As it would be after this event, which nobody has recorded."""
    new = state.copy()
    _leg_over(new, event)
    return new


def leg_limited(state: RunState, event: events.LegLimited) -> RunState:
    """The same of its machines' time."""
    new = state.copy()
    _limited(new, event)
    return new


def _submitted(state: RunState, event: events.Submitted) -> None:
    _phase(state, "", "waiting")
    state.run_id, state.spec = event.run_id, event.spec
    state.submitted_s = state.at_s


def _abandoned(state: RunState, event: events.Abandoned) -> None:
    _phase(state, "", "closed")
    state.run_id, state.outcome = event.run_id, "abandoned"


def _requested(state: RunState, event: events.LegRequested) -> None:
    request = event.request
    if request.leg != state.last + 1:
        raise BadFile(f"the journal has leg {request.leg} after {state.last}")
    state.last = request.leg
    waiting = state.queued
    if request.beside != (waiting.number if waiting else 0):
        raise BadFile(f"the journal has leg {request.leg} beside {request.beside}, not what waits")
    if waiting and (waiting.state == "booting" or not waiting.request.waits):
        raise BadFile(f"the journal has leg {request.leg} beside one whose job may have begun")
    leg = Leg(request, state.number, state.number, began_at=state.saved)
    if request.relieves and _leg(state, request.relieves).state == "running" and request.waits:
        state.queued = leg  # it waits for its turn, and whatever works goes on
    elif request.relieves:
        if not state.buys or _leg(state, request.relieves) is not state.leg:
            raise BadFile(f"the journal relieves leg {request.relieves}, which is not drained")
        state.relief = leg
    else:
        _phase(state, "waiting", "active")
        state.leg = leg
    state.requests[request.leg] = request


def _found(state: RunState, event: events.MachinesFound) -> None:
    for machine in event.machines:
        if machine.leg not in state.requests:
            raise BadFile(
                f"the journal has machine {machine.machine_id} of no leg that it asked for"
            )
        ended = machine.ended_s is not None
        state.machines[machine.machine_id] = _known(state, machine, ended)
    for leg in state.legs:
        if leg.state in ("requested", "queued"):
            _gather(state, leg, event.machines)


def _gather(state: RunState, leg: Leg, machines: Iterable[Machine]) -> None:
    by_rank = {state.machines[name].machine.rank: name for name in leg.machines}
    for machine in machines:
        if machine.launch_id == leg.request.launch_id:
            by_rank.setdefault(machine.rank, machine.machine_id)  # no second one of a rank
    gathered = replace(leg, machines=tuple(by_rank[rank] for rank in sorted(by_rank)))
    _put(state, gathered)
    if len(by_rank) == leg.request.way.nodes:
        _to(state, gathered, "booting")
        _sees(state, leg, True)
        if leg.request.waits:
            state.last += 1  # its turn (supervisor/beat.py)
        if state.leg is None:
            _phase(state, "waiting", "active")
            assert state.queued is not None
            state.leg, state.queued = replace(state.queued, began_at=state.saved), None
        elif state.leg.state == "draining":
            _relieves(state)


def _takes_place(state: RunState, event: events.LegQueued) -> None:
    leg = _bought(state, event.leg)
    if state.queued not in (None, leg):
        raise BadFile(f"the journal has leg {event.leg} in a queue, and another one already")
    if leg is state.leg:
        _phase(state, "active", "waiting")
        state.leg = None
    elif leg is state.relief:
        state.relief = None
    told = "" if event.reason in UNTOLD else event.reason
    state.queued = replace(
        leg, unknown=False, starts_s=event.starts_s, waits_for=told, told_at=state.number
    )
    if leg.state != "queued":
        _to(state, state.queued, "queued")


def _refused(state: RunState, event: events.LaunchRefused) -> None:
    leg = _bought(state, event.leg)
    kind = event.kind
    if kind == "no_quota" and _leaving(state, leg):
        kind = "throttled"  # room is made for it: ask again, a little later
    _remember(state, leg, kind, event.reason)
    if kind == "no_capacity":
        _sees(state, leg, False)
    if leg.unknown:
        state.doubts[leg.number] = state.number  # an earlier call may have bought it
    _over(state, leg, kind)
    if kind not in LASTING:
        state.barren += 1  # what will not change by itself is not tried again, but something else


def _leaving(state: RunState, leg: Leg) -> bool:
    """Whether machines of the run's own are in the way: what is up, and what has ended and is still
    counted for a while, fills a quota."""
    here = leg.request.way
    return any(
        not rented.ended or state.at_s - rented.at_s < _COUNTED_S
        for rented in state.machines.values()
        for way in (state.requests[rented.machine.leg].way,)
        if (way.provider, way.region) == (here.provider, here.region)
    )


def _unknown(state: RunState, event: events.LaunchUnknown) -> None:
    _put(state, replace(_bought(state, event.leg), unknown=True))


def _up(state: RunState, event: events.LegUp) -> None:
    leg = _leg(state, event.leg)
    state.moved_cost += leg.request.way.start_cost
    _to(state, leg, "running")


def _progress(state: RunState, event: events.Progress) -> None:
    leg = _leg(state, event.leg)
    state.step = event.step
    _further(state, event.saved)
    if event.rate:
        way = leg.request.way
        state.ratios[way.kind] = event.rate / way.rate
        if not way.guessed:
            state.ratio = state.ratios[way.kind]


def _limited(state: RunState, event: events.LegLimited) -> None:
    leg = _leg(state, event.leg)
    given_s = leg.given_s or leg.request.hard_stop_s
    request = replace(leg.request, hard_stop_s=min(event.hard_stop_s, given_s))
    state.requests[event.leg] = request
    _put(state, replace(leg, request=request, given_s=given_s))


def _draining(state: RunState, event: events.LegDraining) -> None:
    state.stalled_s += event.stalled_s
    _to(state, _leg(state, event.leg), "draining", event.cause)
    _relieves(state)


def _relieves(state: RunState) -> None:
    """What was in a queue, and has its machines, comes after what is drained."""
    if state.relief is None and state.queued and state.queued.state == "booting":
        state.relief, state.queued = state.queued, None


def _leg_over(state: RunState, event: events.LegOver) -> None:
    leg = _queued_or(state, event.leg)
    _further(state, event.saved)
    # By all that the leg has brought: most of it was recorded while it lasted.
    if state.saved <= leg.began_at and event.cause in TROUBLES:
        state.barren += 1
        state.troubles += 1
    if event.cause == DISBELIEVED:
        _remember(state, leg, DISBELIEVED, event.reason)
        state.barren += state.saved <= leg.began_at
    if (
        state.saved <= leg.began_at
        and event.cause == WINDOW
        and leg.state in ("running", "draining")
    ):
        state.barren += 1
        state.troubles += 1  # window after window it would begin again
    state.stalled_s += event.stalled_s
    if state.saved <= leg.began_at and event.cause == HARD_STOP:
        state.hard_stops += 1
    if state.saved <= leg.began_at and event.cause == "interrupted":
        state.fruitless += 1
    if event.cause == "finished":
        state.step = event.step
    elif event.cause != NOT_NEEDED and leg is state.leg:  # else another has told
        state.step = state.saved
    state.failures += event.failures
    state.tail = event.tail or state.tail
    taken = event.cause in ("interrupted", ENDED_EARLY)
    if taken and leg.request.way.market == "spot":
        # Of others it tells nothing: a node that is gone is no sign that no other is free.
        _remember(state, leg, "taken")
    if leg.state not in ("requested", "queued"):
        _sees(state, leg, False if taken else None)
    if len(leg.machines) < leg.request.way.nodes:
        state.doubts[leg.number] = state.number
    _over(state, leg, event.cause)


def _sees(state: RunState, leg: Leg, up: bool | None) -> None:
    what = leg.request.way.what
    seen = (*state.sights.get(what, ()), Sight(up, state.at_s))
    state.sights[what] = seen[-MOST_SIGHTS:]


def _remember(state: RunState, leg: Leg, kind: str, reason: str = "") -> None:
    what = leg.request.way.what
    state.refusals[f"{kind} {what}"] = Refusal(what, kind, state.number, reason)


def _further(state: RunState, saved: float) -> None:
    if saved > state.saved:
        state.saved, state.failures = saved, 0
        state.barren = state.troubles = state.fruitless = state.hard_stops = 0
        state.stalled_s = 0.0


def _ended_machine(state: RunState, event: events.MachineEnded) -> None:
    _rented(state, event.machine.machine_id)
    if event.machine.leg not in state.requests:
        raise BadFile(f"the journal ends machine {event.machine.machine_id} of no leg it knows")
    state.machines[event.machine.machine_id] = _known(state, event.machine, True)


def _back(state: RunState, event: events.MachineBack) -> None:
    machine = _rented(state, event.machine_id).machine
    state.machines[event.machine_id] = _known(state, machine, False)


def _used(state: RunState, event: events.MachineUsed) -> None:
    _rented(state, event.machine_id)
    state.used[event.machine_id] = event.usage


def _stored(state: RunState, event: events.Stored) -> None:
    if state.phase != "ended":
        raise BadFile("the journal weighs what a run has left, and it has not ended")


def _forecast(state: RunState, event: events.Forecast) -> None:
    _going_on(state)
    state.announced_late, state.announced_over = event.late, event.over_budget


def _warned(state: RunState, event: events.Warned) -> None:
    _going_on(state)
    state.warned[event.about] = event.level


def _cancel(state: RunState, event: events.CancelAsked) -> None:
    _going_on(state)
    state.cancelled = event.reason


def _ended(state: RunState, event: events.Ended) -> None:
    if state.queued:
        raise BadFile(f"the journal ends the run while leg {state.queued.number} is in a queue")
    _phase(state, "waiting", "ended")
    state.outcome = event.outcome


def _closed(state: RunState, event: events.Closed) -> None:
    _phase(state, "ended", "closed")


def _resumed(state: RunState, event: events.Resumed) -> None:
    if state.spec is None or state.outcome == "succeeded":
        raise BadFile(f"the journal continues a run that has {state.outcome or 'no spec'}")
    _phase(state, "closed", "waiting")
    state.spec = replace(
        state.spec,
        budget=state.spec.budget if event.budget is None else event.budget,
        deadline_s=state.spec.deadline_s if event.deadline_s is None else event.deadline_s,
    )
    state.life += 1
    state.first_leg = state.last + 1
    state.outcome = state.cancelled = ""
    state.failures = state.barren = state.troubles = state.fruitless = state.hard_stops = 0
    state.stalled_s = 0.0
    state.refusals = {}  # its user may have raised a quota
    state.announced_late = state.announced_over = False
    state.warned = {}
    state.over_cause = ""


def _phase(state: RunState, old: str, new: str) -> None:
    """Every event leads from one phase to one other. That the table has a row is not enough: the
    row may be another event's."""
    if state.phase != old:
        raise impossible("the run", state.phase, new)
    state.phase = moved(RUN, old, new, "the run")


def _going_on(state: RunState) -> None:
    if state.phase not in ("waiting", "active"):
        raise BadFile(f"the journal continues a run that is {state.phase or 'not submitted'}")


def _leg(state: RunState, number: int) -> Leg:
    if state.leg is None or state.leg.number != number:
        raise BadFile(f"the journal speaks of leg {number}, which is not under way there")
    return state.leg


def _bought(state: RunState, number: int) -> Leg:
    """One whose purchase something is said of: the next one too."""
    relief = state.relief
    return relief if relief and relief.number == number else _queued_or(state, number)


def _queued_or(state: RunState, number: int) -> Leg:
    queued = state.queued
    return queued if queued and queued.number == number else _leg(state, number)


def _known(state: RunState, machine: Machine, ended: bool) -> Rented:
    return Rented(machine, ended, state.number, state.at_s)


def _rented(state: RunState, machine_id: str) -> Rented:
    if machine_id not in state.machines:
        raise BadFile(f"the journal speaks of machine {machine_id}, which was never found there")
    return state.machines[machine_id]


def _to(state: RunState, leg: Leg, new: str, cause: str = "") -> None:
    moved(LEG, leg.state, new, "the leg")
    _put(state, replace(leg, state=new, at=state.number, cause=cause))


def _put(state: RunState, leg: Leg) -> None:
    if state.relief and state.relief.number == leg.number:
        state.relief = leg
    elif state.queued and state.queued.number == leg.number:
        state.queued = leg
    else:
        state.leg = leg


def _over(state: RunState, leg: Leg, cause: str) -> None:
    moved(LEG, leg.state, "over", "the leg")
    state.over_at = state.number
    if state.queued and state.queued.number == leg.number:
        state.queued = None
        return  # whatever works goes on
    relief, state.relief = state.relief, None
    if relief and relief.number == leg.number:
        return  # refused: the leg that it was to relieve goes on to be drained
    state.over_cause = cause
    if relief is None and state.queued and state.queued.state == "booting":
        relief, state.queued = state.queued, None
    if relief:
        state.leg = replace(relief, began_at=state.saved)
    else:
        _phase(state, "active", "waiting")
        state.leg = None


_APPLY: dict[type, Callable[[RunState, Any], None]] = {
    events.Submitted: _submitted,
    events.Abandoned: _abandoned,
    events.LegRequested: _requested,
    events.MachinesFound: _found,
    events.LaunchRefused: _refused,
    events.LaunchUnknown: _unknown,
    events.LegQueued: _takes_place,
    events.LegUp: _up,
    events.Progress: _progress,
    events.LegLimited: _limited,
    events.LegDraining: _draining,
    events.LegOver: _leg_over,
    events.MachineEnded: _ended_machine,
    events.MachineBack: _back,
    events.MachineUsed: _used,
    events.Stored: _stored,
    events.Forecast: _forecast,
    events.Warned: _warned,
    events.CancelAsked: _cancel,
    events.Ended: _ended,
    events.Closed: _closed,
    events.Resumed: _resumed,
}
