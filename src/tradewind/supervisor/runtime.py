"""The supervisor's loop: look at the job, exchange with the store, decide, carry out.

All that it does follows from `decide.py` and `beat.py`, which the simulator drives too. Here are
the clock, the threads and the processes. A beat is begun every EACH_S, at once when something
changes, and sooner again when the store did not answer. The loop itself never waits for the store:
while an exchange is under way it goes on looking, and when what it sees cannot wait (a notice, the
hard stop, FENCE_S without contact) it decides without.

`run` returns when the machine is to be shut down, with the reason. Whatever has started the
supervisor turns the machine off when it ends; a local one has ended with it.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from tradewind.base.errors import NoAccess, TradewindError
from tradewind.base.steps import Steps
from tradewind.model import places
from tradewind.model.boot import Boot
from tradewind.model.timing import BEAT_S, DRAIN_S, EACH_S
from tradewind.model.usage import Usage
from tradewind.store import lending, meter
from tradewind.store.base import Store
from tradewind.store.lending import held
from tradewind.supervisor.beat import learn, tell
from tradewind.supervisor.channel import Channel, Exchange
from tradewind.supervisor.decide import Act, Job, Me, Save, ShutDown, Start, Stop, decide
from tradewind.supervisor.folder import FINAL, MachineFolder, State
from tradewind.supervisor.job import LAST_WORDS_S, Work
from tradewind.supervisor.logs import WAIT_S, Shipper, Shippers, Spool
from tradewind.supervisor.wake import Wake
from tradewind.supervisor.watch import Watch

if TYPE_CHECKING:
    from tradewind.providers.cloud import Notice, Signalled

_LOOK_S = 1.0
"""Between two looks at what nobody wakes us for: a notice, the hard stop, progress."""
_PATIENCE_S = 20.0
"""What a beat may take before the store counts as not reached."""
_GRACE_S = 2.0
"""What cannot wait waits this long for an exchange that is under way: most take milliseconds."""
_END_S = 10.0
"""For the last report. With killing the job and its last words that is less than SHUTDOWN_S."""
_HELD_S = 60.0
"""More than a store's client waits between two attempts, and with UNREACHABLE_S far off."""
_RETRY_S = 5.0
_METRICS_S = 10.0
"""Between two pieces of what the job measures: they are looked at later, and there are many."""
_MARGIN_S = 5.0
"""Before the provider takes the machine, to kill and to send the last words."""


class Supervisor:
    def __init__(
        self, boot: Boot, store: Store, folder: MachineFolder, watch: Watch, notice: Notice
    ) -> None:
        """`folder` is locked by the caller."""
        self._watch, self._notice, self._folder = watch, notice, folder
        self._bucket = meter.bucket_of(boot.store_url)
        self._wake = Wake()
        self._asked_to_end = ""
        self._ends_when_told = False
        kept = folder.state().succeeded()
        with suppress(NoAccess):
            folder.keep(kept)
        self.me = _me(boot, kept)
        self._pass_file = Path(boot.pass_file)
        if boot.pass_file:
            _hold(self.me, held.read(self._pass_file), watch)
        self._spool = Spool(folder.spool)
        here = (store, boot.run_id, boot.leg, boot.rank)
        self._shipper = Shippers(
            Shipper(self._spool, *here, wait_s=watch.real_s(WAIT_S)),
            Shipper(
                Spool(folder.metrics),
                *here,
                wait_s=watch.real_s(_METRICS_S),
                stream=places.metrics,
            ),
        )
        self._channel = Channel(store, self._wake.set)
        self._work = Work(boot, store, folder, self._spool, self._shipper, watch, self._wake.set)
        if kept.final:
            self._work.restore(kept)
        self._kept = kept
        self._exchange: Exchange | None = None
        self._learning = self._telling_the_end = self._has_ended = False
        self._starts = 0
        self._begun_s = self._next_s = 0.0
        self._known: tuple[object, ...] = ()
        self._kill_at_s: float | None = None
        self._notice_left_s = 0.0
        self._held_until_s: float | None = None

    def run(self) -> str:
        try:
            while not self.me.shut_down:
                self._tick()
                if not self.me.shut_down:
                    self._wake.wait(self._watch.real_s(_LOOK_S))
            return self.me.reason
        finally:
            self._work.stop()
            # In this order: who hears of the end may take the machine away at once.
            self._shipper.flush(self._watch.real_s(LAST_WORDS_S))
            # And nothing after it: it tells what was asked of the store, for the ledger.
            self._shipper.close()
            self._tell_the_end()
            self._channel.close()

    def end(self, reason: str) -> None:
        """From a signal handler or another thread: stop the job and return from `run`."""
        self._asked_to_end = reason
        self._wake.set()

    def signalled(self, notice: Signalled) -> None:
        """From a signal handler: the machine is to be taken."""
        notice.heard()
        self._ends_when_told = True
        self._wake.set()

    def _tell_the_end(self) -> None:
        """What is being told now may be older than the last decision: then once more."""
        uptime_s = self._watch.uptime_s()
        until_s = uptime_s + _END_S
        last = tell(self.me, self._work.seen(), uptime_s, self._used)
        for exchange in (self._exchange, Exchange(last, self._channel, until_s)):
            while exchange is not None and not self._is_done(exchange, self._watch.uptime_s()):
                if self._watch.uptime_s() >= until_s:
                    return
                self._wake.wait(self._watch.real_s(_LOOK_S))

    def _used(self) -> Usage | None:
        """By all processes of this machine; None where nobody charges for it."""
        return meter.total(self._folder.used, self._bucket) if self._bucket else None

    def _tick(self) -> None:
        uptime_s, me = self._watch.uptime_s(), self.me
        left_s = self._notice()
        if left_s is not None and not me.notice:
            me.notice, self._notice_left_s = True, left_s
        if self._notice.at_risk and not me.at_risk:
            me.at_risk = True
            self._spool.remark(
                "the provider may interrupt this machine soon: the job is asked to save"
            )
            self._work.save_soon()
        if self._asked_to_end and not me.fenced:
            me.fenced = self._asked_to_end
        if self._ends_when_told and self._has_ended:
            me.shut_down = True  # all is saved and told, and nobody can ask for more
            return
        if self._kill_at_s is not None and uptime_s >= self._kill_at_s:
            self._kill_at_s = None
            self._spool.remark("the job was killed: its time to save ran out")
            self._work.stop()
        job = self._work.seen()
        if self._work.spec is not None:
            me.tries, me.retry_on = self._work.spec.tries, self._work.spec.retry_on
        self._go_on(job, uptime_s)

    def _go_on(self, job: Job, uptime_s: float) -> None:
        me = self.me
        # With the number of starts: a job that fails at once ends as it did before.
        serves = job.serving.news if job.serving else ()
        known = (
            job.state, job.exit_code, me.notice, me.at_risk, me.doing, me.fenced, self._starts,
            serves,
        )  # fmt: skip
        changed = known != self._known and not self._has_ended
        if self._exchange is None and (uptime_s >= self._next_s or changed):
            self._known, self._next_s = known, uptime_s + EACH_S
            me.left |= self._work.left
            self._begin(learn(me, uptime_s), uptime_s, learning=True)
        if self._exchange is not None and self._is_done(self._exchange, uptime_s):
            self._exchange = None
            if self._learning:
                self._take_pass()
                if self.me.resume is None and self.me.rank:  # rank 0 will choose in a moment
                    self._next_s = min(self._next_s, uptime_s + _LOOK_S)
                self._act(job, uptime_s)
                if self._holds_back(uptime_s):
                    self._next_s = min(self._next_s, uptime_s + _LOOK_S)
                    return
                self._begin_to_tell(job, uptime_s)
                self._wake.set()
            elif me.reached_s != self._begun_s:
                self._held_until_s = None
                self._next_s = min(self._next_s, uptime_s + _RETRY_S)
            elif self._telling_the_end:
                # Whoever reads that may end the machine at once, and what it asks of the store
                # from now on might never be told: it is quiet, for as long as a beat may take.
                self._has_ended, self._next_s = True, uptime_s + BEAT_S
        elif _cannot_wait(me, job, uptime_s):
            if not self._learning:
                self._act(job, uptime_s)  # what is being told is told again, as it is then
            elif uptime_s - self._begun_s >= _GRACE_S:
                assert self._exchange is not None
                self._exchange.drop()
                self._exchange = None
                self._act(job, uptime_s)
                self._begin_to_tell(job, uptime_s)

    def _take_pass(self) -> None:
        """Where all processes of this machine find it, from now on."""
        me = self.me
        if not me.pass_data:
            return
        try:
            lent_s = self._watch.monotonic_s(me.pass_lent_s)
            held.keep(self._pass_file, lending.decoded(me.pass_data), lent_s)
            me.pass_data = b""
        except NoAccess as error:  # a full disk: tried again at the next beat
            self._spool.remark(f"the new pass to the store cannot be kept: {error.message}")

    def _holds_back(self, uptime_s: float) -> bool:
        """The end is told when the last words are in the store: who hears of it may take the
        machine away at once. A store that answers, and yet does not take them, has _HELD_S; one
        that cannot be reached, or is full, has the time that it needs."""
        if self.me.doing not in FINAL or self._shipper.flush(0.0):
            return False
        if self._held_until_s is None or self.me.heard_s != uptime_s:
            self._held_until_s = uptime_s + _HELD_S
        return uptime_s < self._held_until_s

    def _begin_to_tell(self, job: Job, uptime_s: float) -> None:
        self._telling_the_end = self.me.doing in FINAL and job.state != "running"
        self._begin(tell(self.me, job, uptime_s, self._used), uptime_s, learning=False)

    def _begin(self, exchange: Steps[None], uptime_s: float, *, learning: bool) -> None:
        self._begun_s, self._learning = uptime_s, learning
        self._exchange = Exchange(exchange, self._channel, uptime_s + _PATIENCE_S)

    def _is_done(self, exchange: Exchange, uptime_s: float) -> bool:
        try:
            return exchange.go_on(uptime_s)
        except TradewindError as error:  # a journal that cannot be read holds no orders
            self._spool.remark(f"the supervisor cannot read its orders: {error}")
            return True

    def _act(self, job: Job, uptime_s: float) -> None:
        acts = decide(self.me, job, uptime_s)
        self._keep(job)
        self._carry_out(acts, uptime_s)

    def _carry_out(self, acts: list[Act], uptime_s: float) -> None:
        for act in acts:
            if isinstance(act, Start):
                assert self.me.resume is not None
                self._work.start(self.me.resume, self.me.turn)
                self._starts += 1
                self._wake.set()
            elif isinstance(act, Save):
                self._spool.remark(f"the job is to save and to exit: {act.reason}")
                within_s = self._save_s()
                self._kill_at_s = uptime_s + within_s
                self._work.save(within_s)
            elif isinstance(act, Stop):
                self._kill_at_s = None
                if self._work.seen().state == "running":
                    self._spool.remark(f"the job is stopped: {act.reason}")
                self._work.stop()
            else:
                assert isinstance(act, ShutDown)
                if self.me.doing != "finished":  # the log of a job that is done ends with its own
                    self._spool.remark(f"the machine shuts down: {act.reason}")

    def _save_s(self) -> float:
        if not self.me.notice:
            return DRAIN_S  # before the hard stop, that comes first
        told_s = self._notice_left_s or self._work.notice_s
        return min(DRAIN_S, max(told_s - _MARGIN_S, 1.0)) if told_s else DRAIN_S

    def _keep(self, job: Job) -> None:
        me = self.me
        state = State(
            me.beat, me.doing, me.reason, me.failures, me.failed_at,
            job.exit_code, job.trouble, job.tail, job.step, job.saved, me.killed_at,
            self._kept.deaths, self._kept.died_at,
        )  # fmt: skip
        if _lasting(state) != _lasting(self._kept):
            with suppress(NoAccess):  # a full disk: tried again at the next decision
                self._folder.keep(state)
                self._kept = state


def _cannot_wait(me: Me, job: Job, uptime_s: float) -> bool:
    """Whether there is something to do that no order from the store could change."""
    acts = decide(copy(me), job, uptime_s)
    return any(isinstance(act, Save | Stop | ShutDown) for act in acts)


def _me(boot: Boot, kept: State) -> Me:
    me = Me(
        boot.machine_id, boot.run_id, boot.leg, boot.rank, boot.nodes, boot.hard_stop_s,
        tries=1, read=boot.after, relieves=boot.relieves, waits=boot.waits, key=boot.key,
        launch_id=boot.launch_id,
    )  # fmt: skip
    me.beat, me.failures, me.failed_at = kept.beat, kept.failures, kept.failed_at
    me.killed_at, me.saved = kept.killed_at, kept.saved
    if kept.final:
        me.doing, me.reason = kept.doing, kept.reason
    return me


def _hold(me: Me, lent: held.Held, watch: Watch) -> None:
    me.pass_for_s, me.pass_seen = lent.for_s, lent.mark
    me.pass_lent_s = me.pass_looked_s = watch.at_s(lent.lent_s)
    me.pass_until_s = me.pass_lent_s + lent.for_s


def _lasting(state: State) -> dict[str, object]:
    """What is worth a write to the disk; the rest goes along."""
    told = asdict(state)
    for name in ("beat", "step"):
        del told[name]
    return told
