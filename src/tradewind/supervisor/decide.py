"""What a supervisor does next. Pure: `decide(me, job, uptime_s)`.

It counts by its machine's own uptime only. Its orders come from the run's journal: its leg is to be
drained, or is over. When it cannot reach the store it cannot know, and stops by itself in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from tradewind.model import failures
from tradewind.model.figures import Figures
from tradewind.model.serving import Serving
from tradewind.model.timing import (
    BEAT_S,
    DRAIN_S,
    FENCE_S,
    PASS_ENDS_S,
    SHUTDOWN_S,
    UNATTENDED_S,
    UNREACHABLE_S,
)


class Job(Struct, frozen=True):
    """What is seen of the job's processes."""

    state: str = "none"
    """none, running, exited"""
    step: float = 0.0
    rate: float | None = None
    saved: float = 0.0
    """The newest complete checkpoint: what was resumed from, or later."""
    exit_code: int | None = None
    trouble: str = ""
    """user, hopeless or infrastructure, once it has exited badly"""
    tail: str = ""
    again: bool = False
    """It was killed, and nothing says that its machine is broken."""
    setup: bool = False
    """It has not come further than its setup."""
    stalled_s: float = 0.0
    """For how long it has made no step, where it counts them."""
    idle_s: float = 0.0
    """For how long it has made no step and used nothing."""
    figures: tuple[Figures, ...] = ()
    """What its processes measure of themselves: passed on, and nothing is decided by it."""
    serving: Serving | None = None
    """The same of a replica's engine."""


@dataclass(slots=True)
class Me:
    """A supervisor's own knowledge: it starts with what its machine was given at the launch."""

    machine_id: str
    run_id: str
    leg: int
    rank: int
    nodes: int
    hard_stop_s: int
    tries: int
    read: int
    """The last commit of the journal that was read."""
    retry_on: tuple[str, ...] | None = None
    """The job is tried again after these exit codes and signals alone; None: if it may help."""
    key: str = ""
    """What it signs with (tradewind/base/signing.py)."""
    doing: str = "setup"
    reason: str = ""
    reached_s: float | None = None
    """Uptime when the last heartbeat that arrived was sent; before the first, when it began."""
    heard: bool = False
    """Its orders have been read since it decided last."""
    heard_s: float | None = None
    """Uptime when it decided on orders that it had just read."""
    beat: int = 0
    relieves: int = 0
    """The leg that must be over before the job begins; 0: none, or none any more."""
    waits: bool = False
    """The journal has not found all machines of the leg yet, and it must before the job begins."""
    found: set[int] = field(default_factory=set)
    """The ranks that it has found."""
    beside: set[int] = field(default_factory=set)
    """Legs that work while this one waits in a queue: they must be over, too."""
    last: int = 0
    """The greatest number of a leg in the journal; 0: its own."""
    turn: int = 0
    """The number that its checkpoints have, which are in the order in which legs have worked: that
    of the leg, or a later one where others had their turn first. 0 until it is known."""
    fenced: str = ""
    """Why the leg is over; empty while it is not."""
    draining: str = ""
    given_s: int = 0
    """The hard stop that it had at its launch, where it was told another since."""
    notice: bool = False
    at_risk: bool = False
    resume: str | None = None
    """The checkpoint to start from; "" for none; None until it is known."""
    left: dict[str, bytes] = field(default_factory=dict)
    """What it has put into the store for the other machines of its leg, by key."""
    met: bool = False
    """The job gets on, so all of them have found it."""
    asked_to_save: bool = False
    failures: int = 0
    failed_at: float = -1.0
    """What was saved when the job failed last."""
    killed_at: float = -1.0
    """The same, when it was killed last."""
    saved: float = 0.0
    """The most that was reported: it stays saved, whatever a job that begins again says."""
    stalled_s: float = 0.0
    """For how long the job had made no step when it was last seen at work."""
    launch_id: str = ""
    """Under which its passes lie in the store."""
    pass_for_s: int = 0
    """How long the pass lasts that it holds; 0: it needs none."""
    pass_until_s: float = 0.0
    """Uptime when that ends, at the earliest."""
    pass_lent_s: float = 0.0
    """Uptime when it was lent, at the earliest."""
    pass_looked_s: float = 0.0
    """Uptime when it looked last for a newer one; before that, when this one was lent."""
    pass_seen: str = ""
    """Which was there then (store/lending/base.py)."""
    pass_data: bytes = field(default=b"", repr=False)
    """The newer one, as it was found: for whoever drives this to put where processes find it."""
    pass_ends: bool = False
    """It has decided to stop because nobody renewed it: a newer one comes too late."""
    idle_since_s: float | None = None
    shut_down: bool = False

    def __post_init__(self) -> None:
        self.last = self.leg
        if not self.waits:
            self.turn = self.leg

    @property
    def may_begin(self) -> bool:
        """Whether no other leg can be at work."""
        return not (self.fenced or self.relieves or self.waits or self.beside)

    def pass_left_s(self, uptime_s: float) -> float | None:
        return max(self.pass_until_s - uptime_s, 0.0) if self.pass_for_s else None


class Start(Struct, frozen=True):
    reason: str


class Save(Struct, frozen=True):
    """Ask the job to save and to exit."""

    reason: str


class Stop(Struct, frozen=True):
    """Kill whatever is left of the job."""

    reason: str


class ShutDown(Struct, frozen=True):
    reason: str


_PASS_ENDS = "its pass to the store ends, and no controller renewed it"

Act = Start | Save | Stop | ShutDown


def decide(me: Me, job: Job, uptime_s: float) -> list[Act]:
    """Changes `me.doing` and its like; what is returned is to be carried out in order."""
    if me.reached_s is None:
        me.reached_s = uptime_s
    if me.heard or me.heard_s is None:
        me.heard, me.heard_s = False, uptime_s
    me.met = me.met or job.rate is not None
    # It must be heard, and it must hear: without its orders it cannot know that it was replaced.
    silent_s = uptime_s - min(me.reached_s, me.heard_s)
    end = _end(me, uptime_s, silent_s)
    if end:
        me.shut_down, me.doing, me.reason = True, _final(me), end
        return [Stop(end), ShutDown(end)]
    if me.doing in ("stopped", "failed", "finished"):
        if me.idle_since_s is None:
            me.idle_since_s = uptime_s
        elif silent_s < 2 * BEAT_S and _left_s(me, uptime_s) < DRAIN_S:
            me.shut_down = True  # it has been reported, and nothing else can be done in that time
            return [ShutDown(f"it is done, and its time is up in {_left_s(me, uptime_s):.0f} s")]
        elif silent_s < 2 * BEAT_S and me.pass_ends:
            me.shut_down = True
            return [ShutDown(_PASS_ENDS)]
        elif uptime_s - me.idle_since_s >= UNATTENDED_S:
            me.shut_down = True
            return [ShutDown(f"it is done, and no controller came for {UNATTENDED_S} s")]
        return []
    if silent_s >= FENCE_S:
        me.doing = "stopped"
        me.reason = f"it could not reach the store for {silent_s:.0f} s"
        return [Stop(me.reason)]
    if job.state == "exited":
        return _exited(me, job, uptime_s)
    why = _save_why(me, uptime_s)
    if why == _PASS_ENDS:
        me.pass_ends = True
    if why and job.state == "running" and not me.asked_to_save:
        me.asked_to_save, me.doing, me.reason = True, "saving", why
        return [Save(why)]
    if why and job.state == "none":
        me.doing, me.reason = "stopped", why
        return []
    if job.state == "none" and me.resume is not None:
        me.doing = "working"
        return [Start(f"from checkpoint {me.resume}" if me.resume else "from the beginning")]
    return []


def _end(me: Me, uptime_s: float, silent_s: float) -> str:
    if me.fenced:
        return me.fenced
    if _left_s(me, uptime_s) <= 0:
        return f"it has been up for {uptime_s:.0f} s, all that it was given"
    if silent_s >= UNREACHABLE_S:
        return f"it could not reach the store for {silent_s:.0f} s"
    return ""


def _final(me: Me) -> str:
    return me.doing if me.doing in ("failed", "finished") else "stopped"


def _save_why(me: Me, uptime_s: float) -> str:
    if me.notice:
        return "interruption notice from the provider"
    if me.draining:
        return me.draining
    left_s = _left_s(me, uptime_s)
    if left_s < DRAIN_S:
        return f"its time is up in {left_s:.0f} s"
    pass_left_s = me.pass_left_s(uptime_s)
    if me.pass_ends or (pass_left_s is not None and pass_left_s < PASS_ENDS_S):
        return _PASS_ENDS
    return ""


def _left_s(me: Me, uptime_s: float) -> float:
    """Until it shuts itself down, at the latest."""
    return me.hard_stop_s - SHUTDOWN_S - BEAT_S - uptime_s


def _exited(me: Me, job: Job, uptime_s: float) -> list[Act]:
    if me.asked_to_save:
        # As it was asked to. Its code tells nothing: many jobs exit well after they have saved. One
        # that was done ends at once when it is started again.
        me.doing = "stopped"
        return []
    if job.exit_code == 0:
        me.doing, me.reason = "finished", "the job succeeded"
        return []
    here = me.nodes == 1 and not _save_why(me, uptime_s)
    if here and job.again and job.saved > me.killed_at:
        # No try is counted, and it cannot go on for ever: each time it must have got further.
        me.killed_at = job.saved
        return [Start(f"again: it was killed (exit code {job.exit_code})")]
    if job.trouble == "infrastructure":
        me.doing, me.reason = "failed", "the machine, not the job, is to blame"
        return []
    what = "the job's setup" if job.setup else "the job"
    failed = f"{what} has failed with exit code {job.exit_code}"
    if failures.is_hopeless(me.retry_on, job.exit_code, job.trouble):
        me.failures, me.doing = me.failures + 1, "failed"
        me.reason = f"{failed}, which no retry would change"
        if me.retry_on is not None:
            me.reason = f"{failed}, which is not one of retry_on: {', '.join(me.retry_on)}"
        return []
    me.failures = 1 if job.saved > me.failed_at else me.failures + 1
    me.failed_at = job.saved
    if here and me.failures < me.tries:
        # In place: the machine is good and stays, and nobody else has to start again.
        return [Start(f"again, after exit code {job.exit_code}: {me.failures} of {me.tries} tries")]
    me.doing, me.reason = "failed", failed
    return []
