"""Which offers match, what each would cost, and what was left out and why. Pure.

Everything is decided on codes and integers; an `Offer` is made only for the rows somebody looks at.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, TypeVar, overload

from tradewind.base.errors import InvalidValue
from tradewind.catalog import doubts, places
from tradewind.catalog.table import GROUPS_OF, OfferTable
from tradewind.model import Accelerator, Market, Offer, Price
from tradewind.model.areas import countries

T = TypeVar("T")
SORTS = ("accelerator-hour", "hour", "pflop-hour", "gb-hour")
FRESH_WITHIN_DAYS = 180
"""Older prices are stale: in 2026 small clouds moved theirs by 20-30 % within a quarter."""

BY_THE_HOUR = ["on_demand", "spot", "held"]
"""What competes unless markets are named. A price that asks for years of commitment is no cheaper
way to buy an hour; capacity that is held already is."""

Patterns = str | Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """`None` means any. Providers, regions, zones and types are globs, case ignored; a region may
    be an area (`EU`, `US`, `Asia`, `DE`)."""

    accelerators: frozenset[str] | None = None  # canonical; empty set: CPU-only machines
    count: float | None = None
    memory_gb_at_least: float | None = None  # of one accelerator, or of the slice of one
    provider: Patterns = None
    region: Patterns = None
    zone: Patterns = None
    instance_type: Patterns = None
    markets: tuple[Market, ...] = ()  # empty: whatever can be had by the hour, see BY_THE_HOUR
    max_micros_hour: int | None = None
    fresh_within_days: float = FRESH_WITHIN_DAYS
    include_marked: bool = False
    sort: str = "accelerator-hour"


@dataclass(repr=False)
class Selection(Sequence[Offer]):
    """Matching offers, cheapest first."""

    table: OfferTable
    rows: list[int]
    measures: list[float | None]  # what the rows are sorted by, in micro-dollars
    query: Query
    today: date
    matched: Sequence[int]  # rows that pass every filter but price and doubt

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"<Selection of {len(self):,} offers, {len(self.matched):,} matched>"

    @overload
    def __getitem__(self, index: int) -> Offer: ...
    @overload
    def __getitem__(self, index: slice) -> Selection: ...
    def __getitem__(self, index: int | slice) -> Offer | Selection:
        if isinstance(index, slice):
            return replace(
                self,
                rows=self.rows[index],
                measures=self.measures[index],
            )
        offer = self.table.offer(self.rows[index])
        return offer if offer.own else replace(offer, prices=tuple(map(self._aged, offer.prices)))

    def only(self, indices: Sequence[int]) -> Selection:
        return replace(
            self,
            rows=[self.rows[i] for i in indices],
            measures=[self.measures[i] for i in indices],
        )

    @property
    def groups(self) -> list[str]:
        """The price group by which each row was chosen."""
        group_of = _cheapest(self.table, self.query, self.today)[1]
        return [group_of[row] for row in self.rows]

    def price(self, index: int) -> Price:
        """The price by which that offer was chosen: its cheapest on the wanted markets."""
        row = self.rows[index]
        group = _cheapest(self.table, self.query, self.today)[1][row]
        price = self.table.prices[group].price(row, group)
        assert price is not None
        return price if self.table.own[row] else self._aged(price)

    def _aged(self, price: Price) -> Price:
        """With its age as a mark, if that is against it."""
        text = price.as_of.isoformat() if price.as_of and not price.mark else ""
        mark = _age_mark(text, self.query, self.today)
        return replace(price, mark=mark) if mark else price

    def priced(self) -> Iterator[tuple[Offer, Price]]:
        return ((self[i], self.price(i)) for i in range(len(self)))

    def values(self, column: str) -> list[Any]:
        """One column of the matching rows, without making offers."""
        coded = self.table.columns[column]
        return [coded[row] for row in self.rows]

    def every_doubt(self) -> Iterator[tuple[int, str, str]]:
        """Each price in doubt of the matching rows: row, price group, reason. Other than
        `doubtful`, also of rows that have another price to trust."""
        for group in _groups(self.table, self.query):
            columns = self.table.prices[group]
            for row in self.matched:
                reason: str = columns.mark[row]
                if not reason and columns.micros[row] is not None and not self.table.own[row]:
                    reason = _age_mark(columns.as_of[row], self.query, self.today)
                if reason:
                    yield row, group, reason

    @cached_property
    def doubtful(self) -> list[tuple[int, str]]:
        """Rows that match but whose prices on the wanted markets are all in doubt, and why."""
        groups = _groups(self.table, self.query)
        best = _cheapest(self.table, self.query, self.today)[0]
        unpriced = [row for row in self.matched if best[row] == NOTHING]
        reasons = (
            (row, _doubt(self.table, row, groups, self.query, self.today)) for row in unpriced
        )
        return [(row, reason) for row, reason in reasons if reason]

    @property
    def left_out(self) -> Counter[str]:
        """How many offers are in doubt, by the kind of doubt (see doubts.py)."""
        return Counter(doubts.kind(reason) for _, reason in self.doubtful)


def select(
    table: OfferTable,
    accelerators: Mapping[str, Accelerator],
    query: Query,
    today: date,
) -> Selection:
    if query.sort not in SORTS:
        raise InvalidValue(f"cannot sort by {query.sort!r}", hint=f"one of {', '.join(SORTS)}")
    rows = matching(table, query)
    best = _take(_cheapest(table, query, today)[0], rows)
    units = _units(table, accelerators, query.sort, rows)
    measures = [
        micros / unit if unit else _UNMEASURED + micros
        for micros, unit in zip(best, units, strict=True)
    ]
    limit = NOTHING if query.max_micros_hour is None else query.max_micros_hour + 0.5
    order = [i for i, micros in enumerate(best) if micros < limit]
    order.sort(key=measures.__getitem__)
    return Selection(
        table,
        [rows[i] for i in order],
        [measures[i] if measures[i] < _UNMEASURED else None for i in order],
        query,
        today,
        rows,
    )


NOTHING = float("inf")
_UNMEASURED = 1e18  # sorts what has no such unit (a CPU-only machine) behind what has


def _groups(table: OfferTable, query: Query) -> list[str]:
    wanted = [g for market in query.markets for g in GROUPS_OF[market]] or BY_THE_HOUR
    return [group for group in wanted if group in table.sold]


def _cheapest(table: OfferTable, query: Query, today: date) -> tuple[list[float], list[str]]:
    """Every row's cheapest usable price on the wanted markets and its group. Remembered: the next
    question is mostly about other places or chips on the same markets."""
    key = (query.markets, query.fresh_within_days, query.include_marked, today)
    if key not in table.memo:
        first, *others = _groups(table, query) or [""]
        best = usable_prices(table, first, query, today) if first else [NOTHING] * len(table)
        group_of = [first] * len(table)
        for group in others:
            usable = usable_prices(table, group, query, today)
            pairs = enumerate(zip(usable, best, strict=True))
            for row in [row for row, (new, old) in pairs if new < old]:
                best[row], group_of[row] = usable[row], group
        table.memo[key] = best, group_of
    remembered: tuple[list[float], list[str]] = table.memo[key]
    return remembered


def usable_prices(table: OfferTable, group: str, query: Query, today: date) -> list[float]:
    """Each row's price in that group, NOTHING where there is none or it is in doubt."""
    columns = table.prices[group]
    prices = [NOTHING if m is None else m for m in columns.micros]
    if query.include_marked:
        return prices
    ages = [_age_mark(text, query, today) for text in columns.as_of.values]
    for coded, bad in ((columns.mark, columns.mark.values), (columns.as_of, ages)):
        doubtful = {code for code, reason in enumerate(bad) if reason}
        if doubtful:
            for row in [row for row, code in enumerate(coded.codes) if code in doubtful]:
                prices[row] = NOTHING
    return prices


def _take(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """The column at `rows`; the whole of it is not copied."""
    return column if isinstance(rows, range) else [column[row] for row in rows]


def _doubt(table: OfferTable, row: int, groups: Sequence[str], query: Query, today: date) -> str:
    """Why that row has no usable price; empty where it is simply not sold on those markets."""
    for group in groups:
        columns = table.prices[group]
        reason: str = columns.mark[row]
        if not reason and columns.micros[row] is not None:
            reason = _age_mark(columns.as_of[row], query, today)
        if reason:
            return reason
    return ""


def _age_mark(text: str, query: Query, today: date) -> str:
    if not text:
        return ""
    age = (today - date.fromisoformat(text)).days
    if age > query.fresh_within_days:
        return f"stale: the price is of {text}"
    # A day's grace: somewhere it is tomorrow already.
    return f"future: the price is dated {text}" if age < -1 else ""


def matching(table: OfferTable, query: Query) -> Sequence[int]:
    """Rows that pass every filter but price and doubt; the narrowest columns first."""
    tests: list[tuple[Sequence[int], set[int]]] = []

    def keep(column: str, accept: Callable[[Any], bool]) -> None:
        coded = table.columns[column]
        allowed = coded.where(accept)
        if len(allowed) < len(coded.values):
            tests.append((coded.codes, allowed))

    if query.accelerators is not None:
        wanted = query.accelerators or {""}
        keep("accelerator", lambda name: name in wanted)
    if query.count is not None:
        keep("accelerator_count", lambda count: abs(count - (query.count or 0)) < 1e-3)
    for column in ("provider", "region", "zone", "instance_type"):
        patterns = getattr(query, column)
        if column == "region" and patterns is not None and any(map(countries, _several(patterns))):
            tests.append(_in_areas(table, _several(patterns)))
        elif patterns is not None:
            keep(column, _glob(patterns))
    tests.sort(key=lambda test: len(test[1]))
    rows: Sequence[int] = range(len(table))
    for codes, allowed in tests:
        if isinstance(rows, range):
            rows = [row for row, code in enumerate(codes) if code in allowed]
        else:
            rows = [row for row in rows if codes[row] in allowed]
    if query.memory_gb_at_least is not None:
        memory, count = table.columns["accelerator_memory_gb"], table.columns["accelerator_count"]
        least = query.memory_gb_at_least
        rows = [r for r in rows if (memory[r] or 0) * min(1, count[r]) >= least - 1e-6]
    return rows


def _in_areas(table: OfferTable, patterns: Sequence[str]) -> tuple[Sequence[int], set[int]]:
    """Of regions that are globs, or areas (`EU`) which hold every region in their countries."""
    lands = {land for text in patterns for land in countries(text)}
    named = _glob([text for text in patterns if not countries(text)])
    providers, regions = table.columns["provider"], table.columns["region"]
    many = len(regions.values)
    codes = [one * many + other for one, other in zip(providers.codes, regions.codes, strict=True)]

    def fits(code: int) -> bool:
        provider, region = providers.values[code // many], regions.values[code % many]
        return named(region) or places.country_of(provider, region) in lands

    return codes, {code for code in set(codes) if fits(code)}


def literal(name: str) -> str:
    """A name as a glob that matches only itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _several(patterns: str | Sequence[str]) -> Sequence[str]:
    return [patterns] if isinstance(patterns, str) else patterns


def _glob(patterns: str | Sequence[str]) -> Callable[[str], bool]:
    joined = re.compile(
        "|".join(fnmatch.translate(p.lower()) for p in _several(patterns)) or "(?!)"
    )
    return lambda text: joined.match(text.lower()) is not None


def _units(
    table: OfferTable, accelerators: Mapping[str, Accelerator], sort: str, rows: Sequence[int]
) -> list[float]:
    """How many of the sorting unit each machine has: 8 accelerators, 7.9 PFLOP/s, 640 GB."""
    if sort == "hour":
        return [1] * len(rows)
    count = table.columns["accelerator_count"]
    if sort == "accelerator-hour":
        return [count.values[code] for code in _take(count.codes, rows)]
    if sort == "gb-hour":
        other = table.columns["accelerator_memory_gb"]
        each = [memory or 0 for memory in other.values]
    else:
        other = table.columns["accelerator"]
        each = [
            (accelerators[name].training_tflops or 0) / 1000 if name in accelerators else 0
            for name in other.values
        ]
    both = zip(_take(count.codes, rows), _take(other.codes, rows), strict=True)
    return [count.values[number] * each[kind] for number, kind in both]
