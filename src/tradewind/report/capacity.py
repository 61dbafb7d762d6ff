"""How machines could be had: what was held, taken and refused, and, where a replayed trace tells
it, when there were any at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from tradewind.model.run import Way
from tradewind.report.figures import Refusal, Seconds, Span, Stay, Zone

Spans = Sequence[tuple[float, float]]
"""From when to when, seconds since 1970, in order."""


def zones_of(
    ways: Sequence[Way],
    legs: Sequence[Stay],
    refusals: Sequence[Refusal],
    there: Mapping[str, Spans],
    since: datetime,
    until: datetime,
) -> tuple[Zone, ...]:
    """Those that were tried, and those of the plan of which it is known when they were there.
    `there` is by the zone's name and for spot machines."""
    found: dict[tuple[str, str, str], Zone] = {}

    def zone(place: str, instance_type: str, market: str) -> Zone:
        key = (place, instance_type, market)
        return found.get(key) or Zone(place=place, instance_type=instance_type, market=market)

    def put(one: Zone) -> None:
        found[one.place, one.instance_type, one.market] = one

    for leg in legs:
        old = zone(leg.place, leg.instance_type, leg.market)
        held_s = ((leg.until or until) - leg.since).total_seconds()
        put(
            replace(
                old,
                legs=old.legs + 1,
                taken=old.taken + leg.taken,
                held_s=old.held_s + max(held_s, 0.0),
                micros=old.micros + leg.micros,
            )
        )
    for refusal in refusals:
        old = zone(refusal.place, refusal.instance_type, refusal.market)
        put(replace(old, refused=old.refused + 1))
    for way in ways:
        if way.market == "spot" and (way.zone or way.region) in there:
            spans = _within(there[way.zone or way.region], since, until)
            share = sum((span.until - span.since).total_seconds() for span in spans)
            all_s = (until - since).total_seconds()
            old = zone(way.place, way.instance_type, way.market)
            put(replace(old, there=spans, share=share / all_s if all_s > 0 else None))
    return tuple(sorted(found.values(), key=lambda each: (-each.held_s, each.place)))


def _within(spans: Spans, since: datetime, until: datetime) -> tuple[Span, ...]:
    first, last = since.timestamp(), until.timestamp()
    return tuple(
        Span(
            datetime.fromtimestamp(max(start, first), UTC),
            datetime.fromtimestamp(min(end, last), UTC),
        )
        for start, end in spans
        if end > first and start < last
    )


def seconds_of(legs: Sequence[Stay], since: datetime, until: datetime) -> Seconds:
    working = starting = 0.0
    for leg in legs:
        end = leg.until or until
        up = leg.up or end
        working += max((end - up).total_seconds(), 0.0)
        starting += max((up - leg.since).total_seconds(), 0.0)
    all_s = max((until - since).total_seconds(), 0.0)
    return Seconds(
        all=all_s,
        working=working,
        starting=starting,
        waiting=max(all_s - working - starting, 0.0),
    )
