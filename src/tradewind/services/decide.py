"""What to do next for one service. Pure: the same values, the same answer.

As for a run (lifecycle/decide.py): things to record, or, once there is nothing to record, things to
do, which follow from the state alone. So whoever was cut off between the two is simply repeated.

A replica is a run of one leg. It is ordered by a commit that gives its run an id which no other
commit can give, submitted under it, and cancelled when it is not wanted any more: so machines are
bought, ended and paid for by what does that for runs. What is lost is not waited for: another is
ordered as soon as its notice is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tradewind.model.run import Spec, Way
from tradewind.model.service import (
    ReplicaGone,
    ReplicaLeaves,
    ReplicaOrdered,
    ReplicaReady,
    ServiceClosed,
    ServiceEnded,
    ServiceEvent,
    ServiceSpec,
    SpotGone,
    place_of,
)
from tradewind.services import counting, fronting
from tradewind.services.action import (
    Action,
    Backend,
    Cancel,
    EndFront,
    Forget,
    Record,
    Submit,
    TendFront,
)
from tradewind.services.seen import Seen, Told
from tradewind.services.spares import risky, spares
from tradewind.services.state import Replica, ServiceState

MOST_FAILURES = 2
"""So many engines in a row that fail, in a service none of whose replicas was ever ready, are its
own doing."""
TRIES = 3
"""How often an engine may fail by itself on one machine, once one has been ready."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 15.0, 300.0
SPOT_AGAIN_S = 1800.0
"""Spot machines that could not be bought in a place are tried there again after this."""
_NOTHING = Told()


def decide(state: ServiceState, seen: Seen, offers: Sequence[Way], now: float) -> list[Action]:
    """`offers` are the ways that can be bought now."""
    spec = state.spec
    if spec is None:
        return []
    records = [*_told(state, seen), *fronting.news(state, seen)]
    if not records and state.phase == "up":
        records = (
            _fails(state)
            or _without_spot(state, spec, seen)
            or counting.wanted(state, spec, seen, now)
            or (fronting.orders(state, spec, seen) if offers else [])
            or _orders(state, spec, seen, offers)
            or _too_many(state, spec, seen)
        )
    elif not records and state.phase == "stopping":
        records = _stopping(state) or fronting.endings(state, spec, seen)
    elif not records and state.phase == "ended":
        records = fronting.endings(state, spec, seen) or _closing(state, spec, seen)
    if records:
        return [Record(event) for event in records]
    return _doings(state, spec, seen)


def _told(state: ServiceState, seen: Seen) -> list[ServiceEvent]:
    """What runs of replicas say that the journal does not know yet."""
    records: list[ServiceEvent] = []
    for replica in state.replicas.values():
        told = seen.replicas.get(replica.run_id, _NOTHING)
        if told.phase == "closed":
            records.append(ReplicaGone(run_id=replica.run_id, **fronting.end_of(told)))
        elif not replica.leaving_at and (told.lost or told.phase == "ended"):
            why = told.lost or told.reason or "its run has ended"
            records.append(ReplicaLeaves(run_id=replica.run_id, lost=True, reason=why))
        elif replica.leaving_at and told.lost and not replica.lost:
            # It was to answer what it had: now there is no time for that.
            records.append(ReplicaLeaves(run_id=replica.run_id, lost=True, reason=told.lost))
        elif not replica.ready_at and not replica.leaving_at and _is_ready(told):
            records.append(_ready(replica, told, seen))
    return records


def _is_ready(told: Told) -> bool:
    return told.serving is not None and told.serving.state == "ready" and bool(told.serving.port)


def _ready(replica: Replica, told: Told, seen: Seen) -> ReplicaReady:
    serving = told.serving
    assert serving is not None
    all_s = seen.known_s(replica.at)
    machine_s = max(all_s - serving.up_s, 0.0)
    return ReplicaReady(
        run_id=replica.run_id,
        machine_s=round(machine_s, 1),
        answered_s=serving.answered_s,
        warm_s=serving.warm_s,
        reason=f"its health check passed {serving.answered_s:.1f} s after its engine was started",
    )


def _fails(state: ServiceState) -> list[ServiceEvent]:
    why = fronting.fails(state)
    if not why and (state.ever_ready or state.failures < MOST_FAILURES):
        return []
    why = why or f"{state.failures} engines in a row failed, and none was ever ready"
    return [*_all_leave(state, why), ServiceEnded(outcome="failed", reason=why)]


def _without_spot(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[ServiceEvent]:
    """What waits for a spot machine that is not to be had gives way to one in another place, or on
    demand."""
    gone: dict[str, str] = {}
    leaving: list[ServiceEvent] = []
    for replica in state.staying:
        told = seen.replicas.get(replica.run_id, _NOTHING)
        if replica.market == "spot" and told.phase == "waiting" and told.refused:
            why = f"no spot machine could be bought: {told.refused}"
            gone.setdefault(replica.place, why)
            leaving.append(ReplicaLeaves(run_id=replica.run_id, lost=True, reason=why))
    elsewhere = [each for each in _places(state, spec, seen) if each not in gone]
    if not elsewhere and all(way.market == "spot" for way in spec.ways):
        return []  # there is nothing else: its run goes on asking
    return [*(SpotGone(reason=why, place=place) for place, why in gone.items()), *leaving]


def target(state: ServiceState, spec: ServiceSpec, seen: Seen) -> int:
    """How many there should be, what is spare among them."""
    if not state.wanted:
        return 0
    spot = max(state.wanted - spec.on_demand, 0) if _has_spot(state, spec, seen) else 0
    more = spares(state, spec, seen, _places(state, spec, seen), spot) if spot else 0
    return min(state.wanted + more, max(state.most, state.wanted))


def _has_spot(state: ServiceState, spec: ServiceSpec, seen: Seen) -> bool:
    return bool(_places(state, spec, seen)) or all(way.market == "spot" for way in spec.ways)


def _places(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[str]:
    """Where there may be spot machines, the cheapest first: nobody was refused there lately."""
    if _lately(state.spot_gone.get(""), seen):
        return []
    ways = sorted((way for way in spec.ways if way.market == "spot"), key=lambda way: way.price)
    places = dict.fromkeys(place_of(way) for way in ways)
    found = [each for each in places if not _lately(state.spot_gone.get(each), seen)]
    if len(found) == 1 < len(places) and risky(state, spec, seen, 1):
        return []  # all of it would go at once
    return found


def _lately(commit: int | None, seen: Seen) -> bool:
    return bool(commit) and seen.known_s(commit or 0) < SPOT_AGAIN_S


def _too_dear(state: ServiceState, spec: ServiceSpec, seen: Seen) -> int:
    """How many are on demand because there was no spot machine when they were bought."""
    if not _has_spot(state, spec, seen):
        return 0
    return max(sum(each.market != "spot" for each in state.staying) - spec.on_demand, 0)


def _orders(
    state: ServiceState, spec: ServiceSpec, seen: Seen, offers: Sequence[Way]
) -> list[ServiceEvent]:
    staying = state.staying
    wanted = target(state, spec, seen)
    # What is on demand for want of spot is replaced once there may be spot again.
    wanted = min(wanted + _too_dear(state, spec, seen), max(state.most, wanted))
    missing = wanted - len(staying)
    if missing <= 0 or not offers or seen.known_s(state.failed_at) < _wait_s(state.failures):
        return []
    markets = {way.market for way in offers}
    records: list[ServiceEvent] = []
    sure = sum(each.market != "spot" for each in staying)
    dear = _too_dear(state, spec, seen)
    there = Counter(each.place for each in staying if each.market == "spot")
    places = _places(state, spec, seen)
    for n in range(missing):
        spot = "spot" in markets and _has_spot(state, spec, seen) and sure >= spec.on_demand
        market = "spot" if spot else next((m for m in sorted(markets) if m != "spot"), "spot")
        sure += market != "spot"
        place = ""
        if market == "spot" and len(places) > 1:
            # Over all places, so that one which is taken takes as few as can be with it.
            place = min(
                places, key=lambda each: (_lately(state.spot_lost.get(each), seen), there[each])
            )
            there[place] += 1
        number = max(state.every.values(), default=0) + 1 + n
        have = f"{len(staying) + n} of {wanted} are there or on their way"
        if dear and len(staying) + n >= wanted - dear:
            have = f"there may be spot machines again, and {dear} replicas are on demand"
        records.append(
            ReplicaOrdered(
                number=number,
                run_id=f"{state.service_id}-r{number}",
                market=market,
                tries=TRIES if state.ever_ready else 1,
                reason=have,
                place=place,
            )
        )
    return records


def _wait_s(failures: int) -> float:
    if not failures:
        return 0.0
    return min(_FIRST_WAIT_S * 2.0 ** min(failures - 1, 10), _LONGEST_WAIT_S)


def _too_many(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[ServiceEvent]:
    """The least useful first: what is not ready; on demand where spot would do; the newest. One
    that is ready goes only while enough are ready without it."""
    staying = state.staying
    coming = sum(each.market == "spot" and not _answers(each, seen) for each in staying)
    too_dear = _too_dear(state, spec, seen)
    enough = target(state, spec, seen) + min(too_dear, coming)
    surplus = len(staying) - enough
    if surplus <= 0:
        return []
    ready = [each for each in staying if _answers(each, seen)]
    cheap = _has_spot(state, spec, seen)
    sure = sum(each.market != "spot" for each in staying)

    def use(replica: Replica) -> tuple[int, bool, int]:
        dear = cheap and replica.market != "spot" and sure > spec.on_demand
        # What comes up in the place of one on demand is what is wanted, not what is too much.
        replaces = too_dear and replica.market == "spot" and not _answers(replica, seen)
        return (2 if replaces else int(_answers(replica, seen)), not dear, -replica.number)

    left, records = len(ready), list[ServiceEvent]()
    for replica in sorted(staying, key=use)[:surplus]:
        if _answers(replica, seen):
            if left <= min(state.wanted, len(ready)) and left - 1 < state.wanted:
                continue
            left -= 1
        why = f"{len(staying)} replicas, and {enough} are wanted"
        records.append(ReplicaLeaves(run_id=replica.run_id, lost=False, reason=why))
    return records


def _answers(replica: Replica, seen: Seen) -> bool:
    told = seen.replicas.get(replica.run_id, _NOTHING)
    return bool(replica.ready_at) and _is_ready(told)


def _all_leave(state: ServiceState, why: str) -> list[ServiceEvent]:
    return [ReplicaLeaves(run_id=each.run_id, lost=False, reason=why) for each in state.staying]


def _stopping(state: ServiceState) -> list[ServiceEvent]:
    leaving = _all_leave(state, state.reason)
    if leaving or state.replicas:
        return leaving
    return [ServiceEnded(outcome="stopped", reason=state.reason)]


def _closing(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[ServiceEvent]:
    if state.replicas or state.fronts or not _front_is_gone(state, spec, seen):
        return []
    return [ServiceClosed(reason="every replica is accounted for, and the front is gone")]


def _front_is_gone(state: ServiceState, spec: ServiceSpec, seen: Seen) -> bool:
    """Nothing comes to its replicas any more, and nothing is on its way."""
    if spec.rented:
        return not state.staying_fronts
    return seen.has_front and seen.front is None


def _doings(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[Action]:
    doings: list[Action] = []
    told_front: TendFront | EndFront | None = None
    if seen.has_front and state.phase == "up":
        told_front = _front(state, spec, seen)
    elif state.phase in ("stopping", "ended") and (seen.front is not None or spec.rented):
        told_front = EndFront(state.service_id, float(spec.engine.drain_s))
    if spec.rented:
        doings += fronting.doings(state, spec, seen, told_front) if seen.has_front else []
    elif told_front is not None:
        doings.append(told_front)
    for replica in state.replicas.values():
        told = seen.replicas.get(replica.run_id, _NOTHING)
        if not replica.leaving_at:
            if not told.phase and seen.has_front:
                doings.append(Submit(replica.run_id, run_of(state, spec, replica)))
        elif told.phase in ("waiting", "active") and _may_go(state, spec, replica, seen):
            doings.append(Cancel(replica.run_id, "it is not wanted any more"))
        elif not told.phase and seen.has_front:
            # Asked for and left before it was submitted: it is, so that there is a run to close.
            doings.append(Submit(replica.run_id, run_of(state, spec, replica)))
    if state.phase == "closed":
        doings.append(Forget("it is closed"))
    return doings


def _may_go(state: ServiceState, spec: ServiceSpec, replica: Replica, seen: Seen) -> bool:
    """Whether nothing that it has begun is cut off."""
    if replica.lost or not replica.ready_at:
        return True
    if seen.known_s(replica.leaving_at) >= spec.engine.drain_s:
        return True
    if state.phase != "up":  # the front ends when the last answer is given
        return _front_is_gone(state, spec, seen)
    if seen.front is None or replica.name in seen.front.pending:
        return False
    told = seen.replicas.get(replica.run_id, _NOTHING)
    running = told.serving.running if told.serving else None
    return not seen.front.busy.get(replica.name, 0) and not running


def _front(state: ServiceState, spec: ServiceSpec, seen: Seen) -> TendFront:
    backends = []
    for replica in state.replicas.values():
        told = seen.replicas.get(replica.run_id, _NOTHING)
        serving = told.serving
        if serving is None or not serving.port or not replica.ready_at:
            continue
        draining = bool(replica.leaving_at) or serving.state == "draining" or bool(told.lost)
        if serving.state in ("ready", "draining"):
            backends.append(
                Backend(replica.name, serving.host, serving.port, spec.engine.at_once, draining)
            )
    health, told_of = spec.engine.health, tuple(backends)
    return TendFront(state.service_id, spec.front, health, told_of, spec.slack_s)


def run_of(state: ServiceState, spec: ServiceSpec, replica: Replica) -> Spec:
    """What its run is asked for: one machine of one market, for as long as it is wanted."""
    ways = tuple(
        way
        for way in spec.ways
        if way.market == replica.market and replica.place in ("", place_of(way))
    )
    return Spec(
        name=spec.name,
        work=fronting.OPEN_ENDED,
        steps=False,
        ways=ways or spec.ways,
        tries=replica.tries,
        job=spec.engine.job,
        project=spec.project,
        user=spec.user,
        tags={**spec.tags, "service": state.service_id, "replica": replica.name},
        circle=fronting.circle_of(state.service_id, spec),
    )
