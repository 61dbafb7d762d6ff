"""While a leg is under way: what its machines say, and whether it is still wanted."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tradewind.base.units import format_hours, format_money
from tradewind.lifecycle import forecast, progress
from tradewind.lifecycle.ask import ask, loudly, must_move
from tradewind.lifecycle.beside import asked as asked_beside
from tradewind.lifecycle.beside import is_gone, pays
from tradewind.lifecycle.fold import (
    DISBELIEVED,
    ENDED_EARLY,
    HARD_STOP,
    NOT_NEEDED,
    STALLED,
    UNATTENDED,
)
from tradewind.lifecycle.money import (
    after_draining,
    cap,
    countable,
    limit_s,
    needed,
    price_now,
    spent,
    to_stop,
    used_s,
)
from tradewind.lifecycle.opening import closing, fits, left_s
from tradewind.lifecycle.purchase import may_work_beside
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.event import Ended, Event, LegDraining, LegLimited, LegOver, LegUp, Progress
from tradewind.model.failures import is_hopeless
from tradewind.model.run import JOB, TAKEN, Heartbeat, Spec, Way
from tradewind.model.timing import BEAT_S, DRAIN_S, LOST_S, PASS_ENDS_S, SHUTDOWN_S
from tradewind.policy.base import Policy

STAY_S = 600.0
"""A leg that has just begun is not left for a better one: speeds take a while to settle."""
_KILLED = -9
JOB_FAILED = "job_failed"
HOPELESS = "job_hopeless"
"""The same, and another try would end as this one."""
_SETTLE_S = 60.0
"""In a rehearsal too, whose world may go faster than its machines."""
_OTHER, _LEAST_OTHER_S = 0.01, 60.0
"""Where machines may be up for longer or less long by so much than they know, they are told."""
_NEWS = 0.05
"""A change of speed by this share is worth a record."""


def during(
    state: RunState,
    spec: Spec,
    leg: Leg,
    seen: Seen,
    ways: tuple[Way, ...],
    now: float,
    policy: Policy,
) -> list[Event]:
    beats = [seen.beats[name][0] for name in leg.machines if name in seen.beats]
    if leg.state == "requested":
        return requested(state, spec, leg, seen, now)
    over = _finished(state, leg, beats) or _broken(state, spec, leg, seen, beats)
    if over:
        return over
    if leg.state == "booting":
        return _booting(state, spec, leg, seen, now, beats)
    if leg.state == "draining":
        if beats and all(beat.doing in ("stopped", "finished") for beat in beats):
            killed = any(beat.exit_code == _KILLED for beat in beats)
            why = "its time to save ran out" if killed else "it stopped as requested"
            return [_over(leg, beats, leg.cause, why)]
        if seen.known_s(leg.at) >= DRAIN_S:
            return [_over(leg, beats, leg.cause, f"it did not stop within {DRAIN_S} s")]
        return []
    return _running(state, spec, leg, seen, ways, now, policy, beats)


def unwanted(state: RunState, spec: Spec, seen: Seen, now: float) -> tuple[str, str] | None:
    if state.cancelled:
        return "cancelled", state.cancelled
    if spec.hard and spec.deadline_s is not None and now >= spec.deadline_s:
        return "too_late", "the deadline has passed (hard: true)"
    known_at = state.warned.get(progress.LOST, 0)
    if known_at and seen.known_s(known_at) * spec.speed >= progress.GRACE_S:
        return "too_late", "no machine can meet the deadline any more (hard: true)"
    if spec.max_duration_s is not None:
        up_s = used_s(state, seen)
        if up_s >= spec.max_duration_s:
            most = format_hours(spec.max_duration_s / 3600)
            why = f"its machines were up for {format_hours(up_s / 3600)}, and may be for {most}"
            return "too_long", why
    return None


def to_end(state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float) -> tuple[str, str] | None:
    """Why what is under way is to end: for good, or until its window opens again."""
    return unwanted(state, spec, seen, now) or closing(spec, leg.request, now)


def requested(state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float) -> list[Event]:
    asked = to_end(state, spec, leg, seen, now)
    if asked:
        return [LegOver(leg=leg.number, cause=asked[0], reason=asked[1], saved=state.saved)]
    facts = leg.request.way.facts
    waited = seen.known_s(leg.requested_at)
    patience = facts.listing_lag_s if not facts.tokens else facts.boot_timeout_s
    doubtful = facts.tokens or leg.unknown or leg.requested_at not in seen.wrote
    if doubtful and waited >= patience:
        why = f"unknown whether the launch succeeded, and after {patience} s"
        some = f"only {len(leg.machines)} machines are" if leg.machines else "no machine is"
        return [
            LegOver(
                leg=leg.number,
                cause="launch_unknown",
                reason=f"{why} {some} listed",
                saved=state.saved,
            )
        ]
    return []


def _booting(
    state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float, beats: list[Heartbeat]
) -> list[Event]:
    asked = to_end(state, spec, leg, seen, now)
    if asked and any(beat.doing == "working" for beat in beats):
        return [LegDraining(leg=leg.number, cause=asked[0], reason=asked[1])]
    if asked:
        return [_over(leg, beats, asked[0], asked[1])]
    if len(beats) == len(leg.machines):
        return [LegUp(leg=leg.number, reason="every supervisor has reported")]
    limit = leg.request.way.facts.boot_timeout_s
    if max(seen.known_s(leg.at), _billed_s(state, leg, seen)) >= limit:
        silent = len(leg.machines) - len(beats)
        foreign = _disbelieved(seen, (name for name in leg.machines if name not in seen.beats))
        if foreign:
            return [_over(leg, beats, DISBELIEVED, foreign)]
        why = f"{silent} of {len(leg.machines)} machines did not report within {limit} s"
        return [_over(leg, beats, "boot_timeout", why)]
    return _announced(state, spec, leg, seen, now)


def _billed_s(state: RunState, leg: Leg, seen: Seen) -> float:
    """For how long the provider has billed all machines, by its own clock: an observer that has
    only just come need not wait as long again, while a machine that never comes up is paid for."""
    clock = seen.clocks.get(leg.request.way.provider)
    if clock is None:
        return 0.0
    return clock - max(state.machines[name].machine.launched_s for name in leg.machines)


def _finished(state: RunState, leg: Leg, beats: list[Heartbeat]) -> list[Event]:
    if len(beats) < len(leg.machines) or any(beat.doing != "finished" for beat in beats):
        return []
    records: list[Event] = [_over(leg, beats, "finished", "the job succeeded on every machine")]
    if state.relief:
        why = f"the job succeeded on leg {leg.number}"
        records.append(LegOver(leg=state.relief.number, cause=NOT_NEEDED, reason=why))
    return [*records, Ended(outcome="succeeded", reason="the job succeeded")]


def _broken(
    state: RunState, spec: Spec, leg: Leg, seen: Seen, beats: list[Heartbeat]
) -> list[Event]:
    for beat in beats:
        if beat.doing == "failed":
            cause = "infrastructure" if beat.trouble == "infrastructure" else JOB_FAILED
            if cause == JOB_FAILED and is_hopeless(spec.retry_on, beat.exit_code, beat.trouble):
                cause = HOPELESS
            why = beat.reason or f"the job has failed with exit code {beat.exit_code}"
            if cause == "infrastructure" and (asked := _asked(leg, beats)):
                return [_over(leg, beats, asked, why)]
            return [_over(leg, beats, cause, why, beat)]
        if beat.doing == "stopped" and leg.state != "draining":
            # After a notice it need not wait for us: it may have saved before we saw the notice.
            cause = "interrupted" if beat.notice else _by_itself(leg, beat)
            return [_over(leg, beats, cause, beat.reason or "its supervisor has stopped it")]
    for name in _ended(state, leg):
        cause, why = _gone(state, leg, name, beats)
        return [_over(leg, beats, leg.cause or cause, why)]
    for name in leg.machines:
        found = seen.beats.get(name)
        # Where there is no heartbeat to be read, it is silent since we first looked.
        silent_s = found[1] if found else 0.0 if leg.state == "booting" else seen.known_s(leg.at)
        if silent_s >= LOST_S:
            why = f"nothing was heard of machine {name} for {silent_s:.0f} s"
            foreign = _disbelieved(seen, (name,))
            cause = DISBELIEVED if foreign else "lost"
            return [_over(leg, beats, leg.cause or cause, foreign or why)]
    return []


def _disbelieved(seen: Seen, silent: Iterable[str]) -> str:
    """Of machines that are silent: what another one of the store can have written over what they
    say, or they themselves. Whoever it was, it is nothing that the job has done."""
    names = [name for name in silent if name in seen.disbelieved]
    if not names:
        return ""
    return (
        f"the heartbeats of machine {', '.join(names)} cannot be believed: they are not signed by"
        " its launch, are older than others, or cannot be true"
    )


def _asked(leg: Leg, beats: list[Heartbeat]) -> str:
    """Why its machines were to save and end, if any of them was. Ranks tell each other, so a job
    may end as it should before its own supervisor hears of it, which takes that for a failure."""
    return leg.cause or ("interrupted" if any(beat.notice for beat in beats) else "")


def _by_itself(leg: Leg, beat: Heartbeat) -> str:
    """Where nobody renewed its pass to the store, nobody looked after the run: that is no fault of
    the machine, nor of its place."""
    if beat.uptime_s >= leg.request.hard_stop_s - DRAIN_S - SHUTDOWN_S - BEAT_S:
        return HARD_STOP
    left_s = beat.pass_left_s
    return UNATTENDED if left_s is not None and left_s < PASS_ENDS_S else "stopped"


def _gone(state: RunState, leg: Leg, name: str, beats: list[Heartbeat]) -> tuple[str, str]:
    """Spot machines are taken, and that is nobody's fault. But one that ends without notice, before
    it should even have come up and with nothing saved, may as well have ended by itself, and so
    would the next and the one after that."""
    machine = state.machines[name].machine
    if machine.ended_by == JOB:
        return JOB_FAILED, f"machine {name} ended by its job: {machine.ended_why}"
    if machine.ended_by == TAKEN:
        return "interrupted", f"machine {name} was taken: {machine.ended_why}"
    told_why = f": {machine.ended_why}" if machine.ended_why else ""
    if leg.request.way.market != "spot":
        return "infrastructure", f"machine {name} ended by itself{told_why}"
    up_s = (machine.ended_s or machine.launched_s) - machine.launched_s
    saved = max([state.saved, *(beat.saved for beat in beats)])
    told = any(beat.notice for beat in beats)
    if told or saved > leg.began_at or up_s >= leg.request.way.facts.boot_timeout_s:
        return "interrupted", f"the provider reclaimed machine {name}{told_why}"
    early = f"machine {name} was reclaimed, or ended by itself, after {up_s} s"
    return ENDED_EARLY, early + told_why


def _ended(state: RunState, leg: Leg) -> list[str]:
    """Machines of it that are no more; those first whose provider tells why: the others may have
    ended because of them."""
    ended = [name for name in leg.machines if state.machines[name].ended]
    order = {JOB: 0, TAKEN: 1}
    return sorted(ended, key=lambda name: order.get(state.machines[name].machine.ended_by, 2))


def _running(
    state: RunState,
    spec: Spec,
    leg: Leg,
    seen: Seen,
    ways: tuple[Way, ...],
    now: float,
    policy: Policy,
    beats: list[Heartbeat],
) -> list[Event]:
    records: list[Event] = []
    further = _progress(state, spec, leg, beats)
    if further:
        records.append(further)
    records += _announced(state, spec, leg, seen, now)
    records += progress.hopeless(state, spec, seen, ways, now)
    end = _to_drain(state, spec, leg, seen, now, beats)
    if end:
        drain = LegDraining(
            leg=leg.number, cause=end[0], reason=end[1], stalled_s=progress.still_s(leg, beats)
        )
        return [*records, drain]
    if limited := _limited(state, spec, leg, seen):
        return [*records, *limited]
    if state.queued and not state.queued.request.way.facts.queues:
        return records  # what it is left for comes up
    stay_s = STAY_S if spec.speed == 1 else max(STAY_S / spec.speed, _SETTLE_S)
    if beats and not beats[0].rate and spec.steps:
        stay_s *= 2  # it may tell how fast it is in a moment; else by what was thought
    if beats and seen.known_s(leg.at) >= stay_s:
        records += _moved(state, spec, leg, seen, ways, now, policy, beats, stay_s)
    return records


def _to_drain(
    state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float, beats: list[Heartbeat]
) -> tuple[str, str] | None:
    """Why what works is to save and to stop, whatever else there is."""
    asked = to_end(state, spec, leg, seen, now)
    if asked:
        return asked
    for beat in beats:
        if beat.notice:
            return "interrupted", f"interruption notice for machine {beat.machine_id}"
    if len(beats) == len(leg.machines):  # one of which nothing is known may be at work
        still = progress.stalled(state, spec, leg, beats)
        if still:
            return STALLED, still
        idle_s = min(beat.idle_s for beat in beats)
        if spec.idle_stop and spec.idle_s is not None and idle_s >= spec.idle_s:
            hours = format_hours(idle_s / 3600)
            return "idle", f"the job has made no step and no use of its machines for {hours}"
    most = cap(spec, seen)
    if most is not None and countable(state, seen):
        gone = spent(state, seen)
        if gone + to_stop(seen, leg) > most:
            left = format_money(max(most - gone, 0), digits=2)
            return "budget", f"{left} may still be spent: enough to save and to end"
    return None


def _limited(state: RunState, spec: Spec, leg: Leg, seen: Seen) -> list[Event]:
    """How long its machines may be up by what they cost and have moved until now, where that is
    another time than they know: they are told, for whoever looks may not look again."""
    most = cap(spec, seen)
    if most is None or len(state.legs) > 1 or not countable(state, seen):
        return []
    was_s, given_s = leg.request.hard_stop_s, leg.given_s or leg.request.hard_stop_s
    most_s = min(limit_s(state, seen, leg, most), given_s)
    if abs(most_s - was_s) < max(_LEAST_OTHER_S, _OTHER * was_s):
        return []
    hour = format_money(price_now(seen, leg, leg.request.way), digits=2)
    left = format_money(max(most - spent(state, seen), 0), digits=2)
    why = (
        f"at {hour} an hour now, and with {left} left, its machines save and end after"
        f" {format_hours(most_s / 3600)}, whether anybody looks or not"
    )
    return [LegLimited(leg=leg.number, hard_stop_s=most_s, reason=why)]


def _moved(
    state: RunState,
    spec: Spec,
    leg: Leg,
    seen: Seen,
    ways: tuple[Way, ...],
    now: float,
    policy: Policy,
    beats: list[Heartbeat],
    stay_s: float,
) -> list[Event]:
    budget, most = None, cap(spec, seen)
    if most is not None and countable(state, seen):
        budget = most - spent(state, seen)
        left = most - after_draining(state, seen, leg.request.way)
        ways = tuple(way for way in ways if needed(state, seen, way) <= left)
    # What came out of a queue and was not needed is paid for too: as with moves, not each pass.
    waits = seen.known_s(state.over_at) < stay_s
    if state.queued or waits or not may_work_beside(spec, seen):
        ways = tuple(way for way in ways if not way.facts.queues)
    open_s = left_s(spec, now)
    ways = tuple(way for way in ways if fits(way, open_s))
    question = forecast.known(state, spec, seen, ways, now, budget)
    choice, trouble = ask(policy, question)
    records = loudly(state, leg.number, trouble)
    chosen = None if choice.option is None else question.options[choice.option].way
    queues = chosen is not None and chosen is not leg.request.way and chosen.facts.queues
    moves = must_move(question, choice, trouble) and pays(question, choice)
    if chosen and (queues or moves):
        first = asked_beside(state, spec, seen, leg, chosen, question, choice, now)
        if not first and not is_gone(state, seen, chosen):
            drain = LegDraining(
                leg=leg.number, cause="moved", reason=choice.reason,
                stalled_s=progress.still_s(leg, beats),
            )  # fmt: skip
            first = [drain]
        records += first
    return records


def _announced(state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float) -> list[Event]:
    if spec.budget is not None and not countable(state, seen):
        spec = replace(spec, budget=None)  # what is not known is not judged
    announced = forecast.of_held(state, spec, seen, leg, now)
    return [announced] if announced else []


def _progress(state: RunState, spec: Spec, leg: Leg, beats: list[Heartbeat]) -> Progress | None:
    """Worth a commit when there is a new checkpoint, or the speed is news."""
    if not beats:
        return None
    first = beats[0]
    saved = max(first.saved, state.saved)
    rate = first.rate if spec.steps else None
    way = leg.request.way
    before = state.ratio_of(way) if way.guessed else state.ratio
    ratio = rate / way.rate if rate else before
    if saved <= state.saved and abs(ratio - before) <= _NEWS * before:
        return None
    return Progress(leg=leg.number, step=first.step, saved=saved, rate=rate)


def _over(
    leg: Leg, beats: list[Heartbeat], cause: str, reason: str, failed: Heartbeat | None = None
) -> LegOver:
    return LegOver(
        leg=leg.number,
        cause=cause,
        reason=reason,
        step=beats[0].step if beats else 0.0,
        saved=max((beat.saved for beat in beats), default=0.0),
        failures=_failures(cause, beats, failed),
        exit_code=failed.exit_code if failed else None,
        tail=failed.tail if failed else next((b.tail for b in beats if b.failures), ""),
        stalled_s=0.0 if leg.state == "draining" else progress.still_s(leg, beats),
    )


def _failures(cause: str, beats: list[Heartbeat], failed: Heartbeat | None) -> int:
    """Of the job by itself. One that took its machine along could not report that it failed."""
    if cause == "infrastructure":
        return 0
    told = max((beat.failures for beat in beats), default=0)
    return told + (cause == JOB_FAILED and failed is None)
