"""The legs of a run, from its journal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from tradewind.model import event as events
from tradewind.model.event import Commit


class LegView(Struct, frozen=True, kw_only=True, rename={"since": "from", "until": "to"}):
    leg: int
    where: str
    market: str
    since: datetime
    """When it was asked for."""
    up: datetime | None = None
    """When its job could begin."""
    until: datetime | None = None
    """When it was over; None: it goes on."""
    cause: str = ""
    """What ended it."""


def legs_of(commits: Sequence[Commit]) -> list[LegView]:
    from msgspec.structs import replace

    legs: dict[int, LegView] = {}
    for commit in commits:
        for event in commit.events:
            if isinstance(event, events.LegRequested):
                way = event.request.way
                legs[event.request.leg] = LegView(
                    leg=event.request.leg, where=way.words, market=way.market, since=commit.at
                )
            elif isinstance(event, events.LegUp):
                legs[event.leg] = replace(legs[event.leg], up=commit.at)
            elif isinstance(event, events.LegOver):
                legs[event.leg] = replace(legs[event.leg], until=commit.at, cause=event.cause)
            elif isinstance(event, events.LaunchRefused):
                legs[event.leg] = replace(legs[event.leg], until=commit.at, cause=event.kind)
    return list(legs.values())
