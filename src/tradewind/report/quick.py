"""A report of a rehearsal in the time of its world: an hour of a trace is an hour, however fast it
was replayed. Money is what it was; an hour's price is that of an hour there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec.structs import replace

from tradewind.report.figures import Course, Money, Point, Report, Seconds, Span, Stay, Sum, Zone

Moment = Callable[[datetime], datetime]


def in_its_time(report: Report, speed: float) -> Report:
    begun = report.submitted
    if speed == 1 or begun is None:
        return report

    def then(at: datetime) -> datetime:
        try:
            return begun + (at - begun) * speed
        except OverflowError:
            return at  # a deadline so far away that no calendar has it

    def maybe(at: datetime | None) -> datetime | None:
        return then(at) if at else None

    spent = report.seconds
    return replace(
        report,
        ended=maybe(report.ended),
        deadline=maybe(report.deadline),
        late_s=_times(report.late_s, speed),
        predicted_hours=_times(report.predicted_hours, speed),
        seconds=Seconds(
            all=spent.all * speed,
            working=spent.working * speed,
            starting=spent.starting * speed,
            waiting=spent.waiting * speed,
        ),
        legs=tuple(_leg(leg, then, maybe, speed) for leg in report.legs),
        refusals=tuple(replace(each, at=then(each.at)) for each in report.refusals),
        zones=tuple(_zone(zone, then, speed) for zone in report.zones),
        course=Course(
            points=tuple(Point(then(p.at), p.step) for p in report.course.points),
            saved=tuple(Point(then(p.at), p.step) for p in report.course.saved),
        ),
        projection=report.projection
        and replace(
            report.projection,
            finish=then(report.projection.finish),
            rate=report.projection.rate / speed,
        ),
        money=_money(report.money, speed),
        checkpoints=tuple(replace(each, at=maybe(each.at)) for each in report.checkpoints),
        events=tuple(replace(line, at=then(line.at)) for line in report.events),
    )


def _times(value: float | None, speed: float) -> float | None:
    return None if value is None else value * speed


def _leg(
    leg: Stay, then: Moment, maybe: Callable[[datetime | None], datetime | None], speed: float
) -> Stay:
    return replace(
        leg,
        price=round(leg.price / speed),
        since=then(leg.since),
        up=maybe(leg.up),
        noticed=maybe(leg.noticed),
        until=maybe(leg.until),
    )


def _zone(zone: Zone, then: Moment, speed: float) -> Zone:
    there = zone.there and tuple(Span(then(s.since), then(s.until)) for s in zone.there)
    return replace(zone, held_s=zone.held_s * speed, there=there)


def _money(money: Money, speed: float) -> Money:
    def longer(sums: tuple[Sum, ...]) -> tuple[Sum, ...]:
        return tuple(replace(each, seconds=round(each.seconds * speed)) for each in sums)

    return replace(money, by_market=longer(money.by_market), by_place=longer(money.by_place))
