"""The charts of a run's page. Hours are counted from the submission, in all that have time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from tradewind.report.figures import Curve, Point, Refusal, Report, Stay, Zone
from tradewind.report.words import after, money, number
from tradewind.web.svg import Plot, round_marks, time_marks
from tradewind.web.words import MARKETS

_LANE, _BAR, _NAME = 38, 14, 16
MOST_LANES = 12
_MOST_BARS = 1500
"""More legs than that are joined, where they follow each other in a lane."""
_WELL = ("finished", "cancelled", "moved")
_MOST_DOTS = 60
MOST_SEAMS = 40
_ROOM = 1.03
"""What is drawn ends a little before the edge."""


class Clock:
    """Moments as seconds since the submission, and up to when charts go."""

    def __init__(self, report: Report) -> None:
        assert report.submitted is not None
        self.first = report.submitted
        end = report.ended or report.made
        if report.projection is not None:
            end = max(end, report.projection.finish)
        self.now = self.at(report.ended or report.made)
        self.end = max(self.at(end), 1.0)
        self.deadline = self.at(report.deadline) if report.deadline else None
        # A deadline far away would leave the run a sliver at the left.
        self.shows_deadline = self.deadline is not None and self.deadline <= 3 * self.end
        if self.shows_deadline:
            assert self.deadline is not None
            self.end = max(self.end, self.deadline)
        self.end *= _ROOM

    def at(self, moment: datetime) -> float:
        return (moment - self.first).total_seconds()

    def plot(self, *, height: int, label: str, up: tuple[float, float] = (0, 1)) -> Plot:
        plot = Plot((0.0, self.end), up, height=height, label=label)
        plot.across(time_marks(self.end / _ROOM))
        return plot

    def draw_deadline(self, plot: Plot) -> None:
        if self.shows_deadline and self.deadline is not None:
            plot.upright(self.deadline, "limit")
            plot.text(self.deadline, plot.top + 8, "deadline ", "halo", anchor="end")


def timeline(report: Report, clock: Clock) -> str:
    lanes = [zone for zone in report.zones if zone.legs or zone.refused or zone.there]
    shown, rest = lanes[:MOST_LANES], lanes[MOST_LANES:]
    names = {_key(zone): number for number, zone in enumerate(shown)}
    height = _LANE * (len(shown) + bool(rest)) + (20 if report.checkpoints else 0)
    plot = clock.plot(height=max(height, _LANE), label=f"{len(report.legs)} legs over time")
    clock.draw_deadline(plot)
    for row, zone in enumerate(shown):
        top = plot.top + row * _LANE
        plot.bar(0, clock.now, top + _NAME + _BAR + 1, 2, "lane")
        for there in zone.there or ():
            plot.bar(clock.at(there.since), clock.at(there.until), top + _NAME - 2, _BAR + 4, "had")
        plot.text(0, top + 11, _named(zone), "halo")
    if rest:
        plot.text(0, plot.top + len(shown) * _LANE + 11, f"{len(rest)} other places", "halo")
    every: dict[int, list[Stay]] = {}
    for leg in report.legs:
        every.setdefault(names.get(_key(leg), len(shown)), []).append(leg)
    for row, legs in every.items():
        top = plot.top + row * _LANE + _NAME
        if len(report.legs) > _MOST_BARS:
            _joined(plot, clock, legs, top)
        else:
            _bars(plot, clock, legs, top)
        _marks(plot, clock, legs, top, dense=len(report.legs) > _MOST_DOTS)
    for refusal in report.refusals[:_MOST_BARS]:
        row = names.get(_key(refusal), len(shown))
        words = f"refused after {after(clock.at(refusal.at))}: {refusal.reason}"
        top = plot.top + row * _LANE + _NAME
        plot.tick(clock.at(refusal.at), top, _BAR, "refused", words)
    moments = [clock.at(kept.at) for kept in report.checkpoints if kept.at is not None]
    if moments:
        foot = plot.top + plot.height - 12
        plot.ticks([at for at in moments if 0 <= at <= clock.end], foot, 8, "saved-tick")
    return plot.made()


def _key(what: Zone | Stay | Refusal) -> tuple[str, str, str]:
    return what.place, what.instance_type, what.market


def _named(zone: Zone) -> str:
    return f"{zone.instance_type} {MARKETS.get(zone.market, zone.market)} · {zone.place}"


def _bars(plot: Plot, clock: Clock, legs: Sequence[Stay], top: float) -> None:
    for leg in legs:
        since, until = clock.at(leg.since), clock.at(leg.until) if leg.until else clock.now
        up = min(clock.at(leg.up), until) if leg.up else until
        words = leg_words(leg, clock)
        plot.bar(since, up, top, _BAR, "starting", words)
        if until > up:
            plot.bar(up, until, top, _BAR, _market(leg.market), words)


def _marks(plot: Plot, clock: Clock, legs: Sequence[Stay], top: float, *, dense: bool) -> None:
    """Where machines went. Of very many, only short strokes below the bars."""
    if dense:
        moments = [clock.at(leg.until) for leg in legs if leg.until and leg.taken]
        near = clock.end / 1000
        apart = {round(at / near): at for at in moments}
        plot.ticks(apart.values(), top + _BAR, 4, "taken-tick")
        return
    for leg in legs:
        if leg.noticed is not None:
            plot.mark(clock.at(leg.noticed), top + _BAR / 2, "noticed", f"notice, leg {leg.leg}")
        if leg.until is not None and (leg.taken or is_broken(leg)):
            kind = "taken" if leg.taken else "broken"
            plot.mark(
                clock.at(leg.until), top + _BAR / 2, kind,
                f"leg {leg.leg}: {leg.cause.replace('_', ' ')}",
            )  # fmt: skip


def is_broken(leg: Stay) -> bool:
    """It ended, though neither wanted nor taken."""
    return leg.until is not None and not leg.taken and leg.cause not in _WELL


def _joined(plot: Plot, clock: Clock, legs: Sequence[Stay], top: float) -> None:
    """Legs that no eye could tell apart, as one bar."""
    near = clock.end / 1000
    since, until, count, market = 0.0, -1.0, 0, ""

    def draw() -> None:
        if count:
            plot.bar(since, until, top, _BAR, _market(market), f"{count} legs")

    for leg in legs:
        start, end = clock.at(leg.since), clock.at(leg.until) if leg.until else clock.now
        if count and start - until <= near:
            until, count = max(until, end), count + 1
        else:
            draw()
            since, until, count, market = start, end, 1, leg.market
    draw()


def _market(market: str) -> str:
    return "on-demand" if market == "on_demand" else "spot"


def leg_words(leg: Stay, clock: Clock) -> str:
    until = clock.at(leg.until) if leg.until else clock.now
    cause = leg.cause.replace("_", " ") or "running"
    return (
        f"leg {leg.leg}: {leg.what} {MARKETS.get(leg.market, leg.market)} in {leg.place}, from"
        f" {after(clock.at(leg.since))} for {after(until - clock.at(leg.since))}, {cause},"
        f" {money(leg.micros)}"
    )


def progress(report: Report, clock: Clock) -> str:
    points = report.course.points
    roof = max([report.work, *(point.step for point in points)]) or 1.0
    plot = clock.plot(height=220, label="work done over time", up=(0.0, roof * 1.04))
    if report.steps:
        plot.up([(mark, number(mark)) for mark in round_marks(0, roof) if mark])
    else:
        plot.up([(roof * share, f"{share:.0%}") for share in (0.25, 0.5, 0.75, 1.0)])
    clock.draw_deadline(plot)
    if clock.deadline is not None and clock.shows_deadline:
        plot.line([(0, 0), (clock.deadline, report.work)], "even")
    plan = report.projection
    if plan is not None and points:
        plot.line([(clock.now, report.step), (clock.at(plan.finish), report.work)], "ahead")
    plot.line(_stairs(report.course.saved, clock), "saved")
    plot.line([(clock.at(point.at), point.step) for point in points], "done")
    if not report.over:
        plot.mark(clock.now, plot.y(report.step), "here", "now")
    return plot.made()


def _stairs(points: Sequence[Point], clock: Clock) -> list[tuple[float, float]]:
    """What is saved stays so until more is."""
    found: list[tuple[float, float]] = []
    for point in points:
        if found:
            found.append((clock.at(point.at), found[-1][1]))
        found.append((clock.at(point.at), point.step))
    if found and len(points) > 1:
        found.append((clock.now, found[-1][1]))
    return found


def curve(drawn: Curve, report: Report, *, height: int) -> str:
    steps = [bucket.step for bucket in drawn.buckets]
    lows = [bucket.low for bucket in drawn.buckets]
    highs = [bucket.high for bucket in drawn.buckets]
    low, high = min(lows), max(highs)
    room = (high - low) * 0.06 or abs(high) * 0.05 or 1.0
    plot = Plot(
        (min(steps[0], 0.0), steps[-1]),
        (low - room, high + room),
        height=height,
        label=f"{drawn.name} by step",
    )
    across = [at for at in round_marks(min(steps[0], 0.0), steps[-1], 6) if at == int(at)]
    plot.across([(at, number(at)) for at in across])
    marks = round_marks(low - room / 2, high + room / 2, 4 if height > 150 else 2)
    plot.up([(at, f"{at:.4g}") for at in marks])
    if len(seams(report)) <= MOST_SEAMS:
        plot.ticks(seams(report), plot.top, plot.height, "seam")
    if drawn.width > 1:
        plot.area(
            [(bucket.step, bucket.low) for bucket in drawn.buckets],
            [(bucket.step, bucket.high) for bucket in drawn.buckets],
            "band",
        )
    means = [bucket.mean for bucket in drawn.buckets]
    plot.line(list(zip(steps, means, strict=True)), "raw")
    plot.line(list(zip(steps, smoothed(means), strict=True)), "done")
    if len(drawn.buckets) == 1:
        plot.mark(steps[0], plot.y(drawn.buckets[0].mean), "here")
    return plot.made()


def seams(report: Report) -> list[float]:
    """Steps from which a leg went on."""
    return list(dict.fromkeys(leg.began for leg in report.legs if leg.began))


def smoothed(values: Sequence[float]) -> list[float]:
    """Each with those around it, a fortieth of all: what a noisy curve comes down to."""
    reach = len(values) // 80
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    found = []
    for at in range(len(values)):
        near = min(reach, at, len(values) - 1 - at)  # less towards the ends, so that they are kept
        found.append((sums[at + near + 1] - sums[at - near]) / (2 * near + 1))
    return found
