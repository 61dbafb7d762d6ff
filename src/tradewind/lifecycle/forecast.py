"""When the work will be done, and for how much: by measured speed as soon as there is one.

A policy is asked in the time of the run's world, which in a rehearsal goes faster than ours."""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.base.units import format_hours, format_money
from tradewind.lifecycle import capacity as capacities
from tradewind.lifecycle import moving, opening
from tradewind.lifecycle.capacity import Capacity
from tradewind.lifecycle.money import price_now, spent, worked
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, Refusal, RunState
from tradewind.lifecycle.usage import likely
from tradewind.model.event import Forecast
from tradewind.model.run import Heartbeat, Spec, Way
from tradewind.model.timing import LOST_S
from tradewind.policy.base import MEASURED, UNMEASURED, Known, Option

TICK_S = 120.0
"""A controller looks at least this often, as a rule."""
_QUICK_S = 1.0
"""And on this computer."""
QUEUE_S = 1800.0
"""For so long a queue is expected to take, before anybody has said anything of it."""
_SILENT = 0.02
_EASE = 0.02
"""A run that was announced as late is on time again only when there is this share to spare."""


def known(
    state: RunState, spec: Spec, seen: Seen, ways: tuple[Way, ...], now: float, budget: int | None
) -> Known:
    """The question for the policy; the way that is held stands first. `ways` may be left out where
    only that one is asked about."""
    speed = spec.speed
    held = state.leg
    holding = held.request.way if held else None
    beat = _first_beat(state, seen)
    step = done(state, spec, seen, beat)
    options = []
    if held and holding:
        going = beat is not None and beat.doing == "working"
        start_s = 0.0 if going else holding.start_s
        ratio = _ratio(state, holding, beat if spec.steps else None)
        capacity = capacities.of(state, holding, now, None, speed, held=True)
        option = _option(holding, ratio, start_s, 0, None, capacity, speed, True)
        price = round((price_now(seen, held, holding) + beside(holding)) / speed)
        options.append(replace(option, price=price))
    held_as = (holding.what, holding.nodes) if holding else None
    for way in ways:
        what = way.what
        if (what, way.nodes) != held_as:
            ago = [
                seen.known_s(refusal.at)
                for refusal in state.refusals.values()
                if refusal.what == what and _tells(refusal, way)
            ]
            refused_s = min(ago) * speed if ago else None
            ratio = _ratio(state, way, None)
            capacity = capacities.of(state, way, now, refused_s, speed, held=False)
            queue_s = queueing_s(state, seen, way)
            start_s, sure = way.start_s + (queue_s or 0.0), queue_s is None
            cost = moving.start(state, way)
            options.append(_option(way, ratio, start_s, cost, refused_s, capacity, speed, sure))
    deadline_s = spec.deadline_s
    again_s = opening.again_s(spec.ways)
    all_s = 0.0
    if deadline_s is not None:
        begun_s = min(state.submitted_s, deadline_s)
        all_s = spec.schedule.usable_s(begun_s, deadline_s, again_s) * speed
    return Known(
        max(spec.work - step, 0.0),
        tuple(options),
        None if deadline_s is None else _until_s(spec, now, deadline_s, again_s) * speed,
        budget,
        0 if holding else None,
        held_s=capacities.held_s(state, holding, now) * speed,
        tick_s=TICK_S if speed == 1 else max(TICK_S, _QUICK_S * speed),
        all_work=spec.work,
        all_s=all_s,
        doubt=MEASURED if state.ratios else UNMEASURED,
        # As a rule a loss is listed at once: for silence a share of the time must do.
        notice_s=min(LOST_S + TICK_S, _SILENT * all_s),
        unsaved=unsaved(state, spec, seen, held) if held else 0.0,
        between=_between(spec),
        late=round((spec.late or 0) / speed),
    )


def _between(spec: Spec) -> float:
    """By the slowest of its ways: what it loses there is done again on another."""
    return spec.checkpoint_every_s * min(way.rate for way in spec.ways)


def unsaved(state: RunState, spec: Spec, seen: Seen, leg: Leg) -> float:
    """What would have to be done again if its machines were taken without notice. Of a job that
    counts nothing it is not known what it has saved: as much as it may do between two saves."""
    beat = _first_beat(state, seen)
    if beat is None or beat.doing != "working":
        return 0.0
    if spec.steps:
        return max(beat.step - max(state.saved, beat.saved), 0.0)
    way = leg.request.way
    return min(spec.checkpoint_every_s * way.rate, worked(state, seen))


def _until_s(spec: Spec, now: float, deadline_s: float, again_s: float) -> float:
    """How much of the time until the deadline machines may be up."""
    if now >= deadline_s:
        return deadline_s - now
    return spec.schedule.usable_s(now, deadline_s, again_s)


def _tells(refusal: Refusal, way: Way) -> bool:
    """Whether it says that there is no capacity. That machines of a queue were taken says nothing
    of the next place in it, which costs nothing; when that comes, the queue tells."""
    return refusal.kind != "throttled" and not (refusal.kind == "taken" and way.facts.queues)


def queueing_s(state: RunState, seen: Seen, way: Way) -> float | None:
    """How long machines will likely have to queue for; None where they need not. What waits already
    is expected when its provider says, or after as long again."""
    if not way.facts.queues:
        return None
    leg = state.queued
    if leg is None or leg.request.way != way:
        return QUEUE_S
    if leg.state == "booting":
        return None
    clock = seen.clocks.get(way.provider)
    if leg.starts_s is not None and clock is not None:
        return float(max(leg.starts_s - clock, 0))
    return max(seen.known_s(leg.requested_at), QUEUE_S)


def done(state: RunState, spec: Spec, seen: Seen, beat: Heartbeat | None) -> float:
    """How far it is: by what the job and its checkpoints say; where the work is not counted in
    steps, by how long machines were at it."""
    if spec.steps:
        return max(state.saved, beat.step) if beat else state.saved
    return min(worked(state, seen), spec.work)


def of_held(state: RunState, spec: Spec, seen: Seen, leg: Leg, now: float) -> Forecast | None:
    """An announcement, if what is to be expected of the present leg has changed."""
    if (spec.deadline_s is None and spec.budget is None) or spec.untold:
        return None
    beat = _first_beat(state, seen)
    step = done(state, spec, seen, beat)
    way = leg.request.way
    measured = beat if spec.steps else None
    left_s = max(spec.work - step, 0.0) / (way.rate * _ratio(state, way, measured))
    if beat is None or beat.doing != "working":
        left_s += way.start_s
    price = price_now(seen, leg, way) + beside(way)
    return _changed(state, spec, seen, left_s, price, 0, now)


def of_next(
    state: RunState, spec: Spec, seen: Seen, question: Known, option: Option | None, now: float
) -> Forecast | None:
    """The same for what would be held next."""
    if (spec.deadline_s is None and spec.budget is None) or spec.untold:
        return None
    if option is None:
        # Nothing can be had: the soonest would be everything's best, from now on.
        option = min(question.options, key=lambda o: o.start_s + question.work / o.rate)
    left_s = (option.start_s + question.work / option.rate) / spec.speed
    price = round(option.price * spec.speed)
    return _changed(state, spec, seen, left_s, price, option.start_cost, now)


def _changed(
    state: RunState, spec: Spec, seen: Seen, left_s: float, price: int, start_cost: int, now: float
) -> Forecast | None:
    again_s = opening.again_s(spec.ways)
    finish_s = spec.schedule.done_s(now, left_s, again_s)
    late = False
    if spec.deadline_s is not None:
        ease = 1 + _EASE if state.announced_late else 1
        late = spec.schedule.done_s(now, ease * left_s, again_s) > spec.deadline_s
    cost = 0
    if spec.budget is not None or late != state.announced_late:
        cost = spent(state, seen) + start_cost + int(price * left_s / 3600)
    if spec.budget is None:
        over = state.announced_over
    else:
        over = cost > spec.budget * (1 - _EASE if state.announced_over else 1)
    if (late, over) == (state.announced_late, state.announced_over):
        return None
    return Forecast(
        late=late,
        over_budget=over,
        finish_s=finish_s,
        cost=cost,
        reason=_words(spec, late, over, left_s, cost, now),
    )


def too_late(state: RunState, spec: Spec, seen: Seen, now: float) -> Forecast | None:
    """For a run that ends, if that is past its deadline and nobody has said so."""
    if spec.deadline_s is None or now <= spec.deadline_s or state.announced_late:
        return None
    return Forecast(
        late=True,
        over_budget=state.announced_over,
        finish_s=now,
        cost=spent(state, seen),
        reason=(
            f"the deadline was {format_hours((now - spec.deadline_s) * spec.speed / 3600)} ago"
        ),
    )


def _words(spec: Spec, late: bool, over: bool, left_s: float, cost: int, now: float) -> str:
    text = f"{format_hours(left_s * spec.speed / 3600)} of work and starting are left"
    if spec.deadline_s is not None:
        until = (spec.deadline_s - now) * spec.speed
        text += (
            f", and {format_hours(until / 3600)} until the deadline"
            if until > 0
            else f", and the deadline was {format_hours(-until / 3600)} ago"
        )
        text += ": it will be late" if late else ": it will be in time"
    if spec.budget is not None:
        text += f"; {format_money(cost, digits=2)} in all, of {format_money(spec.budget, digits=2)}"
        text += ": more than may be spent" if over else ""
    return text


def _first_beat(state: RunState, seen: Seen) -> Heartbeat | None:
    if state.leg and state.leg.machines:
        found = seen.beats.get(state.leg.machines[0])
        return found[0] if found else None
    return None


def _ratio(state: RunState, way: Way, beat: Heartbeat | None) -> float:
    if beat and beat.rate:
        return beat.rate / way.rate
    return state.ratio_of(way)


def beside(way: Way) -> int:
    """Micro-dollars an hour beside its machines: checkpoints that leave its region, and requests to
    the store."""
    return way.save + likely(way)


def _option(
    way: Way,
    ratio: float,
    start_s: float,
    start_cost: int,
    refused_s: float | None,
    capacity: Capacity,
    speed: float,
    sure: bool,
) -> Option:
    return Option(
        way.place,
        way.market,
        round((way.price_all + beside(way)) / speed),
        way.rate * ratio / speed,
        start_s * speed,
        start_cost,
        refused_s,
        way,
        again_s=way.start_s * speed,
        sure=sure,
        up=capacity.up,
        up_s=capacity.since_s,
        history=capacity.history,
        again_cost=moving.again(way),
    )
