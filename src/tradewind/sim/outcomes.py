"""Whether a run has ended in the state that what happened to it calls for, and late only when it
was announced to be: promises 3 and 8 of referee.py."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.lifecycle import opening
from tradewind.lifecycle.fold import HARD_STOP, LASTING, TROUBLES, WINDOW
from tradewind.lifecycle.forecast import QUEUE_S
from tradewind.lifecycle.next import MOST_TROUBLES
from tradewind.model.event import (
    Ended,
    Forecast,
    LaunchRefused,
    LegOver,
    LegRequested,
    MachineEnded,
)
from tradewind.sim.history import SKEW_S, STALL_S, History
from tradewind.sim.world import Violation

_RESERVED_S = 1500 + 3600
"""The most seconds of a set of machines that may be left of a budget, a begun hour included."""
_NEARLY_S = 60 + 5


def check(run: History, event: Ended) -> None:
    if run.lied:
        return
    rights: dict[str, Callable[[], bool]] = {
        "succeeded": lambda: any(job.finished for job in run.jobs.values()),
        "failed": lambda: _failed(run),
        "cancelled": lambda: run.cancelled,
        "too_late": lambda: _too_late(run),
        "out_of_budget": lambda: _poor(run),
        "too_long": lambda: _too_long(run),
        "idle": lambda: any(job.hung for job in run.jobs.values()),
    }
    right = rights[event.outcome]()
    if run.cancelled_at is not None and event.outcome not in ("cancelled", "succeeded"):
        raise Violation(f"{run.run_id} was cancelled and ended as {event.outcome}")
    if not right:
        raise Violation(f"{run.run_id} ended as {event.outcome} ({event.reason}), and was not")
    # Decided up to a stall before; and work that was done in time is not late.
    now, deadline_s = run.world.now, run.spec.deadline_s
    done = min((job.finished_at or now for job in run.jobs.values()), default=now)
    at = done if event.outcome == "succeeded" else now - STALL_S
    late = deadline_s is not None and at > deadline_s + SKEW_S
    if late and not any(isinstance(e, Forecast) and e.late for e in run.of_life):
        raise Violation(f"{run.run_id} is late and was never announced to be")


def check_announced(run: History, ratio: float, leg: int) -> None:
    """While it runs, and whoever looks after it knows how fast and has announced nothing."""
    deadline_s, now, job = run.spec.deadline_s, run.world.now, run.jobs.get(leg)
    if deadline_s is None or job is None or run.lied:
        return
    kind = run.requests[leg].way.instance_type
    if abs(ratio - run.scenario.true_rates[kind]) > 0.001:
        return
    left_s = job.left_s
    if left_s is not None and now + 0.95 * left_s > deadline_s + SKEW_S + 120:
        told = [e.late for e in run.of_life if isinstance(e, Forecast)]
        if told[-1:] == [True]:
            return  # by another controller, and this one could not read it yet
        raise Violation(f"{run.run_id} will be late, and nobody says so")


def _failed(run: History) -> bool:
    events, spec = run.of_life, run.spec
    failures = sum(job.failures for job in run.jobs.values())
    troubles = sum(isinstance(e, LegOver) and e.cause in (*TROUBLES, WINDOW) for e in events)
    refused = {e.leg for e in events if isinstance(e, LaunchRefused) and e.kind in LASTING}
    shut = {
        e.request.way.what
        for e in events
        if isinstance(e, LegRequested) and e.request.leg in refused
    }
    nothing_left = all(w.what in shut for w in spec.ways)
    if failures > 3 * spec.tries + 3:
        raise Violation(f"{run.run_id} was tried {failures} times, not {spec.tries}")
    hung = any(job.hung for job in run.jobs.values())
    # Up for all that they were given, twice in a row.
    overlong = sum(isinstance(e, LegOver) and e.cause == HARD_STOP for e in events) > 1
    tried = failures >= spec.tries or troubles >= MOST_TROUBLES
    return tried or nothing_left or hung or overlong


def _too_late(run: History) -> bool:
    """A hard deadline has passed, or cannot be met with the fastest machines there are; where
    money is limited, these may be too dear."""
    spec, now = run.spec, run.world.now
    if not spec.hard or spec.deadline_s is None:
        return False
    done = max((job.step for job in run.jobs.values()), default=0.0)
    tried = {run.requests[leg].way.instance_type for leg in run.jobs}
    # What was not tried is as fast as was thought.
    rates = {
        kind: rate if kind in tried else min(rate, 1.0)
        for kind, rate in run.scenario.true_rates.items()
    }
    each = [
        (spec.work - done) / (way.rate * rates[way.instance_type])
        + way.start_s
        + way.facts.queues * QUEUE_S
        for way in spec.ways
    ]
    left_s = max(each) if run.scenario.limited_money else min(each)
    again_s = opening.again_s(spec.ways)  # a window takes a start
    open_s = spec.schedule.usable_s(now, spec.deadline_s, again_s)
    return now >= spec.deadline_s - SKEW_S or left_s + SKEW_S + STALL_S >= open_s


def _poor(run: History) -> bool:
    spec = run.spec
    assert spec.budget is not None
    left = spec.budget - run.rented.charged() - run.moved
    return any(left * 3600 < _RESERVED_S * (way.price_all + way.save) for way in spec.ways)


def _too_long(run: History) -> bool:
    most_s = run.spec.max_duration_s
    # What a provider forgot is reckoned at the latest that it can have ended.
    guessed = any(isinstance(e, MachineEnded) and e.estimated for e in run.events)
    return most_s is not None and (guessed or run.rented.up_s() >= most_s - _NEARLY_S)
