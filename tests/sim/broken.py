"""Controllers that break the protocol on purpose, one rule each: each must be caught."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from tradewind.base import signing
from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.base.steps import Steps
from tradewind.controller import Controller
from tradewind.controller.launching import news
from tradewind.controller.memory import RunMemory
from tradewind.controller.sight import Sight
from tradewind.lifecycle.seen import Month
from tradewind.lifecycle.state import RunState
from tradewind.model import places
from tradewind.model.action import Action, Forget, Launch, Record, Terminate, Withdraw
from tradewind.model.event import (
    Event,
    Forecast,
    LegDraining,
    LegLimited,
    LegRequested,
    MachinesFound,
)
from tradewind.model.run import Request, Way
from tradewind.providers.base import LaunchMachines
from tradewind.store.lending import LendPass
from tradewind.store.steps import Delete


def _key(controller: Controller, request: Request) -> str:
    return signing.key_of(controller.seed, request.launch_id)


class ActsBeforeRecording(Controller):
    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        for event in events:
            if isinstance(event, LegRequested):
                try:
                    yield LaunchMachines(
                        event.request, memory.state.number + 1, _key(self, event.request)
                    )
                except SourceFailed:
                    continue
        return (yield from super()._record(memory, events))


class SkipsTheListing(Controller):
    """Buys whatever is recorded and has no answer, without looking whether it was bought."""

    def _decide(
        self,
        memory: RunMemory,
        sight: Sight,
        ways: Sequence[Way],
        wrote: frozenset[int],
        month: Month | None,
    ) -> list[Action]:
        actions = super()._decide(memory, sight, ways, wrote, month)
        leg = memory.state.leg
        waits = leg and leg.state == "requested" and not leg.machines
        if not actions and leg and waits:
            return [Launch(leg.request, "it was recorded")]
        return actions

    def _launch(self, memory: RunMemory, action: Launch) -> Steps[None]:
        leg = memory.state.leg
        assert leg is not None
        try:
            bought = yield LaunchMachines(
                action.request, leg.requested_at, _key(self, action.request)
            )
        except SourceFailed:
            return
        yield from self._came(memory, MachinesFound(machines=tuple(bought), reason="bought"))


class SkipsTheSweeper(Controller):
    def _perform(self, memory: RunMemory, actions: Iterable[Action]) -> Steps[None]:
        kept = [action for action in actions if not isinstance(action, Terminate)]
        yield from super()._perform(memory, kept)


class ReusesTheToken(Controller):
    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        same: list[Event] = []
        for event in events:
            if isinstance(event, LegRequested):
                request = replace(event.request, launch_id=event.request.run_id)
                event = replace(event, request=request)
            same.append(event)
        return (yield from super()._record(memory, same))


class TrustsAForeignClock(Controller):
    """Takes a heartbeat's age from the machine's uptime and the provider's launch time."""

    def _decide(
        self,
        memory: RunMemory,
        sight: Sight,
        ways: Sequence[Way],
        wrote: frozenset[int],
        month: Month | None,
    ) -> list[Action]:
        for name in memory.state.claimed:
            pulse = memory.pulses.get(name)
            if pulse and pulse.beat:
                launched = memory.state.machines[name].machine.launched_s
                sent = launched + pulse.beat.uptime_s
                pulse.looked, pulse.changed = self._clock(), sent
        return super()._decide(memory, sight, ways, wrote, month)


class PrunesTheJournal(Controller):
    def tick(self, run_id: str, sight: Sight) -> Steps[RunState]:
        state = yield from super().tick(run_id, sight)
        for number in range(1, state.number):
            yield Delete(f"runs/{run_id}/journal/{number:020d}.json")
        return state


class NeverAnnounces(Controller):
    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        kept = [event for event in events if not isinstance(event, Forecast)]
        if not kept:
            return False
        return (yield from super()._record(memory, kept))


class AnnouncesAtTheSecondTry(Controller):
    """Breaks nothing: it is the store that fails, the first time, with machines at work."""

    _failed = False

    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        works = memory.state.leg is not None and memory.state.leg.state == "running"
        if works and not self._failed and any(isinstance(e, Forecast) and e.late for e in events):
            self._failed = True
            raise SourceFailed("the store did not answer (test)")
        return (yield from super()._record(memory, events))


class SpendsFreely(Controller):
    """Gives every machine a week, whatever the budget, and ends none when that is spent."""

    def _decide(
        self,
        memory: RunMemory,
        sight: Sight,
        ways: Sequence[Way],
        wrote: frozenset[int],
        month: Month | None,
    ) -> list[Action]:
        return [
            action
            for action in super()._decide(memory, sight, ways, wrote, month)
            if not (isinstance(action, Record) and _keeps_a_budget(action.event))
        ]

    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        generous: list[Event] = []
        for event in events:
            if isinstance(event, LegRequested):
                event = replace(event, request=replace(event.request, hard_stop_s=604_800))
            generous.append(event)
        return (yield from super()._record(memory, generous))


def _keeps_a_budget(event: Event) -> bool:
    return isinstance(event, LegLimited) or (
        isinstance(event, LegDraining) and event.cause == "budget"
    )


class ForgetsTheMonth(Controller):
    """Never asks what the project has left."""

    def _decide(
        self,
        memory: RunMemory,
        sight: Sight,
        ways: Sequence[Way],
        wrote: frozenset[int],
        month: Month | None,
    ) -> list[Action]:
        return super()._decide(memory, sight, ways, wrote, None)


class CountsNoTime(Controller):
    """Lets machines be up for as long as it takes."""

    def _decide(
        self,
        memory: RunMemory,
        sight: Sight,
        ways: Sequence[Way],
        wrote: frozenset[int],
        month: Month | None,
    ) -> list[Action]:
        if memory.state.spec:
            memory.state.spec = replace(memory.state.spec, max_duration_s=None)
        return super()._decide(memory, sight, ways, wrote, month)


class NeverCallsItIdle(Controller):
    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        kept = [e for e in events if not (isinstance(e, LegDraining) and e.cause == "idle")]
        if not kept:
            return False
        return (yield from super()._record(memory, kept))


class HearsNoLastWords(Controller):
    """Believes of a machine's use of the store what it said when its leg was over."""

    def _last_words(self, memory: RunMemory) -> Steps[list[Event]]:
        yield from ()
        return []


class LeavesQueues(Controller):
    """What was queued for and is not wanted any more stays in the queue."""

    def _perform(self, memory: RunMemory, actions: Iterable[Action]) -> Steps[None]:
        kept = [action for action in actions if not isinstance(action, Withdraw)]
        yield from super()._perform(memory, kept)


class TrustsAShutdown(Controller):
    """Takes a machine that has said its last for ended, wherever it is."""

    def _perform(self, memory: RunMemory, actions: Iterable[Action]) -> Steps[None]:
        kept: list[Action] = []
        for action in actions:
            if isinstance(action, Terminate):
                done = (name for name in action.machine_ids if not self._is_done(memory, name))
                action = replace(action, machine_ids=tuple(done))
            kept.append(action)
        yield from super()._perform(memory, kept)

    def _is_done(self, memory: RunMemory, name: str) -> bool:
        pulse = memory.pulses.get(name)
        said = pulse.beat.doing if pulse and pulse.beat else ""
        return said in ("stopped", "failed", "finished")


class SeesOneCloud(Controller):
    """Lists the first of its clouds only."""

    def look(self) -> Steps[Sight]:
        every, self._providers = self._providers, self._providers[:1]
        try:
            return (yield from super().look())
        finally:
            self._providers = every


class KeepsHalfAGang(Controller):
    """What was sold of a leg that was refused is nobody's."""

    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        live = {leg.number for leg in memory.state.legs}
        kept: list[Event] = []
        for event in events:
            if isinstance(event, MachinesFound):
                mine = tuple(each for each in event.machines if each.leg in live)
                if not mine:
                    continue
                event = replace(event, machines=mine)
            kept.append(event)
        if not kept:
            return False
        return (yield from super()._record(memory, kept))

    def _came(self, memory: RunMemory, event: Event) -> Steps[None]:
        """What is never recorded is not tried for ever: its leg may be over meanwhile."""
        while news(memory.state, event):
            live = {leg.number for leg in memory.state.legs}
            mine = getattr(event, "machines", ())
            if mine and not live & {each.leg for each in mine}:
                return
            if (yield from self._record(memory, [event])):
                return


class KeepsPasses(Controller):
    """What was lent lies in the store when its run has ended."""

    def _perform(self, memory: RunMemory, actions: Iterable[Action]) -> Steps[None]:
        for action in actions:
            if isinstance(action, Forget):
                for life in range(1, memory.state.life + 1):
                    yield Delete(places.live(memory.run_id, life))
            else:
                yield from super()._perform(memory, [action])


class LendsForEver(Controller):
    """To machines of runs that have ended, too."""

    def tick(self, run_id: str, sight: Sight) -> Steps[RunState]:
        state = yield from super().tick(run_id, sight)
        for request in state.requests.values():
            if request.way.pass_s:
                with suppress(TradewindError):
                    yield LendPass(run_id, places.a_pass(run_id, request.launch_id, 0), 1200)
        return state
