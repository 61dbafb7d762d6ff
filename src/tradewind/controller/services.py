"""One pass over a service, as a generator of I/O steps; those of its replicas come first.

Read what is new in its journal, look at its front where that is ours, gather what the runs of its
replicas say (the controller has just felt them), decide, record, perform. What goes wrong ends the
pass; the next one starts from what is recorded. It is safe from any number of controllers, as a run
is: a replica's run is submitted under an id that one commit gave it, and exactly one submission of
an id succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace as replaced

from tradewind.base.steps import Steps
from tradewind.controller import farfronts
from tradewind.controller.controller import Controller
from tradewind.controller.loads import Loads
from tradewind.controller.memory import RunMemory
from tradewind.controller.sight import Sight
from tradewind.journal import journal
from tradewind.journal.services_book import BOOK
from tradewind.lifecycle import fold as fold_run
from tradewind.lifecycle.leg import HOPELESS, JOB_FAILED
from tradewind.lifecycle.state import RunState
from tradewind.model import bounds, places
from tradewind.model.event import Ended, LegOver
from tradewind.model.frontorder import FrontOrder
from tradewind.model.run import Heartbeat
from tradewind.model.service import (
    FORMAT,
    Scaled,
    ServiceCommit,
    ServiceEvent,
    ServiceSpec,
    ServiceStopAsked,
    ServiceSubmitted,
)
from tradewind.model.timing import GRACE_S
from tradewind.providers.base import DismissCircle
from tradewind.services import fronting
from tradewind.services.action import (
    Action,
    Cancel,
    EndFront,
    Forget,
    LookFront,
    Record,
    Submit,
    TendFront,
)
from tradewind.services.decide import decide
from tradewind.services.fold import fold
from tradewind.services.seen import FrontSeen, Seen, Told
from tradewind.services.state import ServiceState
from tradewind.store.steps import Create, Delete, GetMany, ListAfter, Replace

_ROUNDS = 20
_KEEP_S = 60.0
"""Between two writes of what the front has seen."""
_SILENT_S = 60.0
"""What an engine said this long ago is not believed any more."""


class Serves(Protocol):
    """What is ours: front and replicas of a service are where we may start and end them."""

    def mine(self, service_id: str, spec: ServiceSpec) -> bool: ...
    def own(self, service_id: str, run_id: str, job: dict[str, Any]) -> None:
        """Before the run of a replica, or of a front, is submitted."""


class ServiceMemory:
    __slots__ = (
        "kept", "loads", "orders", "restored", "runs", "service_id", "since", "state", "totals",
    )  # fmt: skip

    def __init__(self, service_id: str, watch: float) -> None:
        self.service_id = service_id
        self.state = ServiceState()
        self.since: dict[int, float] = {0: watch}
        self.loads = Loads()
        self.restored, self.kept = False, watch
        self.runs: dict[str, _Run] = {}
        self.orders: dict[str, FrontOrder] = {}
        """The newest of each rented front, by run id."""
        self.totals: dict[str, int] = {}
        """Requests that each has counted, as it said last."""


class _Run:
    """A replica's run, as far as its journal was read here."""

    __slots__ = ("reason", "state")

    def __init__(self) -> None:
        self.state = RunState()
        self.reason = ""


class Services:
    def __init__(self, controller: Controller, serves: Serves | None = None) -> None:
        self._controller, self._serves = controller, serves
        self.memory: dict[str, ServiceMemory] = {}

    # -- orders of users ---------------------------------------------------------------------------

    def submit(self, service_id: str, spec: ServiceSpec) -> Steps[bool]:
        """The mark first, as of a run. False: there is such a service."""
        yield Create(places.live_service(service_id), b"{}")
        commit = self._commit(1, [ServiceSubmitted(service_id=service_id, spec=spec)])
        return (yield from BOOK.append_steps(service_id, commit))

    def stop(self, service_id: str, reason: str) -> Steps[bool]:
        """False: it is not up."""
        return (yield from self._tell(service_id, lambda state: ServiceStopAsked(reason=reason)))

    def scale(self, service_id: str, fewest: int | None, most: int | None, why: str) -> Steps[bool]:
        def event(state: ServiceState) -> ServiceEvent:
            low = state.fewest if fewest is None else fewest
            high = max(state.most, low, 1) if most is None else most
            return Scaled(fewest=min(low, high), most=high, reason=why)

        return (yield from self._tell(service_id, event))

    def _tell(self, service_id: str, event: Callable[[ServiceState], ServiceEvent]) -> Steps[bool]:
        memory = ServiceMemory(service_id, 0.0)
        yield from self._read(memory)
        while memory.state.phase == "up":
            if (yield from self._record(memory, [event(memory.state)])):
                return True
        return False

    # -- a pass ------------------------------------------------------------------------------------

    def tick(self, service_id: str, sight: Sight) -> Steps[ServiceState]:
        memory = self.memory.get(service_id)
        if memory is None:
            memory = self.memory[service_id] = ServiceMemory(service_id, sight.at)
        yield from self._read(memory)
        spec = memory.state.spec
        if spec is None:
            if sight.at - memory.since[0] >= GRACE_S:  # whoever submitted it was cut off
                yield Delete(places.live_service(service_id))
            return memory.state
        mine = self._serves is not None and self._serves.mine(service_id, spec)
        fronts = {}
        for run_id in list(memory.state.fronts):
            fronts[run_id] = yield from self._told(memory, run_id)
        front: FrontSeen | None = None
        if mine:
            if spec.rented:
                front = yield from self._look_far(memory, fronts)
            else:
                front = yield LookFront(service_id, spec.front)
            yield from self._measure(memory, spec, front)
        told = {}
        for run_id in list(memory.state.replicas):
            told[run_id] = yield from self._told(memory, run_id)
        for _ in range(_ROUNDS):
            actions = self._decide(memory, sight, mine, front, told, fronts)
            events = [each.event for each in actions if isinstance(each, Record)]
            if not events:
                yield from self._perform(memory, actions, fronts)
                break
            yield from self._record(memory, events)
        there = memory.state.replicas.keys() | memory.state.fronts.keys()
        for run_id in [each for each in memory.runs if each not in there]:
            del memory.runs[run_id]
            memory.orders.pop(run_id, None)
        return memory.state

    def _decide(
        self,
        memory: ServiceMemory,
        sight: Sight,
        mine: bool,
        front: FrontSeen | None,
        told: dict[str, Told],
        fronts: dict[str, Told],
    ) -> list[Action]:
        since, looked = memory.since, sight.at

        def known_s(number: int) -> float:
            return max(looked - since.get(number, looked), 0.0)

        seen = Seen(
            service_id=memory.service_id,
            known_s=known_s,
            replicas=told,
            fronts=fronts,
            front=front,
            has_front=mine,
            load=memory.loads.load,
            requests=memory.loads.requests,
        )
        spec = memory.state.spec
        offers = spec.ways if spec is not None and mine else ()
        return decide(memory.state, seen, offers, self._controller.now())

    def _perform(
        self, memory: ServiceMemory, actions: Sequence[Action], fronts: dict[str, Told]
    ) -> Steps[None]:
        spec = memory.state.spec
        assert spec is not None
        for action in actions:
            if isinstance(action, TendFront | EndFront):
                if spec.rented:
                    yield from self._tell_far(memory, spec, action, fronts)
                else:
                    yield action
            elif isinstance(action, Submit):
                if self._serves is not None:
                    if not spec.rented:
                        self._serves.own(memory.service_id, action.run_id, action.spec.job)
                    yield from self._controller.submit(action.run_id, action.spec)
            elif isinstance(action, Cancel):
                yield from self._controller.cancel(action.run_id, action.reason)
            elif isinstance(action, Forget):
                for provider in sorted({way.provider for way in spec.ways if spec.rented}):
                    if not (yield DismissCircle(provider, memory.service_id)):
                        return  # while its mark is there, the next pass asks again
                yield Delete(places.live_service(memory.service_id))
                self.memory.pop(memory.service_id, None)

    # -- rented fronts -----------------------------------------------------------------------------

    def _look_far(self, memory: ServiceMemory, fronts: dict[str, Told]) -> Steps[FrontSeen | None]:
        for front in memory.state.staying_fronts:
            key = self._key_of(memory, front.run_id)
            found: FrontOrder | None = None
            if key is not None:
                found = yield from farfronts.find(front.run_id, key)
            memory.orders.pop(front.run_id, None)
            if found is not None:
                memory.orders[front.run_id] = found
        for run_id, told in fronts.items():
            if told.serving is not None and told.serving.front is not None:
                memory.totals[run_id] = told.serving.front.total
        seen = fronting.together(memory.state, fronts, memory.orders)
        if seen is None:
            return None
        return replaced(seen, total=sum(memory.totals.values()))

    def _tell_far(
        self,
        memory: ServiceMemory,
        spec: ServiceSpec,
        action: TendFront | EndFront,
        fronts: dict[str, Told],
    ) -> Steps[None]:
        for front in memory.state.staying_fronts:
            key = self._key_of(memory, front.run_id)
            if key is None:
                continue
            before = memory.orders.get(front.run_id)
            serving = fronts[front.run_id].serving if front.run_id in fronts else None
            done = serving.front.order if serving is not None and serving.front is not None else 0
            wanted = fronting.order_of(action, spec, before)
            memory.orders[front.run_id] = yield from farfronts.tell(
                front.run_id, key, wanted, before, done
            )

    def _key_of(self, memory: ServiceMemory, run_id: str) -> str | None:
        known = memory.runs.get(run_id)
        return farfronts.key_of(known.state, self._controller.seed) if known is not None else None

    # -- what is seen ------------------------------------------------------------------------------

    def _measure(
        self, memory: ServiceMemory, spec: ServiceSpec, front: FrontSeen | None
    ) -> Steps[None]:
        now = self._controller.now()
        if not memory.restored:
            keys: list[str] = yield ListAfter(places.loads(memory.service_id))
            back = tuple(keys[-49:])
            hours: list[bytes] = (yield GetMany(back, bounds.RECORD)) if back else []
            memory.loads.restore(hours, now)
            memory.restored = True
        memory.loads.add(front, spec.engine.at_once, now)
        watch = self._controller.watched()
        if watch - memory.kept >= _KEEP_S:
            memory.kept = watch
            kept = memory.loads.hour(now)
            if kept is not None:
                yield Replace(places.load(memory.service_id, kept[0]), kept[1])

    def _told(self, memory: ServiceMemory, run_id: str) -> Steps[Told]:
        run = memory.runs.setdefault(run_id, _Run())
        commits = yield from journal.read_steps(run_id, run.state.number)
        run.state = fold_run(commits, run.state)
        for commit in commits:
            for event in commit.events:
                if isinstance(event, LegOver | Ended):
                    run.reason = event.reason
        return told_of(run.state, run.reason, self._beat(run_id, run.state))

    def _beat(self, run_id: str, state: RunState) -> Heartbeat | None:
        """As the controller has felt it in this pass, and believed."""
        known: RunMemory | None = self._controller.memory.runs.get(run_id)
        if known is None or state.leg is None:
            return None
        for name in state.leg.machines[:1]:
            pulse = known.pulses.get(name)
            if pulse is not None and pulse.beat is not None and pulse.silent_s < _SILENT_S:
                return pulse.beat
        return None

    # -- its journal -------------------------------------------------------------------------------

    def _read(self, memory: ServiceMemory) -> Steps[None]:
        commits = yield from BOOK.read_steps(memory.service_id, memory.state.number)
        self._fold(memory, commits)

    def _record(self, memory: ServiceMemory, events: Sequence[ServiceEvent]) -> Steps[bool]:
        """False: another controller was first, and we have read what it wrote."""
        commit = self._commit(memory.state.number + 1, events)
        if (yield from BOOK.append_steps(memory.service_id, commit)):
            self._fold(memory, [commit])
            yield from BOOK.bind_steps(memory.service_id, commit.number)
            return True
        yield from self._read(memory)
        return False

    def _commit(self, number: int, events: Sequence[ServiceEvent]) -> ServiceCommit:
        at = journal.moment(self._controller.now())
        return ServiceCommit(FORMAT, number, self._controller.writer, at, tuple(events))

    def _fold(self, memory: ServiceMemory, commits: Sequence[ServiceCommit]) -> None:
        memory.state = fold(commits, memory.state)
        watch = self._controller.watched()
        for commit in commits:
            memory.since[commit.number] = watch


def told_of(state: RunState, reason: str, beat: Heartbeat | None) -> Told:
    """What a replica's run, and its machine, say."""
    refused = max(state.refusals.values(), key=lambda each: each.at, default=None)
    serving = None
    if beat is not None and beat.doing in ("working", "saving"):
        serving = beat.serving
    return Told(
        phase=state.phase,
        outcome=state.outcome,
        reason=reason,
        tail=state.tail or (beat.tail if beat is not None else ""),
        blame=state.outcome == "failed" and state.over_cause in (JOB_FAILED, HOPELESS),
        refused=f"{refused.what}: {refused.reason or refused.kind}" if refused else "",
        lost=_lost(state, reason, beat),
        serving=serving,
    )


def _lost(state: RunState, reason: str, beat: Heartbeat | None) -> str:
    """Of the first machine that it had: a replica is one leg."""
    if beat is not None and (beat.notice or beat.at_risk):
        return "its provider takes its machine" if beat.notice else "its provider may take it soon"
    leg = state.leg
    if leg is not None and leg.cause:
        return "" if state.cancelled else f"its leg ends: {leg.cause}"
    first = min((each.machine.leg for each in state.machines.values()), default=0)
    if first and state.phase in ("waiting", "active") and (leg is None or leg.number > first):
        return reason or state.over_cause
    return ""
