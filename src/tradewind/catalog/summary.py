"""The catalog in figures: what is asked for an accelerator, and how much there is of whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import median

from tradewind.catalog.catalog import Catalog
from tradewind.catalog.query import Selection
from tradewind.catalog.table import PRICE_GROUPS, OfferTable
from tradewind.model import MARKETS, Market


@dataclass(frozen=True, slots=True)
class Range:
    """Micro-dollars per accelerator-hour."""

    offers: int
    low: float
    median: float
    high: float

    @classmethod
    def of(cls, prices: Sequence[float]) -> Range | None:
        return cls(len(prices), min(prices), median(prices), max(prices)) if prices else None


@dataclass(frozen=True, slots=True)
class Seller:
    provider: str
    offers: int
    regions: int
    counts: tuple[float, ...]  # how many accelerators its machines have
    by_market: dict[Market, Range]


@dataclass(frozen=True, slots=True)
class Sold:
    """How one accelerator is sold."""

    sellers: tuple[Seller, ...]
    by_market: dict[Market, Range]


@dataclass(frozen=True, slots=True)
class Held:
    """How much the catalog holds of one provider, trusted or not."""

    provider: str
    offers: int
    types: int
    regions: int
    prices: dict[Market, int]
    oldest: str
    newest: str


def held(table: OfferTable) -> list[Held]:
    """Every provider in the table, the one with most offers first."""
    rows_of: dict[str, list[int]] = {}
    for row in range(len(table)):
        rows_of.setdefault(table.columns["provider"][row], []).append(row)
    found = []
    for provider, rows in rows_of.items():
        prices: dict[Market, int] = dict.fromkeys(MARKETS, 0)
        dates: set[str] = set()
        for group, (market, _) in PRICE_GROUPS.items():
            columns = table.prices[group]
            priced = [row for row in rows if columns.micros[row] is not None]
            prices[market] += len(priced)
            dates.update(columns.as_of[row] for row in priced)
        types, regions = (
            len({table.columns[name][row] for row in rows}) for name in ("instance_type", "region")
        )
        known = sorted(dates - {""}) or [""]
        found.append(Held(provider, len(rows), types, regions, prices, known[0], known[-1]))
    return sorted(found, key=lambda held: -held.offers)


def sold(catalog: Catalog, names: Iterable[str], today: date) -> dict[str, Sold]:
    """For each accelerator, its trusted prices by market, over all and by provider."""
    wanted = list(names)
    prices: dict[str, dict[Market, dict[str, list[float]]]] = {
        name: {market: {} for market in MARKETS} for name in wanted
    }
    places: dict[tuple[str, str], tuple[set[str], set[float], set[int]]] = {}
    for market in MARKETS:
        selection = catalog.offers(list(wanted), market=market, today=today)
        for name, provider, region, count, row, measure in _columns(selection):
            if measure is not None:
                prices[name][market].setdefault(provider, []).append(measure)
                regions, counts, rows = places.setdefault((name, provider), (set(), set(), set()))
                regions.add(region)
                counts.add(count)
                rows.add(row)
    return {name: _sold(name, prices[name], places) for name in wanted}


def _columns(
    selection: Selection,
) -> Iterable[tuple[str, str, str, float, int, float | None]]:
    return zip(
        selection.values("accelerator"),
        selection.values("provider"),
        selection.values("region"),
        selection.values("accelerator_count"),
        selection.rows,
        selection.measures,
        strict=True,
    )


def _sold(
    name: str,
    prices: dict[Market, dict[str, list[float]]],
    places: dict[tuple[str, str], tuple[set[str], set[float], set[int]]],
) -> Sold:
    sellers = []
    for provider in sorted({p for by_provider in prices.values() for p in by_provider}):
        regions, counts, rows = places[name, provider]
        ranges = _ranges({m: by_provider.get(provider, []) for m, by_provider in prices.items()})
        sellers.append(Seller(provider, len(rows), len(regions), tuple(sorted(counts)), ranges))
    sellers.sort(key=lambda s: min(r.low for r in s.by_market.values()))
    return Sold(tuple(sellers), _over_all(prices))


def _over_all(prices: dict[Market, dict[str, list[float]]]) -> dict[Market, Range]:
    """Over all providers, each counted once in the median: one with many zones is one opinion."""
    ranges = _ranges({m: [p for own in by.values() for p in own] for m, by in prices.items()})
    return {
        market: replace(found, median=median(median(own) for own in prices[market].values()))
        for market, found in ranges.items()
    }


def _ranges(prices: dict[Market, list[float]]) -> dict[Market, Range]:
    found = {market: Range.of(values) for market, values in prices.items()}
    return {market: r for market, r in found.items() if r}
