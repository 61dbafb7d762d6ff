"""The legs of a run, and the launches that were refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from tradewind.ledger.postings import Posting
from tradewind.model import event as events
from tradewind.model.event import Commit
from tradewind.model.run import Heartbeat
from tradewind.report.figures import Refusal, Stay

REFUSED = "refused"


def stays_of(
    commits: Sequence[Commit], postings: Sequence[Posting], beats: Mapping[str, Heartbeat]
) -> tuple[list[Stay], list[Refusal]]:
    legs: dict[int, Stay] = {}
    refusals: list[Refusal] = []
    saved = 0.0
    for commit in commits:
        for event in commit.events:
            if isinstance(event, events.LegRequested):
                legs[event.request.leg] = _asked(event, commit.at, saved)
            elif isinstance(event, events.LaunchRefused):
                refusals.append(_refused(legs[event.leg], event, commit.at))
                legs[event.leg] = replace(
                    legs[event.leg], until=commit.at, cause=REFUSED, reason=event.reason
                )
            elif isinstance(event, events.LegUp):
                legs[event.leg] = replace(legs[event.leg], up=commit.at)
            elif isinstance(event, events.LegDraining):
                if event.cause == "interrupted":
                    legs[event.leg] = replace(legs[event.leg], noticed=commit.at)
            elif isinstance(event, events.Progress):
                saved = max(saved, event.saved)
                leg = legs[event.leg]
                legs[event.leg] = replace(leg, step=max(leg.step, event.step))
            elif isinstance(event, events.LegOver):
                saved = max(saved, event.saved)
                legs[event.leg] = _over(legs[event.leg], event, commit.at, saved)
    for beat in beats.values():
        held = legs.get(beat.leg)
        if held is not None and held.until is None:
            legs[beat.leg] = replace(held, step=max(held.step, beat.step))
    paid: dict[int, list[Posting]] = {}
    for posting in postings:
        paid.setdefault(posting.leg, []).append(posting)
    # A machine of a launch that was refused may have come nevertheless, and cost something.
    stayed = [leg for leg in legs.values() if leg.cause != REFUSED or leg.leg in paid]
    return [_paid(leg, paid.get(leg.leg, [])) for leg in stayed], refusals


def _asked(event: events.LegRequested, at: datetime, saved: float) -> Stay:
    way = event.request.way
    return Stay(
        leg=event.request.leg,
        place=way.place,
        instance_type=way.instance_type,
        market=way.market,
        nodes=way.units,
        price=way.price_all,
        since=at,
        why=event.reason,
        began=saved,
        step=saved,
    )


def _refused(leg: Stay, event: events.LaunchRefused, at: datetime) -> Refusal:
    return Refusal(
        leg=leg.leg,
        at=at,
        place=leg.place,
        instance_type=leg.instance_type,
        market=leg.market,
        kind=event.kind,
        reason=event.reason,
    )


def _by_notice(reason: str) -> bool:
    """In the words of supervisors, and in those that journals of earlier versions have."""
    return "interruption notice" in reason or "will take" in reason


def _over(leg: Stay, event: events.LegOver, at: datetime, saved: float) -> Stay:
    step = max(leg.step, event.step)
    lost = 0.0 if event.cause == "finished" else max(step - saved, 0.0)
    noticed = leg.noticed
    if noticed is None and event.cause == "interrupted" and _by_notice(event.reason):
        noticed = at  # it had saved and stopped before anybody saw the notice
    return replace(
        leg,
        until=at,
        cause=event.cause,
        reason=event.reason,
        step=step,
        lost=lost,
        noticed=noticed,
    )


def _paid(leg: Stay, mine: Sequence[Posting]) -> Stay:
    usual = [posting.on_demand for posting in mine]
    known = [cost for cost in usual if cost is not None]
    return replace(
        leg,
        micros=sum(posting.micros for posting in mine),
        on_demand=sum(known) if mine and len(known) == len(usual) else None,
    )
