"""What runs learn of capacity, kept for plans to come.

Every launch, refusal and interruption of a real run is an observation of its place, type and
market, in the file that plans read (`catalog/observations.py`). Machines of this computer are
always there, so they are none. A disk that is full costs an observation, never a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tradewind.base.errors import TradewindError
from tradewind.base.ownfiles import home

if TYPE_CHECKING:
    from tradewind.lifecycle.capacity import Answer


def remember(answers: Sequence[Answer]) -> None:
    from tradewind.catalog import files
    from tradewind.catalog.observations import observed
    from tradewind.model import MARKETS, Observation

    seen = []
    for answer in answers:
        way = answer.way
        if way.provider == "local" or way.market not in MARKETS:
            continue
        at = datetime.fromtimestamp(answer.at_s, UTC)
        seen.append(
            observed(
                Observation(
                    provider=way.provider,
                    region=way.region,
                    zone=way.zone,
                    instance_type=way.instance_type,
                    market=way.market,
                    available=answer.there,
                    seen_at=at,
                    expires_at=at,
                    source="run",
                    machines=way.units,
                    held_h=answer.held_s / 3600,
                )
            )
        )
    if seen:
        with suppress(TradewindError):
            files.record(seen, home(), seen[-1].seen_at)
