"""What belongs to an account: machines of its own, discounts, quotas and reservations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from tradewind.base.units import Micros
    from tradewind.model.offer import Market


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which offers a line of the account file speaks of. Globs; empty means every one."""

    line: int = 0
    provider: str = ""
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    accelerators: tuple[str, ...] = ()
    count: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Discount:
    """A negotiated or committed price. Exactly one of `off` (0.12 for 12 %), `price` and
    `sustained` is set.

    With market `reserved` it is a commitment for `term`, taken off the on-demand price. `sustained`
    is a provider's own discount by the time that machines are up in a month (catalog/sustained.py):
    the price of an hour stays as it is."""

    scope: Scope
    market: Market
    term: str
    off: float | None
    price: Micros | None
    until: date | None
    why: str
    sustained: bool = False

    def lasts(self, day: date) -> bool:
        """Whether it is given on that day, the last included."""
        return self.until is None or self.until >= day


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """At most so many machines, or accelerators, at once. A market of None means every market."""

    scope: Scope
    market: Market | None
    machines: int | None
    accelerators: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Capacity already held: machines of a type in a place, at a price that may be nought."""

    scope: Scope
    machines: int
    price: Micros
    start: date | None
    until: date | None

    def lasts(self, day: date) -> bool:
        """Whether it is held on that day, the last included."""
        return (self.start or day) <= day <= (self.until or day)
