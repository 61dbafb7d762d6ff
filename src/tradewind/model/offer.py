"""Something that can be bought, and what it costs on each market."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import date

    from tradewind.base.units import Micros

Market = Literal["on_demand", "spot", "reserved"]
MARKETS: tuple[Market, ...] = ("on_demand", "spot", "reserved")


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars per hour for the whole machine.

    `mark` is the reason not to trust it, empty when there is none; a marked price is kept and shown
    on request but never chosen by default. `term` is the commitment of a reserved price (`1y`).
    """

    market: Market
    micros_hour: Micros
    as_of: date | None
    source: str
    term: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One machine of one type in one place. A CPU-only machine has no accelerator and count 0."""

    provider: str
    region: str
    zone: str
    instance_type: str
    accelerator: str
    accelerator_count: float
    accelerator_memory_gb: float | None
    vcpus: float | None
    memory_gb: float | None
    local_nvme_gb: float | None
    network_gbps: float | None
    prices: tuple[Price, ...]
    own: bool = False
    """From the user's account file rather than from the public catalog."""

    def price(self, market: Market) -> Price | None:
        """The cheapest price on that market, marked or not."""
        found = [p for p in self.prices if p.market == market]
        return min(found, key=lambda p: p.micros_hour, default=None)

    @property
    def on_demand(self) -> Price | None:
        return self.price("on_demand")

    @property
    def spot(self) -> Price | None:
        return self.price("spot")

    @property
    def reserved(self) -> Price | None:
        return self.price("reserved")
