"""A supervisor's exchange with the store, as generators of I/O steps.

Checkpoints are `runs/<run-id>/checkpoints/<turn>/<step>.json`, each created when all of its parts
are there. A leg's turn is its number; of one that was in a queue while others worked, it is a
later one. A leg continues from the greatest key of the turns before its own: the newest leg that
saved anything, however far an older one, replaced but alive, may have come since. All machines of a
leg must agree, so rank 0 chooses, and signs it: others could write there too, and what they have
put there is not followed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from msgspec import json
from msgspec.structs import replace

from tradewind.base import signing
from tradewind.base.decoding import decoder
from tradewind.base.errors import BadFile, TooLarge, TradewindError
from tradewind.base.steps import Steps
from tradewind.journal import journal
from tradewind.model import bounds, places
from tradewind.model.event import (
    Ended,
    LaunchRefused,
    LegDraining,
    LegLimited,
    LegOver,
    LegRequested,
    MachinesFound,
)
from tradewind.model.plausible import MOST_WORDS
from tradewind.model.run import Heartbeat
from tradewind.model.usage import Usage
from tradewind.store import lending
from tradewind.store.steps import Create, Find, ListAfter, Replace
from tradewind.supervisor.decide import Act, Job, Me, decide

_encode = json.Encoder().encode
_decode = decoder(Heartbeat)


def nothing() -> Usage | None:
    return None


def beat(
    me: Me, job: Job, uptime_s: float, used: Callable[[], Usage | None] = nothing
) -> Steps[list[Act]]:
    """Learn, decide, report. What it decided is for the caller to carry out, at once.

    The runtime takes the same three apart, to decide on what it sees once it has learnt, and to
    carry that out before a store that hangs is told."""
    yield from learn(me, uptime_s)
    acts = decide(me, job, uptime_s)
    yield from tell(me, job, uptime_s, used)
    return acts


def learn(me: Me, uptime_s: float) -> Steps[None]:
    """Whatever goes wrong, the network, a key that has expired, a journal that is too new: for how
    long nothing could be learnt is what decides."""
    with suppress(TradewindError):
        yield from orders(me)
        me.heard = True
        yield from renew(me, uptime_s)
        if me.resume is None and me.may_begin:
            yield from choose_resume(me)
        elif me.nodes > 1 and not me.met:
            yield from put_back(me)


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
                me.fenced = f"its leg has ended: {event.reason}"
            elif isinstance(event, LegOver) and event.leg == me.relieves:
                me.relieves = 0  # what it saved is there to go on from
            elif isinstance(event, LegOver | LaunchRefused) and event.leg in me.beside:
                me.beside.discard(event.leg)
            elif isinstance(event, LegRequested) and event.request.leg > me.leg:
                me.last = event.request.leg
                if event.request.beside == me.leg:
                    me.beside.add(event.request.leg)
                elif event.request.relieves != me.leg:
                    me.fenced = me.fenced or "another leg has replaced it"
            elif isinstance(event, MachinesFound) and me.waits:
                me.found |= {each.rank for each in event.machines if each.leg == me.leg}
                if len(me.found) == me.nodes:
                    me.waits, me.turn = False, me.last + 1  # as lifecycle/fold.py counts
            elif isinstance(event, Ended):
                me.fenced = me.fenced or f"the run has ended: {event.reason}"
            elif isinstance(event, LegDraining) and event.leg == me.leg:
                me.draining = event.reason
            elif isinstance(event, LegLimited) and event.leg == me.leg:
                me.given_s = me.given_s or me.hard_stop_s
                me.hard_stop_s = min(event.hard_stop_s, me.given_s)


def renew(me: Me, uptime_s: float) -> Steps[None]:
    """Takes a newer pass to the store, once half of the present one's time is over: then a
    controller is asked for one, by the heartbeat. It was lent after the look before, which did not
    find it, so no clock but this machine's own tells how long it lasts."""
    left_s = me.pass_left_s(uptime_s)
    if left_s is None or me.pass_ends or left_s >= me.pass_for_s / 2:
        return
    found: lending.Pass | None = None
    with suppress(BadFile):  # too large to be one, too
        data = yield Find(places.a_pass(me.run_id, me.launch_id, me.rank), bounds.PASS)
        found = lending.decoded(data) if data is not None else None
    before_s, me.pass_looked_s = me.pass_looked_s, uptime_s
    if found is None or found.mark == me.pass_seen or found.run_id != me.run_id:
        return
    me.pass_seen = found.mark
    until_s = before_s + found.for_s
    if until_s > me.pass_until_s:  # else the next one will do: it is counted from this look
        me.pass_lent_s, me.pass_for_s, me.pass_until_s = before_s, found.for_s, until_s
        me.pass_data = data


def report(me: Me, job: Job, uptime_s: float, usage: Usage | None) -> Steps[None]:
    me.saved = max(me.saved, job.saved)
    if job.state == "running":
        me.stalled_s = job.stalled_s  # how it stood is told to the end
    beat = Heartbeat(
        machine_id=me.machine_id,
        leg=me.leg,
        beat=me.beat + 1,
        uptime_s=uptime_s,
        doing=me.doing,
        step=job.step,
        rate=job.rate,
        saved=me.saved,
        failures=me.failures,
        exit_code=job.exit_code,
        trouble=job.trouble,
        tail=job.tail[-MOST_WORDS:],
        notice=me.notice,
        at_risk=me.at_risk,
        reason=me.reason[:MOST_WORDS],
        stalled_s=me.stalled_s,
        idle_s=job.idle_s,
        figures=job.figures,
        pass_left_s=me.pass_left_s(uptime_s),
        serving=job.serving,
    )
    if _decode(_encode(beat)) is None:
        # Figures are the job's own words: if they cannot be true, they shall not cost the machine.
        beat = replace(beat, figures=(), serving=None)
    me.beat += 1
    data = _sealed(beat, me) if usage is None else _counting_itself(beat, usage, me)
    yield Replace(places.heartbeat(me.run_id, me.machine_id), data)
    # From when it was sent: whoever sees it has seen it later.
    me.reached_s = uptime_s


def _sealed(beat: Heartbeat, me: Me) -> bytes:
    return signing.signed(_encode(beat), me.key, signing.HEARTBEAT)


def _counting_itself(beat: Heartbeat, usage: Usage, me: Me) -> bytes:
    """It is a request too, and as long as the figures in it are: more of them never make it
    shorter, so this comes to an end."""
    size, seal = 0, signing.length(me.key)
    while True:
        counted = replace(beat, usage=usage + Usage(writes=1, bytes_in=size))
        long = len(_encode(counted)) + seal
        if long == size:
            return _sealed(counted, me)
        size = long


def choose_resume(me: Me) -> Steps[None]:
    """`me.resume` stays None until it is known: ranks other than 0 wait for that one's word."""
    place = places.resume(me.run_id, me.leg)
    me.resume = yield from _pointer(place, me)
    if me.rank:
        return
    if me.resume is None:
        me.resume = yield from _choose(place, me)
    me.left[place] = _signed(me.resume, me)


def _choose(place: str, me: Me) -> Steps[str]:
    folder = places.checkpoints(me.run_id)
    keys: list[str] = yield ListAfter(folder)
    chosen = max((key for key in keys if _is_earlier(key, me)), default="")
    if not (yield Create(place, _signed(chosen, me))):
        found = yield from _pointer(place, me)
        if found is not None:
            return found  # an earlier try of ours, whose answer was lost
        yield Replace(place, _signed(chosen, me))
    return chosen


def put_back(me: Me) -> Steps[None]:
    """What it has left for the others of its leg, where somebody has written over it: they would
    wait for it until their time is up."""
    for place, data in me.left.items():
        found: bytes | None = None
        with suppress(TooLarge):
            found = yield Find(place, bounds.POINTER)
        if found != data:
            yield Replace(place, data)


def _signed(resume: str, me: Me) -> bytes:
    return signing.signed(resume.encode(), me.key, signing.RESUME)


def _pointer(place: str, me: Me) -> Steps[str | None]:
    """None: nobody of this leg has written it, or it does not lead to a checkpoint of this run."""
    data: bytes | None = None
    with suppress(TooLarge):
        data = yield Find(place, bounds.POINTER)
    said = signing.opened(data, me.key, signing.RESUME) if data is not None else None
    if said is None:
        return None
    try:
        key = said.decode()
    except UnicodeDecodeError:
        return None
    return key if not key or _is_earlier(key, me) else None


def _is_earlier(key: str, me: Me) -> bool:
    """A checkpoint of this run, and of a leg that has worked before this one."""
    folder = places.checkpoints(me.run_id)
    return folder < key < f"{folder}{me.turn:06d}/" and key.startswith(folder)
