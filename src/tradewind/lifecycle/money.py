"""What a run has spent, and the most that it can come to. Micro-dollars; provider's clocks only.

A budget is kept without anybody watching: each machine is told at its launch how long it may be up,
and again when it has come to cost more, so that all of them together cannot spend more. A machine
that never comes up cannot obey, so a reserve is left for the time until a controller ends it, or,
where less than that finishes the work, until one that has just launched it does; and one that was
reported as ended may live on until it notices that it was replaced. What it costs to bring the work
there, and to save it, is kept aside too (moving.py): it is spent however soon a machine ends.
"""

from __future__ import annotations

from math import inf

from tradewind.lifecycle.moving import saving, start
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, Rented, RunState
from tradewind.lifecycle.usage import hourly, paid
from tradewind.model.bill import bill, charged
from tradewind.model.run import Facts, Spec, Way
from tradewind.model.timing import (
    BEAT_S,
    DRAIN_S,
    GRACE_S,
    SHUTDOWN_S,
    UNATTENDED_S,
    UNREACHABLE_S,
)

_LIVING_ON_S = UNREACHABLE_S + 2 * BEAT_S + SHUTDOWN_S


def living_on_s(facts: Facts) -> int:
    """For how long a machine that is listed as ended may be paid for nevertheless: until it notices
    that it was replaced; where that does not end its bill, until a controller has ended it."""
    return UNATTENDED_S + GRACE_S if facts.ends == "never" else _LIVING_ON_S


_SLOWEST = 0.99
"""A machine counts by its own clock, which may run slow by this much."""
WEEK_S = 7 * 86_400
OVERTIME = 0.25
ATTENDED_S = 180
"""In so long a controller that is at work ends a machine that never came up."""


def spent(state: RunState, seen: Seen, *, ended_only: bool = False) -> int:
    """Until the provider's now; or only what will not change any more."""
    return state.moved_cost + sum(
        _so_far(state, seen, rented)
        for rented in state.machines.values()
        if rented.ended or not ended_only
    )


def countable(state: RunState, seen: Seen) -> bool:
    """Whether every provider of a living machine has told its time: without it, unknown is what
    the machine has cost by now."""
    return all(
        rented.ended or state.requests[rented.machine.leg].way.provider in seen.clocks
        for rented in state.machines.values()
    )


def cap(spec: Spec, seen: Seen) -> int | None:
    """The most that the run may come to, by its own budget and by its project's month; None where
    neither limits it."""
    limits = [spec.budget, seen.month.cap if seen.month else None]
    return min((limit for limit in limits if limit is not None), default=None)


def is_limited(spec: Spec, seen: Seen) -> bool:
    """Whether what it uses up is counted: money, or the time of its machines."""
    return cap(spec, seen) is not None or spec.max_duration_s is not None


def used_s(state: RunState, seen: Seen, *, at_most: bool = False) -> int:
    """For how long machines were up, one leg after another, since the run was submitted or resumed.
    One that is to end, and may have long ended, counts when its provider has said when that was;
    or, `at_most`, as if it were up."""
    return sum(
        _up_s(state, seen, rented)
        for name, rented in state.machines.items()
        if rented.machine.rank == 0
        and rented.machine.leg >= state.first_leg
        and (rented.ended or at_most or name in state.claimed)
    )


def worked(state: RunState, seen: Seen) -> float:
    """Units of work that machines have had the time for, as it was estimated."""
    total = 0.0
    for rented in state.machines.values():
        if rented.machine.rank == 0:
            way = state.requests[rented.machine.leg].way
            total += max(_up_s(state, seen, rented) - way.start_s, 0.0) * way.rate
    return total


def exposed(state: RunState, seen: Seen) -> int:
    """The most that what was bought so far can come to, all of its legs being over."""
    total = state.moved_cost
    for rented in state.machines.values():
        way = state.requests[rented.machine.leg].way
        total += _so_far(state, seen, rented)
        more_s = 0
        if not rented.ended:
            more_s = UNATTENDED_S + GRACE_S
        elif seen.known_s(rented.at) < living_on_s(way.facts):
            more_s = living_on_s(way.facts)
        if more_s:
            total += way.price * more_s // 3600
            total -= -saving(state, way, more_s) // way.nodes
    for leg, at in state.doubts.items():
        way = state.requests[leg].way
        if seen.known_s(at) < way.facts.listing_lag_s + UNATTENDED_S:
            total += reserve(state, way)
    return total


def at_most(state: RunState, seen: Seen) -> int:
    """The same with what is under way, each machine until its own hard stop."""
    total = exposed(state, seen)
    for leg in state.legs:
        way = leg.request.way
        seconds = leg.request.hard_stop_s + 2 * way.facts.billing_lead_s
        if way.facts.ends == "never":
            seconds += UNATTENDED_S
        hour = max(price_now(seen, leg, way), way.price_all)
        whole = bill(hour, seconds, way.facts) + kept_aside(state, way)
        whole += way.save * seconds // 3600
        gone = sum(_so_far(state, seen, state.machines[name]) for name in leg.machines)
        total += max(whole - gone, 0)
    return total


def reserve(state: RunState, way: Way) -> int:
    """For machines that never come up: until a controller sees that. And for those that do: to
    bring the work there, and to save it."""
    seconds = way.facts.boot_timeout_s + UNATTENDED_S + way.facts.billing_lead_s
    if way.facts.ends == "never":
        seconds += UNATTENDED_S  # which its hard stop leaves, besides
    return kept_aside(state, way) + way.nodes * bill(way.price, seconds, way.facts)


def needed(state: RunState, seen: Seen, way: Way) -> int:
    """Less than this buys nothing of use: the reserve, or what does all the rest of the work, where
    that is less; and where saving costs, which the reserve counts once, what lets machines come up,
    begin and save. With less they would be given a minute, and bought again and again."""
    begins = _for(state, way, way.start_s)
    rest_s = way.start_s + _rest(state, seen) / (way.rate * state.ratio_of(way))
    rest = max(_for(state, way, rest_s), _attended(state, way))
    least = min(reserve(state, way), rest)
    return max(least, begins) if way.save else least


def _for(state: RunState, way: Way, seconds: float) -> int:
    """What lets machines be up for so long, and save and end."""
    seconds += DRAIN_S + SHUTDOWN_S + BEAT_S + 2 * way.facts.billing_lead_s
    seconds /= _SLOWEST
    if way.facts.ends == "never":
        seconds += UNATTENDED_S
    return kept_aside(state, way) + int(seconds * _hour(way) / 3600) + 1


def _attended(state: RunState, way: Way) -> int:
    """The reserve for machines that never come up, while whoever has launched them looks on."""
    seconds = way.facts.boot_timeout_s + ATTENDED_S + way.facts.billing_lead_s
    return kept_aside(state, way) + way.nodes * bill(way.price, seconds, way.facts)


def _rest(state: RunState, seen: Seen) -> float:
    """Units of work that are left, as far as it is known before machines are there."""
    spec = state.spec
    if spec is None:
        return inf
    if spec.steps:
        return max(spec.work - state.saved, 0.0)
    return overtime(spec, worked(state, seen))


def overtime(spec: Spec, worked: float) -> float:
    """Of a job that is not counted in steps, what may be left: it may be at any point of its work.
    Past what was thought to be its end, as much again as was done."""
    if worked >= spec.work:
        return worked
    return max(spec.work - worked, OVERTIME * spec.work)


def _hour(way: Way) -> int:
    """Of all its machines, with what they ask of the store and save there."""
    return way.price_all + way.nodes * hourly(way) + way.save


def kept_aside(state: RunState, way: Way) -> int:
    """Of what a leg there may cost, what is not for the time that it lasts."""
    return start(state, way) + saving(state, way, 0)


def after_draining(state: RunState, seen: Seen, way: Way) -> int:
    """What will have been spent, at most, when a leg on `way` has been drained and is sure to have
    ended: the least that a move costs before anything is bought for it."""
    seconds = DRAIN_S + UNATTENDED_S + GRACE_S
    until_then = way.nodes * bill(way.price, seconds, way.facts) + saving(state, way, seconds)
    return spent(state, seen) + until_then


def to_stop(seen: Seen, leg: Leg) -> int:
    """What it costs to let what works save and end, at what it costs now: a spot machine's price
    may have risen since its hard stop was reckoned."""
    way = leg.request.way
    seconds = DRAIN_S + SHUTDOWN_S + 2 * BEAT_S
    hour = price_now(seen, leg, way) + way.nodes * hourly(way) + way.save
    return -(-hour * seconds // 3600)


def up_s(state: RunState, seen: Seen, leg: Leg) -> int:
    """Since when its machines are paid for."""
    return max(_up_s(state, seen, state.machines[name]) for name in leg.machines)


def limit_s(state: RunState, seen: Seen, leg: Leg, most: int) -> int:
    """How long a leg's machines may be up in all, at what they cost now: what its hard stop would
    be, were it bought again."""
    way = leg.request.way
    own = {name: state.machines[name] for name in leg.machines}
    others = state.copy()
    others.machines = {name: each for name, each in state.machines.items() if name not in own}
    left = most - exposed(others, seen) - sum(_so_far(state, seen, each) for each in own.values())
    hour = price_now(seen, leg, way) + way.nodes * hourly(way) + way.save
    if not hour:
        return max(up_s(state, seen, leg), WEEK_S)  # one's own machines: no budget ends them
    more_s = (left - saving(state, way, 0)) * 3600 // hour
    if way.facts.ends == "never":
        more_s -= UNATTENDED_S
    return up_s(state, seen, leg) + max(int(_SLOWEST * more_s) - 2 * way.facts.billing_lead_s, 1)


def price_now(seen: Seen, leg: Leg, way: Way) -> int:
    """Micro-dollars an hour for all machines of a leg, as their provider tells, else as bought."""
    total = 0
    for name in leg.machines:
        told = seen.listed[name][1].prices if name in seen.listed else ()
        beside = way.disk_price + way.address_price
        total += told[-1][1] + beside if told else way.price
    return total or way.price_all


def hard_stop_s(
    way: Way, left: int | None, left_s: float | None, needed_s: float, aside: int = 0
) -> int:
    """How long machines may be up: twice what is expected, and never for more than is left, of
    money and of time. That of time is when they begin to save. `aside`: of the money, what is spent
    however long they are."""
    most = min(2 * needed_s + 3600, WEEK_S)
    if left_s is not None:
        most = min(most, left_s + DRAIN_S + SHUTDOWN_S + BEAT_S)
    if left is not None and (way.price or way.save):
        paid_s = (left - aside) * 3600 // _hour(way)
        if way.facts.ends == "never":
            paid_s -= UNATTENDED_S  # it stops in time, and is paid for until a controller ends it
        most = min(most, _SLOWEST * paid_s - 2 * way.facts.billing_lead_s)
    return max(int(most), 1)


def _so_far(state: RunState, seen: Seen, rented: Rented) -> int:
    way = state.requests[rented.machine.leg].way
    name = rented.machine.machine_id
    return charged(way, rented.machine, _up_s(state, seen, rented)) + paid(state, seen, name)


def _up_s(state: RunState, seen: Seen, rented: Rented) -> int:
    machine = rented.machine
    end = machine.ended_s
    if not rented.ended or end is None:
        provider = state.requests[machine.leg].way.provider
        end = max(seen.clocks.get(provider, machine.launched_s), machine.launched_s)
    return end - machine.launched_s
