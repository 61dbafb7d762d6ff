"""Money for anything but machines: moving data between places, and keeping checkpoints. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.model import Data
from tradewind.model.ratecard import Found, Place, RateCard


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars for a gigabyte. What a provider does not sell is kept, or moved, at the card's price
    for any provider."""

    card: RateCard

    def egress(self, start: Place, end: Place) -> float:
        found = self.card.traffic(start, end)
        return found.usd if found else 0.0

    def month(self, place: Place) -> float:
        """For keeping a gigabyte."""
        return self._kept(place).usd

    def assumed(self, start: Place | None, place: Place) -> dict[str, list[str]]:
        """By part of a plan's cost, the prices that nobody has told us, in words: for data at
        `start` and machines in `place`."""
        moved: list[Found | None] = []
        if start:
            moved = [self.card.traffic(start, place), self.card.traffic(place, start)]
        parts: dict[str, list[Found | None]] = {"egress": moved, "storage": [self._kept(place)]}
        return {
            part: list(dict.fromkeys(each.assumed for each in found if each and each.assumed))
            for part, found in parts.items()
        }

    def _kept(self, place: Place) -> Found:
        return self.card.find("object_storage", *place)


def home(data: Data | None) -> Place | None:
    """Where the data lies, as far as it is told."""
    if data is None or not data.provider:
        return None
    return data.provider, data.region or ""
