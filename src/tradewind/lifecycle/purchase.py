"""A purchase, to the last detail."""

from __future__ import annotations

from tradewind.lifecycle.money import hard_stop_s, is_limited, kept_aside, overtime, worked
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import RunState
from tradewind.model.run import Request, Spec, Way
from tradewind.policy.base import Known, Option


def purchase(
    state: RunState,
    spec: Spec,
    seen: Seen,
    way: Way,
    now: float,
    left: int | None,
    left_s: float | None,
    needed_s: float,
    until_s: float | None = None,
) -> Request:
    """`left`, `left_s`: what may still be spent, of money and of machines' time. `until_s`: when
    its window closes."""
    number = state.last + 1
    if spec.hard and spec.deadline_s is not None:
        # Whoever looks may be asleep then.
        until_deadline_s = max(spec.deadline_s - now, 0.0)
        left_s = until_deadline_s if left_s is None else min(left_s, until_deadline_s)
    return Request(
        launch_id=f"{state.run_id}-{number}",
        run_id=state.run_id,
        leg=number,
        way=way,
        hard_stop_s=hard_stop_s(way, left, left_s, needed_s, kept_aside(state, way)),
        beside=state.queued.number if state.queued else 0,
        waits=way.facts.queues and may_work_beside(spec, seen),
        until_s=until_s,
        signed=seen.signs,
        circle=spec.circle,
    )


def seconds_for(state: RunState, spec: Spec, seen: Seen, known: Known, option: Option) -> float:
    """How long machines will likely be needed, in our time."""
    work = known.work if spec.steps else overtime(spec, worked(state, seen))
    return (option.start_s + work / option.rate) / spec.speed


def may_work_beside(spec: Spec, seen: Seen) -> bool:
    """Whether another leg may work while one waits in a queue: if there is a way without one. What
    two legs may spend together is not known before, so where that is limited there is one."""
    return not is_limited(spec, seen) and any(not way.facts.queues for way in spec.ways)
