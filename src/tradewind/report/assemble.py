"""All that there is to say of a run, put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from tradewind.ledger.postings import RunCost
from tradewind.lifecycle.state import RunState
from tradewind.lifecycle.words import event_words, outcome_words
from tradewind.model import event as events
from tradewind.model.event import Commit, Event
from tradewind.model.run import Heartbeat, Spec
from tradewind.model.sensitive import redacted_tags
from tradewind.report.capacity import Spans, seconds_of, zones_of
from tradewind.report.course import course_of, projection_of
from tradewind.report.curves import Curves
from tradewind.report.figures import Kept, Line, Projection, Rehearsal, Report, Stay
from tradewind.report.purse import compared, money_of
from tradewind.report.quick import in_its_time
from tradewind.report.stays import stays_of

_DOING = {
    "waiting": "waiting for machines",
    "active": "under way",
    "ended": "giving its machines back",
}
_LOCAL = "local"


class Sources(Struct, kw_only=True):
    """What a report is made of."""

    run_id: str
    commits: Sequence[Commit]
    state: RunState
    cost: RunCost
    beats: Mapping[str, Heartbeat] = {}
    curves: Curves
    stored: Sequence[Kept] = ()
    """Checkpoints that the store has."""
    there: Mapping[str, Spans] = {}
    """When spot machines of a zone could be had, where a trace tells it."""
    rehearsal: Rehearsal | None = None


def report(given: Sources, now: datetime) -> Report:
    now = now.astimezone(UTC)
    state, spec = given.state, given.state.spec
    if spec is None:
        words = outcome_words(state.outcome) if state.outcome else "not submitted yet"
        return Report(
            run_id=given.run_id,
            made=now,
            state=state.outcome or "new",
            words=words,
            over=bool(state.outcome),
            events=_lines(given.commits),
        )
    legs, refusals = stays_of(given.commits, given.cost.postings, given.beats)
    legs = [replace(leg, again=given.curves.again.get(leg.leg, 0.0)) for leg in legs]
    submitted = _when(given.commits, events.Submitted) or now
    ended = _when(given.commits, events.Ended) if state.outcome else None
    until = max(ended or now, submitted)
    deadline = _deadline(spec)
    there = given.there
    course = course_of(state, legs, given.commits, given.curves, submitted, until)
    step = _step(state, spec, given.beats, course.points[-1].step)
    money = money_of(given.cost, spec)
    projection = projection_of(state, given.beats, step, money.micros, now)
    alike = all(way.provider == _LOCAL for way in spec.ways)
    money = compared(
        money, state, legs, given.curves, there, submitted, until, deadline, alike=alike
    )
    made = Report(
        run_id=given.run_id,
        made=now,
        name=spec.name,
        state=state.outcome or state.phase,
        words=_words(given.commits, state),
        over=bool(state.outcome),
        command=spec.shown_command,
        project=spec.project,
        user=spec.user,
        tags=redacted_tags(spec.tags),
        submitted=submitted,
        ended=ended,
        deadline=deadline,
        late_s=_late_s(deadline, ended, projection),
        work=spec.work,
        steps=spec.steps,
        step=step,
        saved=state.saved,
        predicted_hours=spec.predicted_hours,
        rehearsal=given.rehearsal,
        seconds=seconds_of(legs, submitted, until),
        legs=tuple(legs),
        refusals=tuple(refusals),
        zones=zones_of(spec.ways, legs, refusals, there, submitted, until),
        course=course,
        projection=projection,
        money=money,
        curves=given.curves.curves(),
        checkpoints=_checkpoints(given, legs),
        events=_lines(given.commits),
        notes=_notes(given),
    )
    return in_its_time(made, spec.speed)


def _when(commits: Sequence[Commit], kind: type[Event]) -> datetime | None:
    """The last time that it happened."""
    for commit in reversed(commits):
        if any(isinstance(event, kind) for event in commit.events):
            return commit.at
    return None


def _deadline(spec: Spec) -> datetime | None:
    if spec.deadline_s is None:
        return None
    try:
        return datetime.fromtimestamp(spec.deadline_s, UTC)
    except (OverflowError, ValueError, OSError):
        return None  # so far away that no calendar has it


def _step(state: RunState, spec: Spec, beats: Mapping[str, Heartbeat], by_course: float) -> float:
    if not spec.steps:
        return spec.work if state.outcome == "succeeded" else min(by_course, spec.work)
    now = max((beat.step for beat in beats.values()), default=0.0)
    return now or max(state.step, state.saved)


def _late_s(
    deadline: datetime | None, ended: datetime | None, projection: Projection | None
) -> float | None:
    at = ended or (projection.finish if projection else None)
    return (at - deadline).total_seconds() if at and deadline else None


def _words(commits: Sequence[Commit], state: RunState) -> str:
    if not state.outcome:
        return _DOING.get(state.phase, state.phase)
    for commit in reversed(commits):
        for event in commit.events:
            if isinstance(event, events.Ended):
                return f"{outcome_words(state.outcome)}: {event.reason}"
    return outcome_words(state.outcome)


def _lines(commits: Iterable[Commit]) -> tuple[Line, ...]:
    found = []
    for commit in commits:
        for event in commit.events:
            words, _, tail = event_words(event).partition("\n")
            if isinstance(event, events.Submitted):
                words = "submitted"  # commands hold keys now and then, and reports are sent on
            if words:
                found.append(Line(at=commit.at, words=words, tail=tail))
    return tuple(found)


def _checkpoints(given: Sources, legs: Sequence[Stay]) -> tuple[Kept, ...]:
    """What the session told, what the store has, and what the journal says of both."""
    found = {(kept.leg, kept.step): kept for kept in given.curves.kept}
    for kept in given.stored:
        told = found.get((kept.leg, kept.step))
        found[kept.leg, kept.step] = (
            Kept(
                step=told.step,
                leg=told.leg,
                at=told.at or kept.at,
                bytes=kept.bytes or told.bytes,
                took_s=told.took_s,
                there=True,
            )
            if told
            else kept
        )
    known = {step for _, step in found}
    for commit in given.commits:
        for event in commit.events:
            if isinstance(event, events.Progress) and event.saved and event.saved not in known:
                known.add(event.saved)
                kept = Kept(step=event.saved, leg=event.leg, at=commit.at)
                found[kept.leg, kept.step] = kept
    return tuple(sorted(found.values(), key=lambda kept: (kept.leg, kept.step)))


def _notes(given: Sources) -> tuple[str, ...]:
    notes = []
    if given.curves.unread:
        many = given.curves.unread
        notes.append(
            f"{many} line{'s' if many != 1 else ''} of the job's metrics could not be read:"
            " a job that is killed while it writes leaves half a line"
        )
    estimated = sum(posting.micros for posting in given.cost.postings if posting.estimated)
    if estimated:
        notes.append("some of the money is reckoned, not told by a provider")
    return tuple(notes)
