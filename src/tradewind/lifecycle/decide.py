"""What to do next for one run. Pure: the same values, the same answer.

Either things to record, which change the state and so the next answer, or, once there is nothing to
record, things to do. What is to be done follows from the state alone, so whoever was cut off
between recording and doing, or between two doings, is simply asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tradewind.lifecycle import forecast
from tradewind.lifecycle.leg import during
from tradewind.lifecycle.next import after
from tradewind.lifecycle.relief import relief
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.lifecycle.usage import used
from tradewind.lifecycle.warn import warnings
from tradewind.model.action import Action, Forget, Launch, Record, Terminate
from tradewind.model.event import (
    Abandoned,
    Closed,
    Ended,
    Event,
    Forecast,
    LegOver,
    MachineBack,
    MachineEnded,
    MachinesFound,
)
from tradewind.model.run import Machine, Request, Way
from tradewind.model.timing import GRACE_S, LOST_S
from tradewind.policy import plain
from tradewind.policy.base import Policy


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
        if state.leg:
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
    records = [*used(state, {n: b for n, (b, _) in seen.beats.items() if b.leg in over}), *records]
    return [Record(event) for event in records]


def _has(records: list[Event], kind: type) -> bool:
    return any(isinstance(event, kind) for event in records)


def _told(state: RunState, seen: Seen) -> list[Event]:
    """What providers say of our machines that the journal does not know yet."""
    found: list[Machine] = []
    records: list[Event] = []
    for name, (_, machine) in seen.listed.items():
        rented = state.machines.get(name)
        if rented is None:
            if machine.leg not in state.requests:
                continue  # of no run or leg that we know: for the sweeper
            found.append(machine)
        elif machine.ended_s is None:
            if rented.ended:
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
            )
            if not rented.ended or told != rented.machine:
                records.append(MachineEnded(machine=told, reason="its provider says so"))
    records += _forgotten(state, seen)
    if found:
        records.insert(
            0, MachinesFound(machines=tuple(found), reason="they are listed under our tag")
        )
    return records


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
        stopped_s = launched_s + request.hard_stop_s + 2 * way.facts.billing_lead_s
        missed_s = clock - int(seen.unlisted_s(name))
        ended = replace(rented.machine, ended_s=max(min(missed_s, stopped_s), launched_s))
        why = f"its provider has not listed it for {seen.unlisted_s(name):.0f} s"
        records.append(MachineEnded(machine=ended, reason=why, estimated=True))
    return records


def _closing(state: RunState, seen: Seen) -> list[Event]:
    """By a listing that shows whatever was bought before the end."""
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
        if not rented.ended and name not in claimed:
            provider = state.requests[rented.machine.leg].way.provider
            ending.setdefault(provider, []).append(name)
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
    if seen.marked and state.phase == "closed":
        doings.append(Forget("it has ended and is accounted for"))
    return doings


def may_launch(leg: Leg, seen: Seen) -> bool:
    """With an idempotency token, anyone and at any time. Without one, only whoever has just
    recorded the purchase: all others cannot know whether it was made, and listings come late."""
    if leg.request.way.facts.tokens:
        return True
    return leg.requested_at in seen.wrote and not leg.unknown
