"""Between two legs: whether there is to be another, and which."""

from __future__ import annotations

from tradewind.base.units import format_hours, format_money
from tradewind.lifecycle import forecast, opening, progress
from tradewind.lifecycle.ask import ask, loudly
from tradewind.lifecycle.fold import ENDED_EARLY, LASTING
from tradewind.lifecycle.leg import HOPELESS, unwanted
from tradewind.lifecycle.money import (
    cap,
    countable,
    exposed,
    is_limited,
    needed,
    spent,
    used_s,
)
from tradewind.lifecycle.purchase import purchase, seconds_for
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import RunState
from tradewind.model.event import Ended, Event, LegOver, LegRequested, Warned
from tradewind.model.run import Spec, Way
from tradewind.model.timing import DRAIN_S
from tradewind.policy.base import Policy

MOST_TROUBLES = 8
"""So many legs in a row that came to nothing are not bad luck."""
LASTING_S = 3600.0
"""Refusals for what will not change by itself are believed for so long."""
_LEAST_S = 60.0
"""With less than this left of `max_duration` nothing is bought any more."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 15.0, 300.0
_FREE = 2
"""So many legs in a row may be interrupted at once: real interruptions come in rows."""


def after(
    state: RunState,
    spec: Spec,
    seen: Seen,
    ways: tuple[Way, ...],
    now: float,
    policy: Policy,
    kept: int = 0,
) -> list[Event]:
    """`kept`: so many micro-dollars are not to be spent on it."""
    end = _end(state, spec, seen, now)
    if end:
        return [end]
    if not ways:
        return []  # whoever looks can buy nothing of what it may be done on; others may
    most = cap(spec, seen)
    if is_limited(spec, seen) and not countable(state, seen):
        return []  # nothing is bought on a sum that may be wrong
    queued = state.queued
    if queued and queued.state == "requested" and not queued.request.way.facts.queues:
        return []  # its answer is a moment away
    everywhere = ways
    if state.queued:  # one queue is enough; what waits there is a choice like any other
        ways = (*(way for way in ways if not way.facts.queues), state.queued.request.way)
    left = None if most is None else most - exposed(state, seen) - kept
    left_s = spec.max_duration_s and spec.max_duration_s - used_s(state, seen, at_most=True)
    if left_s is not None and left_s < _LEAST_S:
        return []  # the last machines are to end; when they have, it is known what is left
    usable, why = _usable(state, seen, ways)
    affordable = usable
    if left is not None:
        affordable = tuple(way for way in usable if needed(state, seen, way) <= left)
    open_s = opening.left_s(spec, now)
    fitting = tuple(way for way in affordable if opening.fits(way, open_s))
    question = forecast.known(state, spec, seen, fitting or affordable or usable or ways, now, left)
    if progress.is_lost(state, spec, question):
        others = forecast.known(state, spec, seen, everywhere, now, left)
        if queued is not None and not progress.is_lost(state, spec, others):
            why = "waiting in this queue it would be late, and elsewhere it need not be"
            return [LegOver(leg=queued.number, cause="moved", reason=why)]
        return [Ended(outcome="too_late", reason="no machine can meet the deadline (hard: true)")]
    choice, trouble = ask(policy, question)
    chosen = None if choice.option is None else question.options[choice.option]
    announced = forecast.of_next(state, spec, seen, question, chosen, now)
    records: list[Event] = [announced] if announced else []
    records += loudly(state, state.last + 1, trouble)
    if not usable:
        again = "`tradewind resume` tries again, when that has changed"
        reason = f"nothing can be launched: {why}; {again}"
        return [*records, Ended(outcome="failed", reason=reason)]
    if not affordable:
        return [*records, *_poor(state, spec, seen, usable)]
    if not fitting or opening.again(state, now + open_s):
        return [*records, *opening.waits(state, spec, now)]
    # A first spot machine that has ended early is replaced at once, as one that was taken.
    barren = state.barren - (state.over_cause == ENDED_EARLY)
    wait_s = max(_wait_s(barren), _wait_s(state.fruitless - _FREE))
    if seen.known_s(state.over_at) * spec.speed < wait_s or _unused(state, seen) > _FREE:
        return records
    if chosen is None or chosen.way is None:
        return records
    if state.queued and chosen.way == state.queued.request.way:
        return records
    if state.queued and not state.queued.request.waits:
        # Its job begins as soon as its machines are there: nothing may work beside it.
        return [*records, LegOver(leg=state.queued.number, cause="moved", reason=choice.reason)]
    needed_s = seconds_for(state, spec, seen, question, chosen)
    until_s = now + open_s if spec.schedule.windows else None
    if until_s is not None:
        left_s = int(min(open_s - DRAIN_S, open_s if left_s is None else left_s))
    request = purchase(state, spec, seen, chosen.way, now, left, left_s, needed_s, until_s)
    reason = choice.reason
    if spec.untold:  # a policy reckons with a figure that nobody has told
        reason = f"{chosen.way.words}: {format_money(chosen.way.price_all, digits=2)} an hour"
    if request.leg == 1 and chosen.way.words != spec.ways[0].words:
        reason += f". {_other_than_planned(spec.ways[0], ways, usable, affordable)}"
    return [*records, LegRequested(request=request, reason=reason)]


def _other_than_planned(
    planned: Way, ways: tuple[Way, ...], usable: tuple[Way, ...], affordable: tuple[Way, ...]
) -> str:
    """Who has just been shown a plan expects its machine to be bought. Prices may have changed."""

    def has(some: tuple[Way, ...]) -> bool:
        return any(way.words == planned.words for way in some)

    if not has(ways):
        why = "is not for sale now"
    elif not has(usable):
        why = "was refused"
    elif not has(affordable):
        why = "does not fit what may be spent"
    else:
        why = "ranks lower now: each launch compares prices, starts and chances again"
    return f"The plan's own choice, {planned.words}, {why}"


def _end(state: RunState, spec: Spec, seen: Seen, now: float) -> Ended | None:
    asked = unwanted(state, spec, seen, now)
    if asked:
        return Ended(outcome=asked[0], reason=asked[1])
    if spec.max_duration_s and spec.max_duration_s - used_s(state, seen) < _LEAST_S:
        most, up = (format_hours(s / 3600) for s in (spec.max_duration_s, used_s(state, seen)))
        least = format_hours(_LEAST_S / 3600)
        why = (
            f"its machines were up for {up} of the {most} they may be; {least} must be left to buy"
        )
        return Ended(outcome="too_long", reason=why)
    if state.over_cause == "idle":
        return Ended(outcome="idle", reason="the job did nothing, and on_idle is stop")
    if state.over_cause == HOPELESS:
        return Ended(outcome="failed", reason="the job has failed, and no retry would change that")
    if state.failures >= spec.tries:
        why = f"the job has failed {state.failures} times without getting further"
        return Ended(outcome="failed", reason=why)
    if given_up := progress.given_up(state, spec):
        return Ended(outcome="failed", reason=f"{given_up}; `tradewind resume` begins it again")
    if state.troubles >= MOST_TROUBLES:
        why = f"{state.troubles} legs in a row made no progress; last cause: {state.over_cause}"
        return Ended(outcome="failed", reason=why)
    return None


def _usable(state: RunState, seen: Seen, ways: tuple[Way, ...]) -> tuple[tuple[Way, ...], str]:
    waiting = state.queued.request.way if state.queued else None  # it is had, or will be
    usable = tuple(way for way in ways if way == waiting or not _lasting(state, seen, way))
    lasting = [refusal for refusal in state.refusals.values() if refusal.kind in LASTING]
    kinds = ", ".join(sorted({refusal.kind.replace("_", " ") for refusal in lasting}))
    last = max(lasting, key=lambda refusal: refusal.at, default=None)
    return usable, f"{kinds} ({last.reason})" if last and last.reason else kinds


def _unused(state: RunState, seen: Seen) -> int:
    """Legs that are over, and yet are paid for: their provider bills by the hour, or so much at
    least. Machines say themselves when they are interrupted; whatever they say, no run pays for
    more than this many at once."""
    paid = set()
    for rented in state.machines.values():
        machine = rented.machine
        way = state.requests[machine.leg].way
        least_s = max(way.facts.billing_step_s, way.facts.billing_least_s)
        clock = seen.clocks.get(way.provider)
        # A provider that cannot be asked now may bill it: then by how long it is known.
        up_s = seen.known_s(rented.at) if clock is None else clock - machine.launched_s
        if up_s < least_s:
            paid.add(machine.leg)
    return len(paid - {leg.number for leg in state.legs})


def _wait_s(barren: int) -> float:
    if barren <= 0:
        return 0.0
    doubled: float = _FIRST_WAIT_S * 2.0 ** min(barren - 1, 10)
    return min(doubled, _LONGEST_WAIT_S)


def _lasting(state: RunState, seen: Seen, way: Way) -> bool:
    what = way.what
    found = (state.refusals.get(f"{kind} {what}") for kind in LASTING)
    return any(r is not None and seen.known_s(r.at) < LASTING_S for r in found)


def _poor(state: RunState, spec: Spec, seen: Seen, usable: tuple[Way, ...]) -> list[Event]:
    """Not enough for any purchase: for good, or only until it is sure what the last ones cost, or
    until its project has money again."""
    least = min(needed(state, seen, way) for way in usable)
    sure = spent(state, seen, ended_only=True)
    if spec.budget is None or spec.budget - sure >= least:
        month = seen.month
        if month is None or month.cap is None or month.cap - exposed(state, seen) >= least:
            return []  # by and by it becomes sure what the rest has cost
        if state.warned.get("waiting", 0) >= month.number:
            return []
        why = (
            f"waiting for the project's budget: {month.words};"
            f" {format_money(least, digits=2)} is needed for the next launch"
        )
        return [Warned(about="waiting", level=month.number, reason=why)]
    why = (
        f"{format_money(sure, digits=2)} of {format_money(spec.budget, digits=2)} spent,"
        f" and a launch needs {format_money(least, digits=2)} in reserve, for machines that never"
        " report; `tradewind resume --budget` continues it"
    )
    return [Ended(outcome="out_of_budget", reason=why)]
