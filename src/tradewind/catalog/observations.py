"""Our own observations of availability: kept beside the catalog, and gone when they expire.

One JSON object a line in `$TRADEWIND_HOME/observations.jsonl`: what providers list, what launches
of runs met with, and what you say. Until it expires, an observation is the latest word on its
thing; for some days after, it still tells how often machines were there (`capacity.py`). Several
processes may append at once (one write, opened for append); a line that cannot be read is skipped
and counted, since losing an observation costs nothing but a look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta

from tradewind.catalog.capacity import FORGOTTEN
from tradewind.model import Market, Observation, Offer

IN_STOCK_LASTS = timedelta(hours=6)
NO_STOCK_LASTS = timedelta(hours=1)  # capacity comes back in waves; asking again soon is cheap
MOST = 20
"""That are remembered of one thing: older ones hardly count beside so many."""

Key = tuple[str, str, str, str, Market]


@dataclass(frozen=True, slots=True)
class Observations:
    """What there is of each thing: `latest` has the newest observation, if it has not expired at
    `now`; `recent` all that are not forgotten yet."""

    latest: dict[Key, Observation]
    unreadable: int = 0
    recent: dict[Key, tuple[Observation, ...]] = field(default_factory=dict)

    def of(self, offer: Offer, market: Market) -> Observation | None:
        """The latest word on that zone or on its whole region."""
        found = [self.latest[key] for key in _keys(offer, market) if key in self.latest]
        return max(found, key=lambda seen: seen.seen_at, default=None)

    def answers(self, offer: Offer, market: Market) -> list[Observation]:
        """All that is remembered of that zone and of its whole region."""
        return [one for key in _keys(offer, market) for one in self.recent.get(key, ())]


def _keys(offer: Offer, market: Market) -> list[Key]:
    place = (offer.provider, offer.region)
    return [(*place, zone, offer.instance_type, market) for zone in dict.fromkeys((offer.zone, ""))]


def observed(observation: Observation) -> Observation:
    """With the usual expiry filled in, counted from when it was seen."""
    lasts = IN_STOCK_LASTS if observation.available else NO_STOCK_LASTS
    return replace(observation, expires_at=observation.seen_at + lasts)


def encode(observations: Iterable[Observation]) -> str:
    lines = []
    for observation in observations:
        fields = asdict(observation)
        for name in ("seen_at", "expires_at"):
            fields[name] = fields[name].isoformat()
        lines.append(json.dumps(fields, separators=(",", ":")) + "\n")
    return "".join(lines)


def decode(text: str, now: datetime) -> Observations:
    latest: dict[Key, Observation] = {}
    recent: dict[Key, list[Observation]] = {}
    unreadable = 0
    for line in text.splitlines():
        try:
            fields = json.loads(line)
            for name in ("seen_at", "expires_at"):
                fields[name] = datetime.fromisoformat(fields[name])
            seen = Observation(**fields)
            key = (seen.provider, seen.region, seen.zone, seen.instance_type, seen.market)
            if seen.expires_at + FORGOTTEN > now:
                recent.setdefault(key, []).append(seen)
            if seen.expires_at > now and (key not in latest or latest[key].seen_at <= seen.seen_at):
                latest[key] = seen
        except (ValueError, TypeError, KeyError, RecursionError):
            unreadable += 1
    kept = {key: tuple(several[-MOST:]) for key, several in recent.items()}
    return Observations(latest, unreadable, kept)
