"""A service's rented fronts: how many there are, and what they are told. Pure.

A front is a run of one machine, ordered and cancelled as a replica is. It is told what to do by
orders (model/frontorder.py), and says in its heartbeat which of them it has carried out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tradewind.model.circle import Circle
from tradewind.model.frontorder import FrontOrder
from tradewind.model.run import Spec
from tradewind.model.service import (
    FrontGone,
    FrontLeaves,
    FrontOrdered,
    FrontReady,
    ServiceEvent,
    ServiceSpec,
)
from tradewind.model.serving import FrontTold
from tradewind.services.action import Action, Cancel, EndFront, Submit, TendFront
from tradewind.services.seen import FrontSeen, Seen, Told
from tradewind.services.state import FrontMachine, ServiceState

TRIES = 3
MOST_FAILURES = 2
"""As of replicas: none was ever ready, and so many have failed by themselves."""
OPEN_ENDED = 3.2e9
"""Seconds of work: a hundred years."""
_LATE_S = 60.0
"""A front that should have finished and does not say so is given up so long after."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 15.0, 300.0
_NOTHING = Told()


def end_of(told: Told) -> dict[str, Any]:
    """Of a run that is closed, a replica's or a front's: how it ended, and who is to blame."""
    return {
        "outcome": told.outcome,
        "failed": told.blame,
        "reason": told.reason or told.outcome,
        "tail": told.tail if told.blame else "",
    }


def news(state: ServiceState, seen: Seen) -> list[ServiceEvent]:
    """What runs of fronts say that the journal does not know yet."""
    records: list[ServiceEvent] = []
    for front in state.fronts.values():
        told = seen.fronts.get(front.run_id, _NOTHING)
        serving = told.serving
        if told.phase == "closed":
            records.append(FrontGone(run_id=front.run_id, **end_of(told)))
        elif not front.leaving_at and (told.lost or told.phase == "ended"):
            why = told.lost or told.reason or "its run has ended"
            records.append(FrontLeaves(run_id=front.run_id, reason=why))
        elif serving is None or serving.front is None or front.ready_at or front.leaving_at:
            continue
        elif serving.state == "ready":
            records.append(
                FrontReady(
                    run_id=front.run_id,
                    host=serving.host,
                    public=serving.public,
                    reason="it listens",
                )
            )
    return records


def fails(state: ServiceState) -> str:
    """Why there will be no front; "": there may be."""
    if state.front_ever or state.front_failures < MOST_FAILURES:
        return ""
    return f"{state.front_failures} fronts in a row failed, and none was ever ready"


def orders(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[ServiceEvent]:
    missing = spec.fronts - len(state.staying_fronts)
    if missing <= 0 or seen.known_s(state.front_failed_at) < _wait_s(state.front_failures):
        return []
    first = max(state.every_front.values(), default=0) + 1
    return [
        FrontOrdered(
            number=number,
            run_id=f"{state.service_id}-f{number}",
            reason=f"{len(state.staying_fronts)} of {spec.fronts} are there or on their way",
        )
        for number in range(first, first + missing)
    ]


def _wait_s(failures: int) -> float:
    if not failures:
        return 0.0
    return min(_FIRST_WAIT_S * 2.0 ** min(failures - 1, 10), _LONGEST_WAIT_S)


def endings(state: ServiceState, spec: ServiceSpec, seen: Seen) -> list[ServiceEvent]:
    """Of a service that ends: those that have given their last answer, and those that are late."""
    late = seen.known_s(state.stop_at) >= spec.engine.drain_s + _LATE_S
    records: list[ServiceEvent] = []
    for front in state.staying_fronts:
        told = seen.fronts.get(front.run_id, _NOTHING)
        says = told.serving.front if told.serving else None
        if not front.ready_at or late or (says is not None and says.finished):
            why = "it did not finish in time" if late else "its last answer is given"
            records.append(FrontLeaves(run_id=front.run_id, reason=why))
    return records


def doings(
    state: ServiceState, spec: ServiceSpec, seen: Seen, told: TendFront | EndFront | None
) -> list[Action]:
    """`told`: what fronts are to be told, as one on this computer would be."""
    found: list[Action] = [told] if told is not None and state.staying_fronts else []
    for front in state.fronts.values():
        run = seen.fronts.get(front.run_id, _NOTHING)
        if not run.phase:  # one that left before that is submitted, too, so that it has an end
            found.append(Submit(front.run_id, run_of(state, spec, front)))
        elif front.leaving_at and run.phase in ("waiting", "active"):
            found.append(Cancel(front.run_id, "it is not wanted any more"))
    return found


def run_of(state: ServiceState, spec: ServiceSpec, front: FrontMachine) -> Spec:
    return Spec(
        name=spec.name,
        work=OPEN_ENDED,
        steps=False,
        ways=spec.front_ways,
        tries=TRIES,
        job=spec.front_job,
        project=spec.project,
        user=spec.user,
        tags={**spec.tags, "service": state.service_id, "front": front.name},
        circle=circle_of(state.service_id, spec),
    )


def circle_of(service_id: str, spec: ServiceSpec) -> Circle | None:
    """Of all its machines; None: they are on this computer."""
    if not spec.rented:
        return None
    return Circle(
        name=service_id,
        port=spec.engine.port,
        open_port=spec.front.port,
        ranges=spec.front.ranges,
    )


def order_of(
    step: TendFront | EndFront, spec: ServiceSpec, before: FrontOrder | None
) -> FrontOrder:
    """What they are to be told; its number is not theirs yet. One that ends is told what it was,
    and that it ends."""
    if isinstance(step, TendFront):
        return FrontOrder(
            number=0,
            front=step.front,
            health=step.health,
            backends=step.backends,
            in_time_s=step.in_time_s,
            fronts=spec.fronts,
        )
    if before is not None:
        return replace(before, number=0, ending=True)
    return FrontOrder(
        number=0,
        front=spec.front,
        health=spec.engine.health,
        backends=(),
        in_time_s=spec.slack_s,
        fronts=spec.fronts,
        ending=True,
    )


def together(
    state: ServiceState, told: Mapping[str, Told], orders: Mapping[str, FrontOrder]
) -> FrontSeen | None:
    """What all fronts say, as if they were one; None: none of them says anything. `orders`: the
    newest of each."""
    ready = [each for each in state.staying_fronts if each.ready_at]
    said: dict[str, FrontTold] = {}
    for front in ready:
        serving = told.get(front.run_id, _NOTHING).serving
        if serving is not None and serving.front is not None:
            said[front.run_id] = serving.front
    if not said:
        return None
    every = list(said.values())
    names = {each.name for each in state.replicas.values()}
    busy: dict[str, int] = {}
    for one in every:
        for name, count in one.busy.items():
            busy[name] = busy.get(name, 0) + count
    return FrontSeen(
        current=sum(one.current for one in every),
        queued=sum(one.queued for one in every),
        held=sum(one.held for one in every),
        total=sum(one.total for one in every),
        denied=sum(one.denied for one in every),
        busy=busy,
        pending=tuple(
            sorted(
                name
                for name in names
                if not all(
                    _without(name, said.get(each.run_id), orders.get(each.run_id)) for each in ready
                )
            )
        ),
        up=tuple(sorted({name for one in every for name in one.up})),
    )


def _without(name: str, told: FrontTold | None, order: FrontOrder | None) -> bool:
    """Whether a front has said that it sends this replica nothing new."""
    if told is None or order is None or told.order != order.number:
        return False
    return order.without(name)
