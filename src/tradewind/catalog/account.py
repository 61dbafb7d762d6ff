"""The account file: machines of your own, discounts, quotas and reservations.

`$TRADEWIND_HOME/account.yaml`, written by the user, documented in docs/account.md. It is read with
the catalog; a wrong line is refused with its place and reason, all of them at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Protocol, TypeVar

from tradewind import yamltree
from tradewind.catalog import query as queries
from tradewind.catalog.names import Names
from tradewind.catalog.query import Query
from tradewind.catalog.table import PRICE_GROUPS, OfferTable, Row
from tradewind.errors import InvalidValue
from tradewind.model import MARKETS, Discount, Market, Quota, Reservation, Scope
from tradewind.units import (
    Micros,
    format_money,
    parse_bandwidth,
    parse_bytes,
    parse_money,
)
from tradewind.yamltree import Node, Problems, field

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")
SECTIONS = ("offers", "discounts", "quotas", "reservations")
_SCOPE = ("provider", "region", "zone", "type", "accelerator")
_OFFER = (
    "name", "provider", "region", "zone", "accelerator", "on_demand", "spot", "reserved_1y",
    "reserved_3y", "vcpus", "memory", "nvme", "network", "machines",
)  # fmt: skip
_DISCOUNT = ("match", "market", "term", "off", "price", "until", "why")
_QUOTA = ("match", "market", "machines", "accelerators")
_RESERVATION = ("match", "machines", "price", "from", "until")


@dataclass(frozen=True, slots=True)
class Account:
    """`offers` are rows for the offer table; the rest is kept as it was said."""

    origin: str
    offers: tuple[Row, ...] = ()
    discounts: tuple[Discount, ...] = ()
    quotas: tuple[Quota, ...] = ()
    reservations: tuple[Reservation, ...] = ()

    def applied(self, table: OfferTable, today: date) -> OfferTable:
        """The public offers at this account's prices, with its own machines behind them."""
        for discount in self.discounts:
            if discount.until is None or discount.until >= today:
                table = _discounted(table, discount, today)
        for reservation in self.reservations:
            if (reservation.start or today) <= today <= (reservation.until or today):
                rows = _rows(table, reservation.scope)
                source = f"{self.origin}: {reservation.machines} reserved"
                held = dict.fromkeys(rows, (reservation.price, today.isoformat(), source))
                table = table.repriced("held", held)
        for quota in self.quotas:
            table = self._limited(table, quota)
        return table.extended(self.offers) if self.offers else table

    def _limited(self, table: OfferTable, quota: Quota) -> OfferTable:
        """A price that the quota leaves no room for is marked, like any that cannot be had."""
        counts = table.columns["accelerator_count"]
        reasons = {}
        for row in _rows(table, quota.scope):
            if quota.machines == 0:
                reasons[row] = f"quota: {self.origin} allows none"
            elif quota.accelerators is not None and counts[row] > quota.accelerators:
                allowed = f"{quota.accelerators} accelerators at once"
                reasons[row] = f"quota: {self.origin} allows {allowed}"
        for group, (market, term) in PRICE_GROUPS.items():
            # What is held already needs no quota.
            if quota.market in (None, market) and term != "held":
                table = table.marked(group, reasons)
        return table


def _rows(table: OfferTable, scope: Scope) -> Sequence[int]:
    query = Query(
        accelerators=frozenset(scope.accelerators) if scope.accelerators else None,
        provider=scope.provider or None,
        region=scope.region or None,
        zone=scope.zone or None,
        instance_type=scope.instance_type or None,
    )
    return queries.matching(table, query)


def _discounted(table: OfferTable, discount: Discount, today: date) -> OfferTable:
    group = f"reserved_{discount.term}" if discount.market == "reserved" else discount.market
    base = table.prices["spot" if group == "spot" else "on_demand"]
    changes: dict[int, tuple[int, str, str]] = {}
    for row in _rows(table, discount.scope):
        listed = base.micros[row]
        if discount.price is not None:
            changes[row] = (discount.price, today.isoformat(), f"account: {discount.why}")
        elif listed is not None and discount.off is not None and not base.mark[row]:
            # A share off a stale or doubtful price is as stale or doubtful: the date stays.
            price = round(listed * (1 - discount.off))
            why = f"account: {discount.why}, {discount.off:.0%} off {format_money(listed)}"
            changes[row] = (price, base.as_of[row], f"{why} ({base.source[row]})")
    return table.repriced(group, changes)


# -- reading -------------------------------------------------------------------------------------


def read(text: str, origin: str, names: Names) -> Account:
    root = yamltree.parse(text, origin)
    problems = Problems(origin)
    reader = _Reader(problems, names)
    sections: Mapping[str, Node] = {}
    with problems.at(root):
        sections = root.mapping(SECTIONS, problems)
    account = Account(
        origin,
        tuple(reader.each(sections, "offers", reader.offer)),
        tuple(reader.each(sections, "discounts", reader.discount)),
        tuple(reader.each(sections, "quotas", reader.quota)),
        tuple(reader.each(sections, "reservations", reader.reservation)),
    )
    problems.raise_if_any(hint="docs/account.md describes the file; nothing of it was used")
    return account


class _Reader:
    """One method a kind of line; what is wrong goes to `problems`, and the reading goes on."""

    def __init__(self, problems: Problems, names: Names) -> None:
        self.problems, self.names = problems, names

    def each(
        self, sections: Mapping[str, Node], name: str, read_one: Callable[[Node], T]
    ) -> list[T]:
        found: list[T] = []
        if name in sections:
            with self.problems.at(sections[name]):
                for node in sections[name].items():
                    with self.problems.at(node):
                        found.append(read_one(node))
        return found

    def offer(self, node: Node) -> Row:
        fields = node.mapping(_OFFER, self.problems)
        get = self._getter(fields)
        row: Row = {
            "provider": get("provider", _plain) or "own",
            "region": get("region", _plain) or "own",
            "zone": get("zone", _plain) or "",
            "instance_type": get("name", _plain),
            "accelerator": "",
            "accelerator_count": 0,
            "accelerator_memory_gb": None,
            "vcpus": get("vcpus", Node.number),
            "memory_gb": get("memory", _gigabytes),
            "local_nvme_gb": get("nvme", _gigabytes),
            "network_gbps": get("network", lambda n: parse_bandwidth(n.text()) / 1e9),
            "machines": get("machines", _whole),
            "own": True,
        }
        row |= get("accelerator", self._accelerator) or {}
        priced = False
        for group in ("on_demand", "spot", "reserved_1y", "reserved_3y"):
            price = get(group, _money)
            if price is not None:
                priced = True
                row |= {
                    group: price,
                    f"{group}_source": f"{self.problems.origin} line {node.line}",
                }
        if "name" not in fields:
            raise InvalidValue("an offer needs a name, the type of the machine")
        if not priced and not any(group in fields for group in PRICE_GROUPS):
            raise InvalidValue(
                "an offer needs a price: on_demand, spot, reserved_1y or reserved_3y"
            )
        return row

    def discount(self, node: Node) -> Discount:
        fields = node.mapping(_DISCOUNT, self.problems)
        get = self._getter(fields)
        market = get("market", _market) or "on_demand"
        if ("off" in fields) == ("price" in fields):
            raise InvalidValue("a discount needs either off (12%) or price ($40), not both")
        term = get("term", _term) or ""
        if (market == "reserved") != bool(term) and "term" not in fields:
            raise InvalidValue("a reserved price needs a term, 1y or 3y")
        return Discount(
            scope=self._scope(fields, node),
            market=market,
            term=term,
            off=get("off", _share),
            price=get("price", _money),
            until=get("until", _date),
            why=get("why", _plain) or "discount",
        )

    def quota(self, node: Node) -> Quota:
        fields = node.mapping(_QUOTA, self.problems)
        get = self._getter(fields)
        if ("machines" in fields) == ("accelerators" in fields):
            raise InvalidValue("a quota needs either machines or accelerators")
        return Quota(
            scope=self._scope(fields, node),
            market=get("market", _market),
            machines=get("machines", _whole),
            accelerators=get("accelerators", _whole),
        )

    def reservation(self, node: Node) -> Reservation:
        fields = node.mapping(_RESERVATION, self.problems)
        get = self._getter(fields)
        if "price" not in fields or "machines" not in fields:
            raise InvalidValue(
                "a reservation needs machines and a price ($0 if it is paid already)"
            )
        return Reservation(
            scope=self._scope(fields, node),
            machines=get("machines", _whole) or 0,
            price=get("price", _money) or Micros(0),
            start=get("from", _date),
            until=get("until", _date),
        )

    def _scope(self, fields: Mapping[str, Node], node: Node) -> Scope:
        if "match" not in fields:
            raise InvalidValue(f"match is missing: which offers? ({', '.join(_SCOPE)})")
        match = fields["match"].mapping(_SCOPE, self.problems)
        if not match:
            raise InvalidValue("match is empty: it would mean every offer of every provider")
        get = self._getter(match)
        accelerator = get("accelerator", lambda n: self.names.resolve(n.text()).names)
        return Scope(
            provider=get("provider", _plain) or "",
            region=get("region", _plain) or "",
            zone=get("zone", _plain) or "",
            instance_type=get("type", _plain) or "",
            accelerators=accelerator or (),
        )

    def _accelerator(self, node: Node) -> Row:
        match = self.names.resolve(node.text())
        name = self.names.one(node.text()) if len(match.names) > 1 else match.names[0]
        return {
            "accelerator": name,
            "accelerator_count": match.count or 1,
            "accelerator_memory_gb": self.names.memory_gb(name),
        }

    def _getter(self, fields: Mapping[str, Node]) -> _Get:
        def get(name: str, read_value: Callable[[Node], T]) -> T | None:
            return field(fields, name, read_value, self.problems)

        return get


class _Get(Protocol):
    def __call__(self, name: str, read_value: Callable[[Node], T]) -> T | None: ...


def _plain(node: Node) -> str:
    return node.text()


def _money(node: Node) -> Micros:
    return parse_money(node.text())


def _gigabytes(node: Node) -> float:
    return parse_bytes(node.text()) / 1e9


def _whole(node: Node) -> int:
    number = node.number()
    if number != int(number):
        raise InvalidValue(f"{node.text()} is not a whole number")
    return int(number)


def _share(node: Node) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", node.text())
    if not found or not 0 < float(found[1]) < 100:
        raise InvalidValue(f"{node.text()!r} is not a share like 12%")
    return float(found[1]) / 100


def _market(node: Node) -> Market:
    text = node.text().lower().replace("-", "_")
    for market in MARKETS:
        if text == market:
            return market
    raise InvalidValue(f"no market is called {text!r}; one of {', '.join(MARKETS)}")


def _term(node: Node) -> str:
    if node.text() not in ("1y", "3y"):
        raise InvalidValue(f"{node.text()!r} is not a term; 1y or 3y")
    return node.text()


def _date(node: Node) -> date:
    try:
        return date.fromisoformat(node.text())
    except ValueError:
        raise InvalidValue(f"{node.text()!r} is not a date like 2027-03-31") from None
