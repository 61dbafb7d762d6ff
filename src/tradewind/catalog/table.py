"""Offers as columns: what is filtered is small integers, and an Offer is made only when looked at.

A coded column holds each distinct value once and a small integer per row, so a glob over regions is
tried on 300 names rather than 9,000 rows. Prices are plain integers of micro-dollars. Every price
has its own date, source and mark, since a refresh may renew one market and not another.
"""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from tradewind.base.units import Micros
from tradewind.model import Market, Offer, Price

KEY = ("provider", "region", "zone", "instance_type", "accelerator")
NUMBERS = (
    "accelerator_count",
    "accelerator_memory_gb",
    "vcpus",
    "memory_gb",
    "local_nvme_gb",
    "network_gbps",
)
PRICE_GROUPS: dict[str, tuple[Market, str]] = {
    "on_demand": ("on_demand", ""),
    "spot": ("spot", ""),
    "reserved_1y": ("reserved", "1y"),
    "reserved_3y": ("reserved", "3y"),
    "held": ("reserved", "held"),  # the account's own reservations; never in a file
}
GROUPS_OF: dict[Market, tuple[str, ...]] = {
    market: tuple(g for g, (m, _) in PRICE_GROUPS.items() if m == market)
    for market in ("on_demand", "spot", "reserved")
}

Row = dict[str, Any]
"""One offer as a flat mapping: KEY, NUMBERS, and per price group `G`, `G_as_of`, `G_source`,
`G_mark` (missing ones mean no price); `own` for the user's."""


@dataclass(slots=True)
class Coded:
    """A column of few distinct values."""

    values: list[Any]
    codes: Sequence[int]

    @classmethod
    def of(cls, column: Iterable[Any]) -> Coded:
        index: dict[Any, int] = {}
        codes = [index.setdefault(value, len(index)) for value in column]
        return cls(list(index), codes)

    def __getitem__(self, row: int) -> Any:
        return self.values[self.codes[row]]

    def extended(self, more: Coded) -> Coded:
        index = {value: code for code, value in enumerate(self.values)}
        moved = [index.setdefault(value, len(index)) for value in more.values]
        return Coded(list(index), [*self.codes, *(moved[code] for code in more.codes)])

    def replaced(self, changes: Mapping[int, Any]) -> Coded:
        index = {value: code for code, value in enumerate(self.values)}
        codes = list(self.codes)
        for row, value in changes.items():
            codes[row] = index.setdefault(value, len(index))
        return Coded(list(index), codes)

    def where(self, accept: Any) -> set[int]:
        """The codes whose value `accept` likes."""
        return {code for code, value in enumerate(self.values) if accept(value)}


@dataclass(slots=True)
class PriceColumns:
    micros: list[int | None]
    as_of: Coded
    source: Coded
    mark: Coded

    def extended(self, more: PriceColumns) -> PriceColumns:
        return PriceColumns(
            self.micros + more.micros,
            self.as_of.extended(more.as_of),
            self.source.extended(more.source),
            self.mark.extended(more.mark),
        )

    def replaced(self, changes: Mapping[int, tuple[int, str, str]]) -> PriceColumns:
        """`changes`: row → micros, date, source. A price the account vouches for bears no mark."""
        micros = list(self.micros)
        for row, change in changes.items():
            micros[row] = change[0]
        return PriceColumns(
            micros,
            self.as_of.replaced({row: change[1] for row, change in changes.items()}),
            self.source.replaced({row: change[2] for row, change in changes.items()}),
            self.mark.replaced(dict.fromkeys(changes, "")),
        )

    def price(self, row: int, group: str) -> Price | None:
        micros = self.micros[row]
        if micros is None:
            return None
        market, term = PRICE_GROUPS[group]
        return Price(
            market,
            Micros(micros),
            parse_date(self.as_of[row]),
            self.source[row],
            term,
            self.mark[row],
        )


@dataclass(slots=True)
class OfferTable:
    columns: dict[str, Coded]
    prices: dict[str, PriceColumns]
    own: list[bool] = field(default_factory=list)
    memo: dict[Any, Any] = field(default_factory=dict)  # what queries remember of this table

    def __len__(self) -> int:
        return len(self.own)

    @property
    def sold(self) -> frozenset[str]:
        """The price groups in which anything has a price or a mark."""
        if "sold" not in self.memo:
            self.memo["sold"] = self._sold()
        sold: frozenset[str] = self.memo["sold"]
        return sold

    def _sold(self) -> frozenset[str]:
        return frozenset(
            group
            for group, columns in self.prices.items()
            if any(columns.mark.values) or any(m is not None for m in columns.micros)
        )

    @classmethod
    def of(cls, rows: Sequence[Row]) -> OfferTable:
        return cls(
            {name: Coded.of(row[name] for row in rows) for name in KEY}
            | {name: Coded.of(row.get(name) for row in rows) for name in NUMBERS},
            {
                group: PriceColumns(
                    [row.get(group) for row in rows],
                    Coded.of(row.get(f"{group}_as_of", "") for row in rows),
                    Coded.of(row.get(f"{group}_source", "") for row in rows),
                    Coded.of(row.get(f"{group}_mark", "") for row in rows),
                )
                for group in PRICE_GROUPS
            },
            [bool(row.get("own")) for row in rows],
        )

    def extended(self, rows: Sequence[Row]) -> OfferTable:
        """With `rows` behind the present ones, which keep their numbers."""
        more = OfferTable.of(rows)
        return OfferTable(
            {name: column.extended(more.columns[name]) for name, column in self.columns.items()},
            {group: prices.extended(more.prices[group]) for group, prices in self.prices.items()},
            self.own + more.own,
        )

    def repriced(self, group: str, changes: Mapping[int, tuple[int, str, str]]) -> OfferTable:
        prices = self.prices | {group: self.prices[group].replaced(changes)}
        return OfferTable(self.columns, prices, self.own)

    def marked(self, group: str, reasons: Mapping[int, str]) -> OfferTable:
        """With marks on prices that bear none yet."""
        columns = self.prices[group]
        new = {
            row: reason
            for row, reason in reasons.items()
            if columns.micros[row] is not None and not columns.mark[row]
        }
        changed = PriceColumns(
            columns.micros, columns.as_of, columns.source, columns.mark.replaced(new)
        )
        return OfferTable(self.columns, self.prices | {group: changed}, self.own)

    def rows(self) -> Iterator[Row]:
        for number in range(len(self)):
            row: Row = {name: column[number] for name, column in self.columns.items()}
            for group, columns in self.prices.items():
                if columns.micros[number] is not None or columns.mark[number]:
                    row[group] = columns.micros[number]
                    row[f"{group}_as_of"] = columns.as_of[number]
                    row[f"{group}_source"] = columns.source[number]
                    row[f"{group}_mark"] = columns.mark[number]
            if self.own[number]:
                row["own"] = True
            yield row

    def offer(self, row: int) -> Offer:
        prices = (columns.price(row, group) for group, columns in self.prices.items())
        return Offer(
            **{name: column[row] for name, column in self.columns.items()},
            prices=tuple(p for p in prices if p),
            own=self.own[row],
        )

    # -- as written to disk ----------------------------------------------------------------------

    def encoded(self) -> dict[str, Any]:
        prices = {}
        for group, price in self.prices.items():
            if any(m is not None for m in price.micros) or any(price.mark.values):
                prices[group] = {
                    "micros": _pack("q", [_NO_PRICE if m is None else m for m in price.micros]),
                    "as_of": _pack_coded(price.as_of),
                    "source": _pack_coded(price.source),
                    "mark": _pack_coded(price.mark),
                }
        return {
            "rows": len(self),
            "columns": {name: _pack_coded(column) for name, column in self.columns.items()},
            "prices": prices,
        }

    @classmethod
    def decoded(cls, data: Mapping[str, Any]) -> OfferTable:
        """The table in `data`; ValueError (or the like) where its parts do not fit together."""
        count = data["rows"]
        nothing = Coded([""], [0] * count)
        prices = {}
        for group in PRICE_GROUPS:
            packed = data["prices"].get(group)
            if packed is None:
                prices[group] = PriceColumns([None] * count, nothing, nothing, nothing)
                continue
            micros = _unpack("q", packed["micros"], count)
            prices[group] = PriceColumns(
                [None if m == _NO_PRICE else m for m in micros],
                *(_unpack_coded(packed[part], count, str) for part in ("as_of", "source", "mark")),
            )
            for text in prices[group].as_of.values:
                parse_date(text)
        number = (int, float, type(None))
        kinds: dict[str, tuple[type, ...]] = dict.fromkeys(KEY, (str,))
        kinds |= dict.fromkeys(NUMBERS, number)
        kinds["accelerator_count"] = (int, float)
        columns = {
            name: _unpack_coded(data["columns"][name], count, *kind) for name, kind in kinds.items()
        }
        return cls(columns, prices, [False] * count)


# Integers travel as base64 of little-endian arrays: ten times quicker to read than JSON numbers.
_NO_PRICE = -(2**63)


def _pack(kind: str, numbers: Sequence[int]) -> str:
    packed = array(kind, numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes()).decode()


def _unpack(kind: str, text: str, count: int) -> Sequence[int]:
    packed = array(kind, base64.b64decode(text, validate=True))
    if sys.byteorder == "big":
        packed.byteswap()
    if len(packed) != count:
        raise ValueError(f"a column has {len(packed)} rows, not {count}")
    return packed


def _pack_coded(column: Coded) -> dict[str, Any]:
    wide = len(column.values) > 0xFFFF
    kind = "I" if wide else "H"
    return {"values": column.values, "kind": kind, "codes": _pack(kind, column.codes)}


def _unpack_coded(packed: Mapping[str, Any], count: int, *kinds: type) -> Coded:
    if packed["kind"] not in ("H", "I"):
        raise ValueError(f"unknown kind of column {packed['kind']!r}")
    codes = _unpack(packed["kind"], packed["codes"], count)
    if max(set(codes), default=-1) >= len(packed["values"]):
        raise ValueError("a column has codes without a value")
    if not all(isinstance(value, kinds) for value in packed["values"]):
        raise ValueError("a column has values of the wrong kind")
    return Coded(packed["values"], codes)


def parse_date(text: str) -> date | None:
    return date.fromisoformat(text) if text else None


def neighbours(row: Row) -> tuple[str, ...]:
    """Sorting key for the file: rows alike side by side compress best."""
    key: tuple[str, ...] = tuple(
        row[name] for name in ("provider", "accelerator", "instance_type", "region", "zone")
    )
    return key
