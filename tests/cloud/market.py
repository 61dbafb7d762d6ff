"""Prices, and how much spot capacity a zone has over time.

A price holds from its time until the next. Where none was set, an invented one is told, made of the
type's CPUs and GPUs: of a likely size, and nobody's real price. A trace is a list of
(seconds, available) for a zone, `available` being a number of machines of each type, or true or
false; it is replayed `speed` times as fast. Known lie: a price never makes a spot machine end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.cloud.dials import PLENTY

SPOT_PART = 0.4
"""Of the on-demand price, where no spot price was set."""


class Market:
    def __init__(self, size: Callable[[str], tuple[int, int]]) -> None:
        """`size` tells a type's CPUs and GPUs."""
        self._size = size
        self._on_demand: dict[tuple[str, str], float] = {}
        self._spot: dict[tuple[str, str], list[tuple[float, float]]] = {}
        self.volume_usd_gb_month = 0.08
        self.volume_usd_by_kind: dict[str, float] = {}
        """Of kinds that have another price than that."""
        self.address_usd_hour = 0.005
        self.spot_address_part = 1.0
        """Of that, for a spot machine's."""
        self.bucket_region = "us-east-1"
        self.s3_usd_write, self.s3_usd_read = 0.005 / 1000, 0.0004 / 1000
        self.moved_usd_gb = 0.02
        """Between two regions, in either direction."""
        self.sustained: dict[str, list[tuple[str, str]]] = {}
        """By the first letters of types, how they are paid in a month (sustained.py)."""
        self.available: dict[str, int] = {}
        """By zone, as its trace tells at this moment."""

    def address_usd(self, market: str) -> float:
        """An hour."""
        return self.address_usd_hour * (self.spot_address_part if market == "spot" else 1.0)

    def s3_usd(self, row: dict[str, int], region: str) -> float:
        moved = row["bytes_in"] + row["bytes_out"] if region != self.bucket_region else 0
        usd = row["writes"] * self.s3_usd_write + row["reads"] * self.s3_usd_read
        return usd + moved / 2**30 * self.moved_usd_gb

    # -- prices ------------------------------------------------------------------------------------

    def put_on_demand(self, kind: str, usd_hour: float, region: str = "*") -> None:
        self._on_demand[region, kind] = usd_hour

    def put_spot(self, kind: str, zone: str, usd_hour: float, since: float) -> None:
        prices = self._spot.setdefault((kind, zone), [])
        prices.append((since, usd_hour))
        prices.sort()

    def on_demand(self, region: str, kind: str) -> float:
        found = self._on_demand.get((region, kind), self._on_demand.get(("*", kind)))
        return self._invented(kind) if found is None else found

    def fixed(self, region: str, kind: str, market: str) -> float:
        """Of a market that is not spot: where `KIND@MARKET` has a price it is that, else the
        kind's own."""
        found = self._on_demand.get((region, f"{kind}@{market}"))
        found = self._on_demand.get(("*", f"{kind}@{market}")) if found is None else found
        return self.on_demand(region, kind) if found is None else found

    def _invented(self, kind: str) -> float:
        cpus, gpus = self._size(kind)
        return round(0.05 * cpus + 1.5 * gpus, 4)

    def spot_changes(self, region: str, zone: str, kind: str) -> list[tuple[float, float]]:
        """From when on each price holds; the first holds since ever."""
        found = self._spot.get((kind, zone))
        if not found:
            return [(0.0, round(self.on_demand(region, kind) * SPOT_PART, 6))]
        return [(0.0, found[0][1]), *found] if found[0][0] > 0 else list(found)

    def spot(self, region: str, zone: str, kind: str, now: float) -> float:
        return [usd for since, usd in self.spot_changes(region, zone, kind) if since <= now][-1]

    def spot_pieces(
        self, region: str, zone: str, kind: str, start: float, end: float
    ) -> Iterator[tuple[float, float]]:
        """Seconds, and the price of an hour during them: the one at which each of the machine's own
        hours began."""
        while start < end:
            yield min(3600.0, end - start), self.spot(region, zone, kind, start)
            start += 3600.0

    # -- capacity ----------------------------------------------------------------------------------

    def room(self, zones: tuple[str, ...]) -> int:
        return min(
            (self.available[each] for each in zones if each in self.available), default=PLENTY
        )
