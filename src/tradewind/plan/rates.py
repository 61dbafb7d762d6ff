"""Money for anything but machines: moving data between places, and keeping checkpoints. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tradewind.model import Data, Rate

_USUAL_STORAGE = 0.023  # $/GB-month, where a provider sells none: kept with one that does
_USUAL_EGRESS = 0.09  # $/GB, of a provider that we know nothing of


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars for a gigabyte."""

    storage: dict[str, float]  # a month, by provider
    internet: dict[str, float]
    inter_region: dict[str, float]

    @classmethod
    def of(cls, rates: Sequence[Rate]) -> Rates:
        return cls(
            _first(rates, "object_storage"),
            _first(rates, "egress_internet"),
            _first(rates, "egress_inter_region"),
        )

    def egress(self, start: tuple[str, str], end: tuple[str, str]) -> float:
        """From one (provider, region) to another."""
        if start == end:
            return 0.0
        if start[0] == end[0]:
            return self.inter_region.get(start[0], self.internet.get(start[0], 0.0))
        return self.internet.get(start[0], _USUAL_EGRESS)

    def month(self, provider: str) -> float:
        """For keeping a gigabyte."""
        return self.storage.get(provider, _USUAL_STORAGE)


def _first(rates: Sequence[Rate], category: str) -> dict[str, float]:
    """By provider, the first of its rates: that of the usual class and the first terabytes."""
    found: dict[str, float] = {}
    for rate in rates:
        if rate.category == category and rate.value is not None and rate.unit.startswith("USD/G"):
            found.setdefault(rate.provider, rate.value)
    return found


def home(data: Data | None) -> tuple[str, str] | None:
    """Where the data lies, as far as it is told."""
    if data is None or not data.provider:
        return None
    return data.provider, data.region or ""
