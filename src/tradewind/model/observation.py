"""What we have seen of availability ourselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.model.offer import Market


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Could it be had? True only until `expires_at`; nobody's promise."""

    provider: str
    region: str
    zone: str
    instance_type: str
    market: Market
    available: bool
    seen_at: datetime
    expires_at: datetime
    source: str
    machines: int = 1
    """So many at once."""
    held_h: float = 0.0
    """How long they had been held then: where they are not available any more, until they were
    taken. 0 where nobody held them."""
