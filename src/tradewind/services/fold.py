"""From a service's commits to its state. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tradewind.base.errors import BadFile
from tradewind.model.service import (
    FrontGone,
    FrontLeaves,
    FrontOrdered,
    FrontReady,
    ReplicaGone,
    ReplicaLeaves,
    ReplicaOrdered,
    ReplicaReady,
    ReplicasWanted,
    RuleChosen,
    Scaled,
    ServiceClosed,
    ServiceCommit,
    ServiceEnded,
    ServiceEvent,
    ServiceStopAsked,
    ServiceSubmitted,
    SpotGone,
)
from tradewind.services.state import FrontMachine, Replica, ServiceState

_COLD_STARTS, _TAKEN = 9, 500
"""So many of the last are remembered."""
PHASES = {
    ("", "up"): "submitted: replicas are ordered",
    ("up", "stopping"): "its user wants it to stop: running answers finish",
    ("up", "ended"): "no replica comes up",
    ("stopping", "ended"): "every replica is gone",
    ("ended", "closed"): "the front is gone too",
}


def fold(commits: Iterable[ServiceCommit], state: ServiceState | None = None) -> ServiceState:
    new = ServiceState() if state is None else state.copy()
    for commit in commits:
        if commit.number != new.number + 1:
            raise BadFile(
                f"commit {commit.number} of a service follows its commit {new.number}",
                hint="restore its journal from a backup",
            )
        new.number = commit.number
        for event in commit.events:
            if isinstance(event, FrontOrdered | FrontReady | FrontLeaves | FrontGone):
                _of_front(new, event, commit.number)
            else:
                _one(new, event, commit.number)
    return new


def _one(state: ServiceState, event: ServiceEvent, at: int) -> None:
    if isinstance(event, ServiceSubmitted):
        _moved(state, "up")
        state.service_id, state.spec = event.service_id, event.spec
        state.wanted, state.wanted_at = event.spec.start, at
        state.fewest, state.most = event.spec.fewest, event.spec.most
    elif isinstance(event, ReplicaOrdered):
        if event.run_id in state.every:
            raise BadFile(f"the journal of {state.service_id} orders {event.run_id} twice")
        state.every[event.run_id] = event.number
        state.replicas[event.run_id] = Replica(
            event.number, event.run_id, event.market, event.tries, at, place=event.place
        )
    elif isinstance(event, ReplicaReady):
        found = _replica(state, event.run_id)
        state.replicas[event.run_id] = replace(found, ready_at=at)
        state.ever_ready, state.failures = True, 0
        took = event.machine_s + event.answered_s + event.warm_s
        state.cold = (*state.cold, took)[-_COLD_STARTS:]
    elif isinstance(event, ReplicaLeaves):
        found = _replica(state, event.run_id)
        state.replicas[event.run_id] = replace(
            found, leaving_at=found.leaving_at or at, lost=found.lost or event.lost
        )
        if event.lost and found.market == "spot":
            if found.ready_at and not found.lost and state.spot_lost.get(found.place) != at:
                state.taken = (*state.taken, at)[-_TAKEN:]
            state.spot_lost[found.place] = at
            if not found.ready_at:  # what is taken before it is of use is not to be had
                state.spot_gone[found.place] = at
    elif isinstance(event, ReplicaGone):
        found = _replica(state, event.run_id)
        del state.replicas[event.run_id]
        if event.failed and not found.ready_at:
            state.failures += 1
        if event.failed:
            state.failed_at, state.tail = at, event.tail
    elif isinstance(event, ReplicasWanted):
        state.wanted, state.wanted_at = event.count, at
    elif isinstance(event, RuleChosen):
        state.rule = (event.window_s, event.growth, event.hold_s, event.fill)
        state.rule_at = at
    elif isinstance(event, SpotGone):
        state.spot_gone[event.place] = at
    elif isinstance(event, Scaled):
        state.fewest, state.most = event.fewest, event.most
    elif isinstance(event, ServiceStopAsked):
        if state.phase == "up":
            _moved(state, "stopping")
            state.stop_at, state.reason = at, event.reason
    elif isinstance(event, ServiceEnded):
        _moved(state, "ended")
        state.outcome, state.reason = event.outcome, event.reason
        state.tail = event.tail or state.tail
        state.stop_at = state.stop_at or at
    else:
        assert isinstance(event, ServiceClosed)
        _moved(state, "closed")


def _of_front(
    state: ServiceState, event: FrontOrdered | FrontReady | FrontLeaves | FrontGone, at: int
) -> None:
    run_id = event.run_id
    if isinstance(event, FrontOrdered):
        if run_id in state.every_front:
            raise BadFile(f"the journal of {state.service_id} orders {run_id} twice")
        state.every_front[run_id] = event.number
        state.fronts[run_id] = FrontMachine(event.number, run_id, at)
        return
    found = state.fronts.get(run_id)
    if found is None:
        raise BadFile(f"the journal of {state.service_id} tells of {run_id}, which it has not")
    if isinstance(event, FrontReady):
        told = replace(found, ready_at=at, host=event.host, public=event.public)
        state.fronts[run_id], state.front_failures, state.front_ever = told, 0, True
    elif isinstance(event, FrontLeaves):
        state.fronts[run_id] = replace(found, leaving_at=found.leaving_at or at)
    else:
        del state.fronts[run_id]
        if event.failed:
            state.front_failures += not found.ready_at
            state.front_failed_at, state.tail = at, event.tail


def _replica(state: ServiceState, run_id: str) -> Replica:
    found = state.replicas.get(run_id)
    if found is None:
        raise BadFile(f"the journal of {state.service_id} tells of {run_id}, which it has not")
    return found


def _moved(state: ServiceState, new: str) -> None:
    if (state.phase, new) not in PHASES:
        raise BadFile(
            f"the journal says that a service went from {state.phase or 'nothing'} to {new}",
            hint="it was changed by hand or is not complete; restore it from a backup",
        )
    state.phase = new
