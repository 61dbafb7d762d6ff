"""What to do next for one run. Pure: the same values, the same answer.

Either things to record, which change the state and so the next answer, or, once there is nothing to
record, things to do. What is to be done follows from the state alone, so whoever was cut off
between recording and doing, or between two doings, is simply asked again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from tradewind.lifecycle import forecast
from tradewind.lifecycle.fold import NOT_NEEDED
from tradewind.lifecycle.leg import during
from tradewind.lifecycle.money import living_on_s
from tradewind.lifecycle.next import after
from tradewind.lifecycle.queue import while_queued
from tradewind.lifecycle.relief import relief
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, Rented, RunState
from tradewind.lifecycle.usage import used
from tradewind.lifecycle.warn import warnings
from tradewind.model.action import Action, Forget, Launch, Lend, Record, Terminate, Withdraw
from tradewind.model.event import (
    Abandoned,
    Closed,
    Ended,
    Event,
    Forecast,
    LaunchRefused,
    LegOver,
    LegQueued,
    MachineBack,
    MachineEnded,
    MachinesFound,
)
from tradewind.model.run import Machine, Queued, Request, Way
from tradewind.model.timing import BEAT_S, GRACE_S, LOST_S
from tradewind.policy import plain
from tradewind.policy.base import Policy

_LEAST_NEWS_S = 600
LENT_S = 2 * BEAT_S
"""After so long a machine that was lent a pass has told of it."""


def decide(
    state: RunState,
    seen: Seen,
    offers: Sequence[Way],
    now: float,
    policy: Policy = plain.choose,
) -> list[Action]:
    """`offers` are the ways that can be bought now."""
    records = _told(state, seen)
    if not records and state.spec:
        ways = tuple(offers)
        if state.queued:
            records = while_queued(state, state.spec, state.queued, seen, now, policy)
        if records:
            pass
        elif state.leg:
            records = during(state, state.spec, state.leg, seen, ways, now, policy)
            records = records or relief(state, state.spec, state.leg, seen, ways, now, policy)
        elif state.phase == "waiting":
            records = after(state, state.spec, seen, ways, now, policy)
        elif state.phase == "ended":
            records = _closing(state, seen)
        if not records and state.phase in ("waiting", "active"):
            records = warnings(state, state.spec, seen)
    elif not records and not state.phase and seen.marked and seen.known_s(0) >= GRACE_S:
        # Not just forgotten: were it still submitted after all, nobody would look at it.
        why = f"it was begun and not submitted for {GRACE_S} s"
        records = [Abandoned(run_id=seen.run_id, reason=why)]
    if not records:
        return _doings(state, seen)
    if isinstance(records[-1], Ended) and state.spec:
        # A run that ends past its deadline says so, even if nobody was there to foresee it.
        late = forecast.too_late(state, state.spec, seen, now)
        records = [late, *records] if late and not _has(records, Forecast) else records
    over = {event.leg for event in records if isinstance(event, LegOver)}
    if isinstance(records[-1], Ended) and state.queued and state.queued.number not in over:
        dropped = LegOver(leg=state.queued.number, cause=NOT_NEEDED, reason=records[-1].reason)
        records = [*records[:-1], dropped, records[-1]]
    records = [*used(state, {n: b for n, (b, _) in seen.beats.items() if b.leg in over}), *records]
    return [Record(event) for event in records]


def _has(records: list[Event], kind: type) -> bool:
    return any(isinstance(event, kind) for event in records)


def _told(state: RunState, seen: Seen) -> list[Event]:
    """What providers say of our machines that the journal does not know yet."""
    found: list[Machine] = []
    dearer: list[Machine] = []
    records: list[Event] = []
    for name, (provider, machine) in seen.listed.items():
        rented = state.machines.get(name)
        if rented is None:
            if machine.leg not in state.requests:
                continue  # of no run or leg that we know: for the sweeper
            found.append(machine)
        elif machine.ended_s is None:
            if not rented.ended and machine.prices and machine.prices != rented.machine.prices:
                dearer.append(replace(rented.machine, prices=machine.prices))
            if rented.ended and _is_later(state, rented, seen.clocks.get(provider)):
                records.append(
                    MachineBack(machine_id=name, reason="its provider lists it as alive again")
                )
        else:
            # Its times are the provider's to tell; whose it is, the journal's.
            told = replace(
                rented.machine,
                launched_s=machine.launched_s,
                ended_s=machine.ended_s,
                prices=machine.prices or rented.machine.prices,
                ended_by=machine.ended_by or rented.machine.ended_by,
                ended_why=machine.ended_why or rented.machine.ended_why,
            )
            if not rented.ended or told != rented.machine:
                records.append(MachineEnded(machine=told, reason="its provider says so"))
    records += _forgotten(state, seen) + _in_queues(state, seen)
    if dearer:
        why = "its provider tells what it costs now"
        records.insert(0, MachinesFound(machines=tuple(dearer), reason=why))
    if found:
        records.insert(
            0, MachinesFound(machines=tuple(found), reason="they are listed under our tag")
        )
    return records


def _is_later(state: RunState, rented: Rented, clock: int | None) -> bool:
    """Whether a listing of then can tell that a machine lives which is said to have ended. One from
    before it ended, or from when listings may still show it as it was, cannot: whoever held it too
    long would wake up a run that others have closed meanwhile."""
    ended_s = rented.machine.ended_s
    lag_s = state.requests[rented.machine.leg].way.facts.listing_lag_s
    return clock is None or ended_s is None or clock > ended_s + lag_s


def _in_queues(state: RunState, seen: Seen) -> list[Event]:
    """What providers say of purchases that wait."""
    records: list[Event] = []
    for leg in state.legs:
        waiting = seen.queued.get(leg.request.launch_id)
        if waiting is None or leg.state not in ("requested", "queued"):
            continue
        provider, queued = waiting
        if queued.refused:
            records.append(LaunchRefused(leg=leg.number, kind=queued.refused, reason=queued.reason))
        elif (
            leg.state == "requested"
            or _moved(leg, queued, seen.clocks.get(provider))
            or _says_why(leg, queued, seen)
        ):
            why = queued.reason or "its provider has no machines for it yet"
            records.append(LegQueued(leg=leg.number, reason=why, starts_s=queued.starts_s))
    return records


def _says_why(leg: Leg, queued: Queued, seen: Seen) -> bool:
    """Whether it waits for another reason than was told, and that was not just now. Schedulers
    count nodes in their reasons, and those come and go: numbers are no news."""
    if not queued.reason or _wordy(queued.reason) == _wordy(leg.waits_for):
        return False
    return not leg.waits_for or seen.known_s(leg.told_at) >= _LEAST_NEWS_S


def _wordy(reason: str) -> str:
    return re.sub(r"\d+", "", reason)


def _moved(leg: Leg, queued: Queued, clock: int | None) -> bool:
    """Whether the time that is said now differs by more than a tenth of the wait."""
    if queued.starts_s is None or leg.starts_s is None or clock is None:
        return queued.starts_s != leg.starts_s and clock is not None
    wait_s = max(leg.starts_s - clock, _LEAST_NEWS_S)
    return abs(queued.starts_s - leg.starts_s) > wait_s / 10


def _forgotten(state: RunState, seen: Seen) -> list[Event]:
    """Machines that are not listed any more and were never listed as ended: providers forget."""
    records: list[Event] = []
    for name, rented in state.machines.items():
        if rented.ended or name in seen.listed:
            continue
        if name in seen.beats and seen.beats[name][1] < LOST_S:
            continue  # it lives, whatever its provider says or does not say
        way = state.requests[rented.machine.leg].way
        clock = seen.clocks.get(way.provider)
        if clock is None or seen.unlisted_s(name) < way.facts.listing_lag_s + GRACE_S:
            continue
        # The latest that it can have been: when it was first missed, or by its own hard stop.
        request = state.requests[rented.machine.leg]
        launched_s = rented.machine.launched_s
        ended_s = clock - int(seen.unlisted_s(name))
        if way.facts.ends != "never":
            ended_s = min(ended_s, launched_s + request.hard_stop_s + 2 * way.facts.billing_lead_s)
        ended = replace(rented.machine, ended_s=max(ended_s, launched_s))
        why = f"its provider has not listed it for {seen.unlisted_s(name):.0f} s"
        records.append(MachineEnded(machine=ended, reason=why, estimated=True))
    return records


def _closing(state: RunState, seen: Seen) -> list[Event]:
    """By a listing that shows whatever was bought before the end."""
    if seen.queued:
        return []  # to be withdrawn
    for request in state.requests.values():
        way = request.way
        if way.provider not in seen.clocks:
            return []
        lag_s = 0 if _is_all_known(state, request) else way.facts.listing_lag_s
        if seen.known_s(state.number) < max(lag_s, 1):
            return []  # a purchase of unknown outcome may still come to light
    if any(not rented.ended for rented in state.machines.values()):
        return []
    return [Closed(reason="every machine has ended and is accounted for")]


def _is_all_known(state: RunState, request: Request) -> bool:
    """Whether no listing can show more of this purchase: every machine of it is in the journal, and
    its token buys no others, however often and by whomever it is used again. One that was refused
    is not: another controller's try with the same token may have succeeded a moment later, and that
    controller may have died before it could tell."""
    bought = sum(each.machine.launch_id == request.launch_id for each in state.machines.values())
    return request.way.facts.tokens and bought == request.way.nodes


def _doings(state: RunState, seen: Seen) -> list[Action]:
    doings: list[Action] = []
    for leg in state.legs:
        if leg.state == "requested" and may_launch(leg, seen):
            why = "the purchase is recorded, and nothing carries its id"
            doings.append(Launch(leg.request, why))
    claimed = state.claimed
    ending: dict[str, list[str]] = {}
    for name, rented in state.machines.items():
        way = state.requests[rented.machine.leg].way
        # Listings err, and one that lives on ends itself; where it cannot, it is ended again.
        doubtful = way.facts.ends == "never" and seen.known_s(rented.at) < living_on_s(way.facts)
        if name not in claimed and (not rented.ended or doubtful):
            ending.setdefault(way.provider, []).append(name)
    for provider, names in ending.items():
        doings.append(Terminate(provider, tuple(names), "no live leg claims them"))
    strays: dict[str, list[str]] = {}
    for name, (provider, machine) in seen.listed.items():
        if name in state.machines or machine.ended_s is not None:
            continue
        if seen.unclaimed_s(name) >= GRACE_S:
            strays.setdefault(provider, []).append(name)
    for provider, names in strays.items():
        why = f"they carry our tag, and no journal has asked for them in {GRACE_S} s"
        doings.append(Terminate(provider, tuple(names), why))
    doings += _withdrawn(state, seen)
    doings += _lending(state, seen)
    if seen.marked and state.phase == "closed":
        doings.append(Forget("it has ended and is accounted for"))
    return doings


def _withdrawn(state: RunState, seen: Seen) -> list[Action]:
    wanted = {leg.request.launch_id for leg in state.legs}
    known = {request.launch_id for request in state.requests.values()}
    ending: dict[str, list[str]] = {}
    for launch_id, (provider, _) in seen.queued.items():
        if launch_id in wanted:
            continue
        if launch_id in known or seen.unclaimed_s(launch_id) >= GRACE_S:
            ending.setdefault(provider, []).append(launch_id)
    return [
        Withdraw(provider, tuple(launch_ids), "no live leg claims them")
        for provider, launch_ids in ending.items()
    ]


def _lending(state: RunState, seen: Seen) -> list[Action]:
    """Another pass for machines that are at work and whose own is half over. What was lent a moment
    ago, its machine has not told of yet.

    What a launch in a queue begins with was lent when it was asked for, and would be over when its
    machines come: it is made anew for as long as they may begin with it. A controller that has just
    begun does not know when that was, and makes one at once."""
    doings: list[Action] = []
    for leg in state.legs:
        way, launch_id = leg.request.way, leg.request.launch_id
        begins = way.facts.queues and leg.state in ("queued", "booting")
        if way.pass_s and begins and seen.lent_s(launch_id) >= way.pass_s / 2:
            why = "its machines are to begin with one that lasts"
            doings.append(Lend("", launch_id, None, way.pass_s, why))
        for name in leg.machines if way.pass_s else ():
            beat = seen.beats[name][0] if name in seen.beats else None
            if beat is None or beat.doing not in ("setup", "working"):
                continue
            left_s = beat.pass_left_s
            if left_s is None or left_s >= way.pass_s / 2 or seen.lent_s(name) < LENT_S:
                continue
            rank = state.machines[name].machine.rank
            why = f"its pass to the store ends in {left_s:.0f} s"
            doings.append(Lend(name, launch_id, rank, way.pass_s, why))
    return doings


def may_launch(leg: Leg, seen: Seen) -> bool:
    """With an idempotency token, anyone and at any time. Without one, only whoever has just
    recorded the purchase: all others cannot know whether it was made, and listings come late."""
    if leg.request.way.facts.tokens:
        return True
    return leg.requested_at in seen.wrote and not leg.unknown
