"""One pass over all runs, as generators of I/O steps.

First `look`: what the providers list, and which runs there are, in that order. Then `tick` for each
run, independent of all others: read what is new in its journal, feel its machines' pulse, decide,
record, perform, record. An idle run costs one listing and one heartbeat. Whatever goes wrong with
one run ends its tick; the next pass starts from what is recorded.

Runs are looked at while `live/<run-id>` exists, which is made before the journal's first commit and
deleted after its last, and for as long as a provider lists a machine of theirs that the journal
does not account for. That is the whole sweeper: a machine that nobody claims wakes up its run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf

from tradewind.base.errors import InvalidValue, NotFound, SourceFailed, TooLarge, TradewindError
from tradewind.base.steps import Steps
from tradewind.controller import passes
from tradewind.controller.launching import launch, news
from tradewind.controller.memory import Memory, RunMemory
from tradewind.controller.purse import AskMonth
from tradewind.controller.sight import Sight, look
from tradewind.journal import journal
from tradewind.lifecycle import beats as claims
from tradewind.lifecycle.capacity import Answer, answers
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.fold import fold
from tradewind.lifecycle.seen import Month, Seen
from tradewind.lifecycle.state import RunState
from tradewind.lifecycle.states import NO_RETURN
from tradewind.lifecycle.usage import doubtful, used, weighed
from tradewind.model import bounds, places
from tradewind.model.action import Action, Forget, Launch, Lend, Record, Terminate, Withdraw
from tradewind.model.event import CancelAsked, Closed, Event, Resumed, Submitted
from tradewind.model.run import Machine, Queued, Spec, Way
from tradewind.policy import plain
from tradewind.policy.base import Policy
from tradewind.providers.base import AskPrices, TerminateMachines, WithdrawLaunches
from tradewind.store.steps import Create, Delete, Find, GetMany, Weigh

_ROUNDS = 20
_NOTHING: dict[str, tuple[str, Machine]] = {}
_NONE_QUEUED: dict[str, tuple[str, Queued]] = {}


class Controller:
    def __init__(
        self,
        writer: str,
        providers: Sequence[str],
        *,
        clock: Callable[[], float],
        watch: Callable[[], float],
        asks_prices: bool = False,
        policy: Policy = plain.choose,
        may_use: Callable[[str, str], bool] = lambda run_id, provider: True,
        seed: bytes = b"",
        learned: Callable[[Sequence[Answer]], None] = lambda answers: None,
    ) -> None:
        """`clock` is the world's time as this computer has it, for deadlines and the record;
        `watch` only ever measures how long we have waited. `may_use` says whether this provider is
        ours to use for this run: what the store says of it does not count. `seed` is the store's
        (signing.py); without one, machines are not asked to sign. `asks_prices`: what ways cost now
        is asked for; else they cost what was planned. `learned` is told what our own
        launches, refusals and interruptions show of capacity; it must not raise."""
        self.writer = writer
        self._providers = tuple(providers)
        self._clock, self._watch = clock, watch
        self._asks_prices, self._policy = asks_prices, policy
        self._may_use = may_use
        self.seed = seed
        self._learned = learned
        self.asks_month = False
        """Whether projects have budgets."""
        self.memory = Memory()

    def now(self) -> float:
        """The world's time."""
        return self._clock()

    def watched(self) -> float:
        """By what measures how long we have waited."""
        return self._watch()

    def submit(self, run_id: str, spec: Spec) -> Steps[bool]:
        """The marker first: a run that is recorded and not looked at would wait for ever. False:
        there is such a run, or this took so long that it was abandoned."""
        yield Create(places.live(run_id), b"{}")
        commit = self._commit(1, [Submitted(run_id=run_id, spec=spec)])
        return (yield from journal.append_steps(run_id, commit))

    def cancel(self, run_id: str, reason: str) -> Steps[bool]:
        """False: there is nothing to cancel."""
        memory = RunMemory(run_id, self._watch())
        yield from self._read(memory)
        while memory.state.phase in ("waiting", "active"):
            if memory.state.cancelled:
                return True
            if (yield from self._record(memory, [CancelAsked(reason=reason)])):
                return True
        return False

    def resume(
        self, run_id: str, reason: str, *, budget: int | None, deadline_s: float | None
    ) -> Steps[bool]:
        """False: it is not over, or has succeeded, or never was."""
        memory = RunMemory(run_id, self._watch())
        yield from self._read(memory)
        event = Resumed(reason=reason, budget=budget, deadline_s=deadline_s)
        while memory.state.phase == "closed" and memory.state.outcome not in NO_RETURN:
            yield Create(places.live(run_id, memory.state.life + 1), b"{}")
            if (yield from self._record(memory, [event])):
                return True
        return False

    def look(self) -> Steps[Sight]:
        return (yield from look(self._providers, self._watch(), self.memory))

    def tick(self, run_id: str, sight: Sight) -> Steps[RunState]:
        memory = self.memory.runs.get(run_id)
        if memory is None:
            memory = self.memory.runs[run_id] = RunMemory(run_id, self._watch())
        with suppress(InvalidValue):  # a tag that is no run's id: of no run, for the sweeper
            yield from self._read(memory)
        yield from self._feel(memory)
        wrote: frozenset[int] = frozenset()
        month, asked = None, None
        ways: list[Way] = []
        for _ in range(_ROUNDS):
            buying = memory.state.buys
            ways = ways or (yield from self._ways(memory))
            if self.asks_month and memory.state.spec and (asked is None or (buying and not asked)):
                month, asked = (yield AskMonth(run_id, memory.state.spec, buying)), buying
            actions = self._decide(memory, sight, ways, wrote, month)
            events = [action.event for action in actions if isinstance(action, Record)]
            if not events:
                yield from self._perform(memory, actions)
                break
            if isinstance(events[-1], Closed):
                events = [*(yield from self._last_words(memory)), *events]
            if (yield from self._record(memory, events)):
                wrote |= {memory.state.number}
                yield from passes.take_back(memory, events)
            yield from self._feel_new(memory)
        return memory.state

    def whole_pass(self) -> Steps[list[tuple[str, TradewindError]]]:
        """A look, and every run in turn; returns what went wrong with which."""
        sight = yield from self.look()
        troubles = list(sight.troubles)
        for run_id in sight.runs:
            try:
                yield from self.tick(run_id, sight)
            except TradewindError as error:
                troubles.append((run_id, error))
        return troubles

    def _decide(
        self,
        memory: RunMemory,
        sight: Sight,
        ways: Sequence[Way],
        wrote: frozenset[int],
        month: Month | None,
    ) -> list[Action]:
        # Nothing is judged by time that passed after we looked: we may have been stopped since.
        looked, state = sight.at, memory.state
        pulses = {name: memory.pulses[name] for name in state.claimed if name in memory.pulses}
        beats = {name: (each.beat, each.silent_s) for name, each in pulses.items() if each.beat}
        since = memory.since

        def known_s(number: int) -> float:
            return max(looked - since.get(number, looked), 0.0)

        def unclaimed_s(name: str) -> float:
            return looked - self.memory.unclaimed.setdefault(name, looked)

        listed = sight.by_run.get(memory.run_id, _NOTHING)

        def unlisted_s(name: str) -> float:
            return looked - memory.unlisted.setdefault(name, looked)

        def lent_s(name: str) -> float:
            return looked - memory.lent[name] if name in memory.lent else inf

        queued = sight.queued.get(memory.run_id, _NONE_QUEUED)
        for name in (*listed, *queued):
            memory.unlisted.pop(name, None)
        seen = Seen(
            run_id=memory.run_id,
            known_s=known_s,
            listed=listed,
            # What is not ours to use, we cannot list either: our own list shows nothing of it.
            clocks={p: at for p, at in sight.clocks.items() if self._may_use(memory.run_id, p)},
            signs=bool(self.seed),
            beats=beats,
            disbelieved=frozenset(name for name, each in pulses.items() if each.disbelieved),
            unclaimed_s=unclaimed_s,
            unlisted_s=unlisted_s,
            queued=queued,
            unqueued_s=unlisted_s,
            lent_s=lent_s,
            wrote=wrote,
            marked=any(life <= state.life for life in sight.marked.get(memory.run_id, ())),
            month=month,
        )
        return decide(state, seen, ways, self._clock(), self._policy)

    def _ways(self, memory: RunMemory) -> Steps[list[Way]]:
        """Those that are ours to buy, at what they cost now."""
        state, now = memory.state, dict[str, int]()
        if not state.spec:
            return []
        ways = [way for way in state.spec.ways if self._ours(memory.run_id, way.provider)]
        if self._asks_prices and state.phase in ("waiting", "active"):
            with suppress(SourceFailed):
                now = yield AskPrices(tuple(ways))
        return [way.costing(now[way.what]) if way.what in now else way for way in ways]

    def _ours(self, run_id: str, provider: str) -> bool:
        return provider in self._providers and self._may_use(run_id, provider)

    def _perform(self, memory: RunMemory, actions: Iterable[Action]) -> Steps[None]:
        for action in actions:
            if isinstance(action, Launch):
                if self._ours(memory.run_id, action.request.way.provider):
                    yield from self._launch(memory, action)
            elif isinstance(action, Terminate):
                if not self._ours(memory.run_id, action.provider):
                    continue  # its journal may name any machine of this computer
                try:
                    yield TerminateMachines(action.provider, action.machine_ids)
                except SourceFailed:
                    continue  # the next pass will ask again
            elif isinstance(action, Withdraw):
                if not self._ours(memory.run_id, action.provider):
                    continue
                try:
                    yield WithdrawLaunches(action.provider, action.launch_ids)
                except SourceFailed:
                    continue
            elif isinstance(action, Lend):
                warning = yield from passes.lend(memory, action, self._watch())
                if warning is not None:
                    yield from self._record(memory, [warning])
            elif isinstance(action, Forget):
                yield from passes.forget(memory)
                for life in range(1, memory.state.life + 1):
                    yield Delete(places.live(memory.run_id, life))

    def _launch(self, memory: RunMemory, action: Launch) -> Steps[None]:
        request, legs = action.request, memory.state.legs
        after = next(each.requested_at for each in legs if each.number == request.leg)
        event = yield from launch(request, after, self.seed)
        if event is not None:
            yield from self._came(memory, event)

    def _came(self, memory: RunMemory, event: Event) -> Steps[None]:
        """Records what came of a launch, for as long as that is news."""
        while news(memory.state, event):
            if (yield from self._record(memory, [event])):
                return

    def _record(self, memory: RunMemory, events: Sequence[Event]) -> Steps[bool]:
        """False: another controller was first, and we have read what it wrote."""
        commit = self._commit(memory.state.number + 1, events)
        if (yield from journal.append_steps(memory.run_id, commit)):
            before = memory.state
            self._fold(memory, [commit])
            if found := answers(before, memory.state):
                self._learned(found)
            yield from journal.bind_steps(memory.run_id, commit.number)
            return True
        yield from self._read(memory)
        return False

    def _commit(self, number: int, events: Sequence[Event]) -> journal.Commit:
        at = journal.moment(self._clock())
        return journal.Commit(journal.FORMAT, number, self.writer, at, tuple(events))

    def _read(self, memory: RunMemory) -> Steps[None]:
        commits = yield from journal.read_steps(memory.run_id, memory.state.number)
        if commits:
            self._fold(memory, commits)

    def _fold(self, memory: RunMemory, commits: Sequence[journal.Commit]) -> None:
        memory.state = fold(commits, memory.state)
        watch = self._watch()
        for commit in commits:
            memory.since[commit.number] = watch

    def _feel(self, memory: RunMemory) -> Steps[None]:
        claimed = memory.state.claimed
        if len(claimed) > 1 and all(name in memory.pulses for name in claimed):
            keys = tuple(places.heartbeat(memory.run_id, name) for name in claimed)
            asked = self._watch()
            with suppress(TooLarge, NotFound):  # one by one tells which
                found: list[bytes] = yield GetMany(keys, bounds.HEARTBEAT)
                for name, data in zip(claimed, found, strict=True):
                    memory.felt(name, data, asked, self._watch(), self.seed)
                return
        for name in claimed:
            asked = self._watch()
            one = yield from _beat_of(memory.run_id, name)
            if one is not None or name in memory.pulses:  # it has come up, if only once
                memory.felt(name, one or b"", asked, self._watch(), self.seed)

    def _last_words(self, memory: RunMemory) -> Steps[list[Event]]:
        """What machines have said of their use of the store that is not recorded yet, heartbeats
        stay when machines are gone, and what lies there of the run, where that has a price."""
        beats = {}
        for name in doubtful(memory.state):
            data = yield from _beat_of(memory.run_id, name)
            beat = claims.read(memory.state, name, data, self.seed) if data is not None else None
            if beat is not None:
                beats[name] = beat
        records: list[Event] = list(used(memory.state, beats))
        if any(request.way.rates is not None for request in memory.state.requests.values()):
            lies: list[tuple[int, float]] | None = yield Weigh(places.run(memory.run_id))
            if lies is not None:
                records.append(weighed(lies, self._clock()))
        return records

    def _feel_new(self, memory: RunMemory) -> Steps[None]:
        if any(name not in memory.pulses for name in memory.state.claimed):
            yield from self._feel(memory)


_TOO_LARGE = b"too large"


def _beat_of(run_id: str, machine_id: str) -> Steps[bytes | None]:
    """None: it has written none yet. What is too large to be one is as good as garbage."""
    found: bytes | None = _TOO_LARGE
    with suppress(TooLarge):
        found = yield Find(places.heartbeat(run_id, machine_id), bounds.HEARTBEAT)
    return found
