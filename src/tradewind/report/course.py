"""How far a run was when, and when it will be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from tradewind.lifecycle.state import RunState
from tradewind.model.event import Commit, LegOver, Progress
from tradewind.model.run import Heartbeat, Way
from tradewind.report.curves import Curves
from tradewind.report.figures import Course, Point, Projection, Stay

MOST = 1500
"""Points of a course."""
_FAR_S = 10 * 365 * 86_400


def course_of(
    state: RunState,
    legs: Sequence[Stay],
    commits: Sequence[Commit],
    curves: Curves,
    submitted: datetime,
    now: datetime,
) -> Course:
    spec = state.spec
    if spec is not None and not spec.steps:
        return Course(points=_by_time(state, legs, submitted, now))
    told: dict[int, list[Point]] = {}
    saved = [Point(kept.at, kept.step) for kept in curves.kept if kept.at is not None]
    for commit in commits:
        for event in commit.events:
            if not isinstance(event, Progress | LegOver):
                continue
            if isinstance(event, Progress):
                told.setdefault(event.leg, []).append(Point(commit.at, event.step))
            saved.append(Point(commit.at, event.saved))
    points = [Point(submitted, 0.0)]
    for leg in legs:
        if leg.up is None:
            continue
        until = leg.until or max(now, leg.up)
        own = [point for point in curves.course(leg.leg) if leg.since <= point.at <= until]
        own = own or told.get(leg.leg, [])
        points.append(Point(min([leg.up, *(point.at for point in own[:1])]), leg.began))
        points += own
        points.append(Point(until, leg.step))
        if leg.lost:
            points.append(Point(until, leg.step - leg.lost))
    return Course(points=_thinned(points), saved=_thinned(_rising(saved, submitted, now)))


def _rising(found: Sequence[Point], submitted: datetime, now: datetime) -> list[Point]:
    """From nought on, each higher than the one before: what was saved stays so."""
    points = [Point(submitted, 0.0)]
    for point in sorted(found, key=lambda point: point.at):
        if point.step > points[-1].step and point.at <= now:
            points.append(point)
    return points


def _by_time(
    state: RunState, legs: Sequence[Stay], submitted: datetime, now: datetime
) -> tuple[Point, ...]:
    """Where work is not counted in steps: by how long machines were at it."""
    done, points = 0.0, [Point(submitted, 0.0)]
    for leg in legs:
        if leg.up is not None:
            until = leg.until or max(now, leg.up)
            points.append(Point(leg.up, done))
            done += (until - leg.up).total_seconds() * state.requests[leg.leg].way.rate
            points.append(Point(until, done))
    return _thinned(points)


def _thinned(points: Sequence[Point]) -> tuple[Point, ...]:
    every = -(-len(points) // MOST)
    if every <= 1:
        return tuple(points)
    return (*points[:-1:every], points[-1])


def projection_of(
    state: RunState, beats: Mapping[str, Heartbeat], step: float, cost: int, now: datetime
) -> Projection | None:
    """None for a run that is over, or will never be by this, or tells no steps: nobody knows how
    far that is."""
    spec, leg = state.spec, state.leg
    if spec is None or state.outcome or not spec.steps:
        return None
    last = max(state.requests) if state.requests else None
    way = leg.request.way if leg else state.requests[last].way if last else spec.ways[0]
    first = beats.get(leg.machines[0]) if leg and leg.machines else None
    rate, measured = _rate(state, way, first)
    left_s = max(spec.work - step, 0.0) / rate
    if first is None or first.doing != "working":
        left_s += way.start_s
    if left_s > _FAR_S:
        return None
    return Projection(
        finish=now.astimezone(UTC) + timedelta(seconds=left_s),
        cost=cost + int(way.price_all * left_s / 3600),
        rate=rate,
        measured=measured,
    )


def _rate(state: RunState, way: Way, beat: Heartbeat | None) -> tuple[float, bool]:
    if beat is not None and beat.rate:
        return beat.rate, True
    ratio = state.ratios.get(way.kind, state.ratio)
    return way.rate * ratio, bool(state.ratios)
