"""A supervisor's exchange with the store, as generators of I/O steps.

Checkpoints are `runs/<run-id>/checkpoints/<leg>/<step>.json`, each created when all of its parts
are there. A leg continues from the greatest key of the legs before it: the newest leg that saved
anything, however far an older one, replaced but alive, may have come since. All machines of a leg
must agree, so the first to choose records it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec import json
from msgspec.structs import replace

from tradewind import journal
from tradewind.errors import TradewindError
from tradewind.model import bounds, places
from tradewind.model.event import Ended, LaunchRefused, LegDraining, LegOver, LegRequested
from tradewind.model.run import Heartbeat
from tradewind.model.usage import Usage
from tradewind.steps import Steps
from tradewind.store.steps import Create, Get, ListAfter, Replace
from tradewind.supervisor.decide import Act, Job, Me, decide

_encode = json.Encoder().encode


def nothing() -> Usage | None:
    return None


def beat(
    me: Me, job: Job, uptime_s: float, used: Callable[[], Usage | None] = nothing
) -> Steps[list[Act]]:
    """Learn, decide, report. What it decided is for the caller to carry out, at once.

    The runtime takes the same three apart, to decide on what it sees once it has learnt, and to
    carry that out before a store that hangs is told."""
    yield from learn(me)
    acts = decide(me, job, uptime_s)
    yield from tell(me, job, uptime_s, used)
    return acts


def learn(me: Me) -> Steps[None]:
    """Whatever goes wrong, the network, a key that has expired, a journal that is too new: for how
    long nothing could be learnt is what decides."""
    with suppress(TradewindError):
        yield from orders(me)
        me.heard = True
        if me.resume is None and not me.fenced and not me.relieves:
            yield from choose_resume(me)


def tell(
    me: Me, job: Job, uptime_s: float, used: Callable[[], Usage | None] = nothing
) -> Steps[None]:
    """`used` says what the machine has asked of the store, when that is to be told."""
    with suppress(TradewindError):
        yield from report(me, job, uptime_s, used())


def orders(me: Me) -> Steps[None]:
    """What the journal says about our leg that we do not know yet."""
    for commit in (yield from journal.read_steps(me.run_id, me.read)):
        me.read = commit.number
        for event in commit.events:
            # A refusal too: another's call with the same id may have gone through after it.
            if isinstance(event, LegOver | LaunchRefused) and event.leg == me.leg:
                me.fenced = f"its leg is over: {event.reason}"
            elif isinstance(event, LegOver) and event.leg == me.relieves:
                me.relieves = 0  # what it saved is there to go on from
            elif isinstance(event, LegRequested) and event.request.leg > me.leg:
                if event.request.relieves != me.leg:
                    me.fenced = me.fenced or "another leg has taken its place"
            elif isinstance(event, Ended):
                me.fenced = me.fenced or f"the run has ended: {event.reason}"
            elif isinstance(event, LegDraining) and event.leg == me.leg:
                me.draining = event.reason


def report(me: Me, job: Job, uptime_s: float, usage: Usage | None) -> Steps[None]:
    beat = Heartbeat(
        machine_id=me.machine_id,
        leg=me.leg,
        beat=me.beat + 1,
        uptime_s=uptime_s,
        doing=me.doing,
        step=job.step,
        rate=job.rate,
        saved=job.saved,
        failures=me.failures,
        exit_code=job.exit_code,
        trouble=job.trouble,
        tail=job.tail,
        notice=me.notice,
        at_risk=me.at_risk,
        reason=me.reason,
        stalled_s=job.stalled_s,
        idle_s=job.idle_s,
        figures=job.figures,
    )
    me.beat += 1
    data = _encode(beat) if usage is None else _counting_itself(beat, usage)
    yield Replace(places.heartbeat(me.run_id, me.machine_id), data)
    # From when it was sent: whoever sees it has seen it later.
    me.reached_s = uptime_s


def _counting_itself(beat: Heartbeat, usage: Usage) -> bytes:
    """It is a request too, and as long as the figures in it are: more of them never make it
    shorter, so this comes to an end."""
    size = 0
    while True:
        data = _encode(replace(beat, usage=usage + Usage(writes=1, bytes_in=size)))
        if len(data) == size:
            return data
        size = len(data)


def choose_resume(me: Me) -> Steps[None]:
    folder = places.checkpoints(me.run_id)
    keys: list[str] = yield ListAfter(folder)
    mine = f"{folder}{me.leg:06d}/"
    chosen = max((key for key in keys if key < mine), default="")
    place = places.resume(me.run_id, me.leg)
    if (yield Create(place, chosen.encode())):
        me.resume = chosen
    else:
        me.resume = (yield Get(place, bounds.POINTER)).decode()
