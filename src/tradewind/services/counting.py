"""How many replicas a service is to have: its rule (scaling.py) on what its front has seen. Pure.

Load is what is answered, over what a replica answers at once: a long answer counts for as long as
it lasts. Where some wait, it is what arrives, and what works off those who wait. Where the front
does not answer nothing is concluded: figures that are gone are not silence.
"""

from __future__ import annotations

from math import ceil
from statistics import median
from typing import TYPE_CHECKING

from tradewind.model.service import ReplicasWanted, RuleChosen, ServiceEvent, ServiceSpec
from tradewind.services.replay import GIVE_UP_S, PATIENT_S, PERIOD_S, Replicas
from tradewind.services.scaling import (
    BACK_S,
    CAREFUL,
    DAY_S,
    EVERY_S,
    FIRST,
    Rule,
    allowed,
    chosen,
    wanted_now,
)
from tradewind.services.seen import FrontSeen, Seen
from tradewind.services.state import ServiceState

if TYPE_CHECKING:
    from tradewind.services.replay import Column

_DAY = DAY_S // PERIOD_S
_COLD_S = 180
"""Until one was measured."""


def load_of(front: FrontSeen, at_once: int, answer_s: float = 0.0, rate: float = 0.0) -> float:
    """In replicas. What waits while replicas come up must not order many times what it needs: it
    counts by what works it off within two minutes, beside what arrives (`rate`, a second) by what
    an answer takes (`answer_s`; 0: nobody knows yet, and it counts as if it were answered)."""
    waits = front.queued + front.held
    busy = max(front.current - front.queued, 0)
    if waits and answer_s:
        work = max(float(busy), rate * answer_s)
        return (work + waits * min(answer_s / GIVE_UP_S, 1.0)) / max(at_once, 1)
    return (busy + waits) / max(at_once, 1)


def wanted(state: ServiceState, spec: ServiceSpec, seen: Seen, now: float) -> list[ServiceEvent]:
    most, fewest = state.most, state.fewest
    count, load, why = state.wanted, 0.0, ""
    if seen.front is not None and seen.load:
        new = _chosen(state, spec, seen)
        if new:
            return new
        load = seen.load[-1]
        count, why = _by_load(state, spec, seen)
    if count > most:
        count, why = most, f"{why or 'so many'}; {most} are the most that there may be"
    if count < fewest:
        count, why = fewest, f"{fewest} are the fewest that there may be"
    if count == state.wanted:
        return []
    return [ReplicasWanted(count=count, load=round(load, 3), reason=why)]


def _by_load(state: ServiceState, spec: ServiceSpec, seen: Seen) -> tuple[int, str]:
    rule = Rule(*state.rule) if state.rule else FIRST
    fill = rule.fill * (1.0 if not state.rule or len(seen.load) >= _DAY else CAREFUL)
    count = wanted_now(rule, fill, seen.load)
    load = seen.load[-1]
    asks = load > 0
    if asks or not _is_idle(spec, seen):
        count = max(count, 1)
    elif not state.fewest:
        count = 0
    if count >= state.wanted:
        return count, f"the load is {load:.2f} replicas, and each is filled to {fill:.0%}"
    # Going down, all of the hold must have been seen, and the last word be as old as that.
    seen_s = len(seen.load) * PERIOD_S
    if seen_s < rule.hold_s or seen.known_s(state.wanted_at) < min(rule.hold_s, 60):
        return state.wanted, ""
    what = f"the most in {rule.hold_s} s was {max(seen.load[-rule.hold_s // PERIOD_S :]):.2f}"
    if not count:
        what = f"nobody has asked for {spec.idle_s} s"
    return count, f"{what}, and each replica is filled to {fill:.0%}"


def _is_idle(spec: ServiceSpec, seen: Seen) -> bool:
    back = ceil(spec.idle_s / PERIOD_S)
    return len(seen.load) >= back and not any(seen.load[-back:])


def _chosen(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[ServiceEvent]:
    """Every few hours, by what was seen until then."""
    if len(seen.load) < EVERY_S // PERIOD_S or len(seen.load) != len(seen.requests):
        return []
    if state.rule_at and seen.known_s(state.rule_at) < EVERY_S:
        return []
    import numpy as np

    back = BACK_S // PERIOD_S
    load, requests = by_second(np.array(seen.load[-back:]), np.array(seen.requests[-back:]))
    cold_s = round(median(state.cold)) if state.cold else _COLD_S
    kind = Replicas(cold_s, spec.slack_s, spec.engine.drain_s, PATIENT_S)
    found = chosen(load, requests, kind, allowed(1 - spec.goal), max(state.fewest, 1))
    # Recorded though it may be what it was: else each pass would replay two days again.
    rule = found or (Rule(*state.rule) if state.rule else FIRST)
    return [
        RuleChosen(
            window_s=rule.window_s,
            growth=rule.growth,
            hold_s=rule.hold_s,
            fill=rule.fill,
            reason=f"the cheapest in a replay of the last {len(load) / 3600:.0f} h",
        )
    ]


def by_second(load: Column, requests: Column) -> tuple[Column, Column]:
    """Of periods, which are the mean of what was seen in them: with seconds in them that differ as
    periods do. Without that a replay has no bursts, and its rule is too bold."""
    import numpy as np

    each = np.repeat(requests / PERIOD_S, PERIOD_S)
    # Independent arrivals: the variance of a count is so many times its mean.
    times = float(np.mean(np.diff(requests) ** 2) / 2 / max(requests.mean(), 1e-9))
    shape = np.maximum(each / max(times, 1.0), 1e-3)
    varied = np.random.default_rng(1).gamma(shape).reshape(-1, PERIOD_S)
    share = (varied / np.maximum(varied.mean(axis=1, keepdims=True), 1e-9)).reshape(-1)
    return np.repeat(load, PERIOD_S) * share, each * share
