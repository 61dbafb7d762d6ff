"""While a leg is under way: what its machines say, and whether it is still wanted."""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.base.units import format_hours
from tradewind.lifecycle import forecast
from tradewind.lifecycle.ask import ask, loudly, must_move
from tradewind.lifecycle.fold import ENDED_EARLY, NOT_NEEDED
from tradewind.lifecycle.money import after_draining, cap, countable, reserve, spent, used_s
from tradewind.lifecycle.seen import Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.event import Ended, Event, LegDraining, LegOver, LegUp, Progress
from tradewind.model.run import Heartbeat, Spec, Way
from tradewind.model.timing import DRAIN_S, LOST_S
from tradewind.policy.base import Policy

STAY_S = 600.0
"""A leg that has just begun is not left for a better one: speeds take a while to settle."""
_KILLED = -9
_SETTLE_S = 60.0
"""In a rehearsal too, whose world may go faster than its machines."""
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
        return _requested(state, spec, leg, seen, now)
    over = _finished(state, leg, beats) or _broken(state, leg, seen, beats)
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
    if spec.max_duration_s is not None:
        up_s = used_s(state, seen)
        if up_s >= spec.max_duration_s:
            most = format_hours(spec.max_duration_s / 3600)
            why = f"its machines were up for {format_hours(up_s / 3600)}, and may be for {most}"
            return "too_long", why
    return None


def _requested(state: RunState, spec: Spec, leg: Leg, seen: Seen, now: float) -> list[Event]:
    asked = unwanted(state, spec, seen, now)
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
    asked = unwanted(state, spec, seen, now)
    if asked and any(beat.doing == "working" for beat in beats):
        return [LegDraining(leg=leg.number, cause=asked[0], reason=asked[1])]
    if asked:
        return [_over(leg, beats, asked[0], asked[1])]
    if len(beats) == len(leg.machines):
        return [LegUp(leg=leg.number, reason="every supervisor has reported")]
    limit = leg.request.way.facts.boot_timeout_s
    if max(seen.known_s(leg.at), _billed_s(state, leg, seen)) >= limit:
        silent = len(leg.machines) - len(beats)
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


def _broken(state: RunState, leg: Leg, seen: Seen, beats: list[Heartbeat]) -> list[Event]:
    for beat in beats:
        if beat.doing == "failed":
            cause = "infrastructure" if beat.trouble == "infrastructure" else "job_failed"
            why = beat.reason or f"the job has failed with exit code {beat.exit_code}"
            return [_over(leg, beats, cause, why, beat)]
        if beat.doing == "stopped" and leg.state != "draining":
            # After a notice it need not wait for us: it may have saved before we saw the notice.
            cause = "interrupted" if beat.notice else "stopped"
            return [_over(leg, beats, cause, beat.reason or "its supervisor has stopped it")]
    for name in leg.machines:
        if state.machines[name].ended:
            cause, why = _gone(state, leg, name, beats)
            return [_over(leg, beats, leg.cause or cause, why)]
        found = seen.beats.get(name)
        # Where there is no heartbeat to be read, it is silent since we first looked.
        silent_s = found[1] if found else 0.0 if leg.state == "booting" else seen.known_s(leg.at)
        if silent_s >= LOST_S:
            why = f"nothing was heard of machine {name} for {silent_s:.0f} s"
            return [_over(leg, beats, leg.cause or "lost", why)]
    return []


def _gone(state: RunState, leg: Leg, name: str, beats: list[Heartbeat]) -> tuple[str, str]:
    """Spot machines are taken, and that is nobody's fault. But one that ends without notice, before
    it should even have come up and with nothing saved, may as well have ended by itself, and so
    would the next and the one after that."""
    if leg.request.way.market != "spot":
        return "infrastructure", f"machine {name} ended by itself"
    machine = state.machines[name].machine
    up_s = (machine.ended_s or machine.launched_s) - machine.launched_s
    saved = max([state.saved, *(beat.saved for beat in beats)])
    told = any(beat.notice for beat in beats)
    if told or saved > leg.began_at or up_s >= leg.request.way.facts.boot_timeout_s:
        return "interrupted", f"the provider reclaimed machine {name}"
    return ENDED_EARLY, f"machine {name} was reclaimed, or ended by itself, after {up_s} s"


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
    progress = _progress(state, spec, leg, beats)
    if progress:
        records.append(progress)
    records += _announced(state, spec, leg, seen, now)
    asked = unwanted(state, spec, seen, now)
    if asked:
        return [*records, LegDraining(leg=leg.number, cause=asked[0], reason=asked[1])]
    for beat in beats:
        if beat.notice:
            why = f"interruption notice for machine {beat.machine_id}"
            return [*records, LegDraining(leg=leg.number, cause="interrupted", reason=why)]
    idle_s = min((beat.idle_s for beat in beats), default=0.0)
    seen_all = len(beats) == len(leg.machines)  # one of which nothing is known may be at work
    if spec.idle_stop and spec.idle_s is not None and seen_all and idle_s >= spec.idle_s:
        why = (
            f"the job has made no step and no use of its machines for {format_hours(idle_s / 3600)}"
        )
        return [*records, LegDraining(leg=leg.number, cause="idle", reason=why)]
    stay_s = STAY_S if spec.speed == 1 else max(STAY_S / spec.speed, _SETTLE_S)
    if seen.known_s(leg.at) >= stay_s and beats and (beats[0].rate or not spec.steps):
        budget, most = None, cap(spec, seen)
        if most is not None and countable(state, seen):
            budget = most - spent(state, seen)
            left = most - after_draining(state, seen, leg.request.way)
            ways = tuple(way for way in ways if reserve(way) <= left)
        question = forecast.known(state, spec, seen, ways, now, budget)
        choice, trouble = ask(policy, question)
        records += loudly(state, leg.number, trouble)
        if must_move(question, choice, trouble):
            records.append(LegDraining(leg=leg.number, cause="moved", reason=choice.reason))
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
    ratio = rate / leg.request.way.rate if rate else state.ratio
    if saved <= state.saved and abs(ratio - state.ratio) <= _NEWS * state.ratio:
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
        failures=0 if cause == "infrastructure" else max((b.failures for b in beats), default=0),
        exit_code=failed.exit_code if failed else None,
        tail=failed.tail if failed else next((b.tail for b in beats if b.failures), ""),
    )
