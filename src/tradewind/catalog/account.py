"""The account file: machines of your own, discounts, quotas and reservations.

`$TRADEWIND_HOME/account.yaml`, written by the user, documented in docs/account.md. It is read with
the catalog; a wrong line is refused with its place and reason, all of them at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Protocol, TypeVar

from tradewind.base import yamltree
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.base.units import Micros, format_money, parse_bandwidth, parse_bytes, parse_money
from tradewind.base.yamltree import Node, Problems, field
from tradewind.catalog import query as queries
from tradewind.catalog import sustained
from tradewind.catalog.names import Names, nearest, provider_name
from tradewind.catalog.query import Query
from tradewind.catalog.table import KEY, PRICE_GROUPS, OfferTable, Row
from tradewind.model import MARKETS, Discount, Market, Quota, Reservation, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tradewind.model.sustained import Steps

T = TypeVar("T")
SECTIONS = ("offers", "discounts", "quotas", "reservations")
_SCOPE = ("provider", "region", "zone", "type", "accelerator")
_OFFER = (
    "name", "provider", "region", "zone", "accelerator", "on_demand", "spot", "reserved_1y",
    "reserved_3y", "vcpus", "memory", "nvme", "network", "machines",
)  # fmt: skip
_DISCOUNT = ("match", "market", "term", "off", "price", "sustained", "until", "why")
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

    def idle(self, table: OfferTable) -> list[str]:
        """Lines that match no offer: a typing error, or something that is sold no more."""
        scopes = [d.scope for d in self.discounts] + [q.scope for q in self.quotas]
        scopes += [r.scope for r in self.reservations]
        return [
            f"{self.origin} line {scope.line}: match fits no offer"
            for scope in scopes
            if not rows_of(table, scope)
        ] + [
            f"{self.origin} line {each.scope.line}: no type that match fits has a sustained-use"
            " discount"
            for each in self.discounts
            if each.sustained and rows_of(table, each.scope) and not self._steps(table, each)
        ]

    def applied(self, table: OfferTable, today: date) -> OfferTable:
        """The public offers at this account's prices, with its own machines behind them."""
        for discount in self.discounts:
            if discount.lasts(today) and not discount.sustained:
                table = self._discounted(table, discount, today)
        for reservation in self.reservations:
            if reservation.lasts(today):
                rows = rows_of(table, reservation.scope)
                source = f"{self.origin}: {reservation.machines} reserved"
                held = dict.fromkeys(rows, (reservation.price, today.isoformat(), source))
                table = table.repriced("held", held)
        for quota in self.quotas:
            table = self._limited(table, quota)
        return table.extended(self.offers) if self.offers else table

    def sustained(self, table: OfferTable, today: date) -> dict[int, Steps]:
        """By row, what is paid less the longer it is up in a month."""
        given = [each for each in self.discounts if each.sustained and each.lasts(today)]
        return {row: steps for each in given for row, steps in self._steps(table, each).items()}

    def _steps(self, table: OfferTable, discount: Discount) -> dict[int, Steps]:
        names = table.columns["provider"], table.columns["instance_type"]
        found = {
            row: sustained.steps(*(column[row] for column in names))
            for row in rows_of(table, discount.scope)
        }
        return {row: steps for row, steps in found.items() if steps}

    def _discounted(self, table: OfferTable, discount: Discount, today: date) -> OfferTable:
        group = f"reserved_{discount.term}" if discount.market == "reserved" else discount.market
        base = table.prices["spot" if group == "spot" else "on_demand"]
        # Only what is sold at a price that is believed: a share of a placeholder means nothing, and
        # a negotiated price brings no retired machine back.
        sold = [
            row
            for row in rows_of(table, discount.scope)
            if base.micros[row] is not None and not base.mark[row]
        ]
        changes: dict[int, tuple[int, str, str]] = {}
        if discount.price is not None:
            self._one_size(table, sold, discount.scope)
            source = f"account: {discount.why}"
            changes = dict.fromkeys(sold, (discount.price, today.isoformat(), source))
        for row in sold if discount.off is not None else ():
            listed = base.micros[row]
            assert listed is not None
            assert discount.off is not None
            why = f"account: {discount.why}, {100 * discount.off:.4g}% off {format_money(listed)}"
            # The date stays: a share of a stale price is as stale.
            price = round(listed * (1 - discount.off))
            changes[row] = (price, base.as_of[row], f"{why} ({base.source[row]})")
        return table.repriced(group, changes)

    def _one_size(self, table: OfferTable, rows: Sequence[int], scope: Scope) -> None:
        """A price is for a whole machine, so it cannot be meant for machines of several sizes."""
        counts = sorted({table.columns["accelerator_count"][row] for row in rows})
        if len(counts) > 1:
            sizes = ", ".join(f"{count:g}" for count in counts)
            raise BadFile(
                f"{self.origin} line {scope.line}: price is for a whole machine, but match fits "
                f"machines with {sizes} accelerators",
                hint="name the type, or a count with the accelerator: accelerator: a100:8",
            )

    def _limited(self, table: OfferTable, quota: Quota) -> OfferTable:
        """A price that the quota leaves no room for is marked, like any that cannot be had."""
        counts = table.columns["accelerator_count"]
        reasons = {}
        for row in rows_of(table, quota.scope):
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


def rows_of(table: OfferTable, scope: Scope) -> Sequence[int]:
    query = Query(
        accelerators=frozenset(scope.accelerators) if scope.accelerators else None,
        count=scope.count,
        provider=scope.provider or None,
        region=scope.region or None,
        zone=scope.zone or None,
        instance_type=scope.instance_type or None,
    )
    return queries.matching(table, query)


# -- reading -------------------------------------------------------------------------------------


def read(text: str, origin: str, names: Names, providers: Iterable[str]) -> Account:
    """`providers`: those of the catalog; a line must speak of one of them, or of one's own."""
    root = yamltree.parse(text, origin)
    problems = Problems(origin)
    reader = _Reader(problems, names, set(providers))
    sections: Mapping[str, Node] = {}
    with problems.at(root):
        sections = root.mapping(SECTIONS, problems)
    account = Account(
        origin,
        tuple(reader.own_offers(sections)),
        tuple(reader.each(sections, "discounts", reader.discount)),
        tuple(reader.each(sections, "quotas", reader.quota)),
        tuple(reader.each(sections, "reservations", reader.reservation)),
    )
    problems.raise_if_any(hint="docs/account.md describes the file; nothing of it was used")
    return account


class _Reader:
    """One method a kind of line; what is wrong goes to `problems`, and the reading goes on."""

    def __init__(self, problems: Problems, names: Names, providers: set[str]) -> None:
        self.problems, self.names, self.providers = problems, names, providers

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

    def own_offers(self, sections: Mapping[str, Node]) -> list[Row]:
        found: dict[tuple[str, ...], Row] = {}

        def read_one(node: Node) -> None:
            row = self.offer(node)
            key = tuple(row[name] or "" for name in KEY)
            if found.setdefault(key, row) is not row:
                raise InvalidValue(f"there is another {row['instance_type']!r} in the same place")

        self.each(sections, "offers", read_one)
        return list(found.values())

    def offer(self, node: Node) -> Row:
        fields = node.mapping(_OFFER, self.problems)
        get = self._getter(fields)
        provider = get("provider", _plain) or "own"
        self.providers.add(provider.lower())
        row: Row = {
            "provider": provider.lower(),
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
        lasting = get("sustained", _yes) or False
        if [lasting, "off" in fields, "price" in fields].count(True) != 1:
            raise InvalidValue(
                "a discount needs one of off (12%), price ($40) and sustained (true)"
            )
        if lasting and market != "on_demand":
            raise InvalidValue(f"sustained use is a discount on demand, and this is {market}")
        term = get("term", _term) or ""
        if market == "reserved" and "term" not in fields:
            raise InvalidValue("a reserved price needs a term, 1y or 3y")
        if market != "reserved" and "term" in fields:
            raise InvalidValue(f"term is for market: reserved, and this is {market}")
        return Discount(
            scope=self._scope(fields, node),
            market=market,
            term=term,
            off=get("off", _share),
            price=get("price", _money),
            until=get("until", _date),
            why=get("why", _plain) or "discount",
            sustained=lasting,
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
        start, until = get("from", _date), get("until", _date)
        if get("machines", _whole) == 0:
            raise InvalidValue("a reservation of no machines is none")
        if start and until and until < start:
            raise InvalidValue(f"it ends on {until}, before it starts on {start}")
        return Reservation(
            scope=self._scope(fields, node),
            machines=get("machines", _whole) or 0,
            price=get("price", _money) or Micros(0),
            start=start,
            until=until,
        )

    def _scope(self, fields: Mapping[str, Node], node: Node) -> Scope:
        if "match" not in fields:
            raise InvalidValue(f"match is missing: which offers? ({', '.join(_SCOPE)})")
        match = fields["match"].mapping(_SCOPE, self.problems)
        if not match:
            raise InvalidValue("match is empty: it would mean every offer of every provider")
        get = self._getter(match)
        accelerator = get("accelerator", lambda n: self.names.resolve(n.text()))
        return Scope(
            line=node.line,
            provider=get("provider", self._provider) or "",
            region=get("region", _plain) or "",
            zone=get("zone", _plain) or "",
            instance_type=get("type", _plain) or "",
            accelerators=accelerator.names if accelerator else (),
            count=accelerator.count if accelerator else None,
        )

    def _provider(self, node: Node) -> str:
        name = provider_name(node.text())
        if not any(c in name for c in "*?[") and name not in self.providers:
            close = nearest(name, self.providers)
            advice = (
                f"did you mean {close[0]}?" if close else "`tradewind catalog status` lists them"
            )
            raise InvalidValue(f"no provider is called {name!r}; {advice}")
        return name

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


def _yes(node: Node) -> bool:
    """There is nothing to be said against a discount but leaving the line out."""
    if node.text().lower() not in ("true", "yes"):
        raise InvalidValue(f"{node.text()!r} is not true; without the discount, leave the line out")
    return True


def _term(node: Node) -> str:
    if node.text() not in ("1y", "3y"):
        raise InvalidValue(f"{node.text()!r} is not a term; 1y or 3y")
    return node.text()


def _date(node: Node) -> date:
    try:
        return date.fromisoformat(node.text())
    except ValueError:
        raise InvalidValue(f"{node.text()!r} is not a date like 2027-03-31") from None
