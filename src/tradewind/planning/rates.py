"""Money for anything but machines: moving data between places, and keeping checkpoints. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from tradewind.base.errors import NotFound
from tradewind.model import Data
from tradewind.model.beside import NOTHING, Beside, BesideOf, nothing
from tradewind.model.ratecard import Found, Place, RateCard
from tradewind.model.usage import ASKED_HOUR, LIKELY


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars for a gigabyte. What a provider does not sell is kept, or moved, at the card's price
    for any provider."""

    card: RateCard
    beside: BesideOf = nothing
    """What machines are charged for beside their price."""
    store: Place | None = None
    """Where runs are kept; None: not known, and taken to be where the data is, or where the
    machines are."""

    def egress(self, start: Place, end: Place) -> float:
        found = self.card.traffic(start, end)
        return found.usd if found else 0.0

    def month(self, place: Place) -> float:
        """For keeping a gigabyte."""
        return self._kept(place).usd

    def home(self, data: Data | None) -> Place | None:
        """Where checkpoints are kept, as far as it is known."""
        return self.store or home(data)

    def disk(self, place: Place, extra: Beside) -> float:
        """For a gigabyte and month of a machine's own."""
        return self.card.find("block_storage", *place, item=extra.disk).usd

    def address(self, place: Place, extra: Beside) -> float:
        """Micro-dollars an hour for those of a machine."""
        if not extra.addresses:
            return 0.0
        return extra.addresses * self.card.find("public_address", *place).micros

    def requests(self, place: Place) -> float:
        """Micro-dollars an hour that a machine is likely to ask of a store there; as elsewhere
        where no price is known: then it is kept at some other provider."""
        found = 0.0
        for category in ("requests_write", "requests_read"):
            try:
                found += self.card.find(category, *place).micros
            except NotFound:
                known = [1e6 * (r.value or 0) for r in self.card.rates if r.category == category]
                found += median(known) if known else 0.0
        return LIKELY * ASKED_HOUR * found / 1e6

    def assumed(
        self, data: Data | None, place: Place, extra: Beside = NOTHING
    ) -> dict[str, list[str]]:
        """By part of a plan's cost, the prices that nobody has told us, in words: for such machines
        in `place`."""
        moved = [
            self.card.traffic(*way)
            for start in dict.fromkeys([home(data), self.home(data)])
            if start
            for way in ((start, place), (place, start))
        ]
        parts: dict[str, list[Found | None]] = {"egress": moved, "storage": [self._kept(place)]}
        if extra.disk_gb:
            parts["disk"] = [self.card.find("block_storage", *place, item=extra.disk)]
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
