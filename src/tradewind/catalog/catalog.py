"""The catalog as a user sees it: the public facts joined with the account's own and with what we
have observed. Three tables with three owners; they meet here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import micros_from_usd, parse_bytes, parse_duration, parse_money
from tradewind.catalog import query as queries
from tradewind.catalog.names import Names, ambiguous, nearest, provider_name
from tradewind.catalog.query import Patterns, Query, Selection
from tradewind.model import MARKETS, Accelerator, Market

if TYPE_CHECKING:
    from tradewind.catalog.account import Account
    from tradewind.catalog.facts import Facts
    from tradewind.catalog.observations import Observations
    from tradewind.catalog.table import OfferTable
    from tradewind.model import InstanceType, Rate


@dataclass(frozen=True)
class Catalog:
    facts: Facts
    table: OfferTable  # the public offers with the account's own offers and discounts in place
    origin: str  # where the public facts were read from
    account: Account | None = None
    observations: Observations | None = None
    _types: dict[str, dict[str, InstanceType]] = field(default_factory=dict, repr=False)

    @property
    def accelerators(self) -> Mapping[str, Accelerator]:
        return self.facts.accelerators

    @property
    def names(self) -> Names:
        return self.facts.names

    @property
    def rates(self) -> tuple[Rate, ...]:
        return self.facts.rates

    @property
    def providers(self) -> list[str]:
        return sorted(self.table.columns["provider"].values)

    def variant(self, text: str) -> tuple[Accelerator, float | None]:
        """The one accelerator that `text` names, and how many of it; with the memory it says,
        though nobody rents such a one out (`H100-SXM-96`)."""
        match, memory_gb = self.names.variant(text)
        if len(match.names) > 1:
            raise ambiguous(text, match.names)
        found = self.accelerators[match.names[0]]
        return (replace(found, memory_gb=memory_gb) if memory_gb else found), match.count

    def most_in_a_machine(self, accelerator: str) -> float | None:
        """The most of it that anybody offers in one machine, or None where nobody does."""
        kinds, counts = (self.table.columns[n] for n in ("accelerator", "accelerator_count"))
        wanted = kinds.where(lambda name: name == accelerator)
        found = {counts[row] for row, code in enumerate(kinds.codes) if code in wanted}
        return max(found, default=None)

    def instance_types(self, provider: str) -> Mapping[str, InstanceType]:
        """Every type we know of that provider, by name; CPU-only ones are not described."""
        if not self._types:
            for kind in self.facts.instances:
                self._types.setdefault(kind.provider, {})[kind.name] = kind
        return self._types.get(provider, {})

    def offers(
        self,
        accelerator: str | Sequence[str] | None = None,
        *,
        count: float | None = None,
        memory_at_least: str | float | None = None,
        provider: Patterns = None,
        region: Patterns = None,
        zone: Patterns = None,
        instance_type: Patterns = None,
        market: Market | Sequence[Market] | None = None,
        max_price: str | float | None = None,
        fresh_within: str | timedelta | None = None,
        include_marked: bool = False,
        sort: str = "accelerator-hour",
        today: date | None = None,
    ) -> Selection:
        """Offers that match, cheapest first; doubtful prices are left out and counted.

        `accelerator` takes any spelling (`h100:8`), several, or `"none"` for CPU-only machines.
        Providers, regions, zones and types take globs. `memory_at_least` is of one accelerator
        (`"80GB"`, or a number of GB), `max_price` of the whole machine per hour, `fresh_within` the
        greatest age of a price (`"30d"`). Of several markets, each offer counts with its cheapest;
        without `market`, commitments for years do not compete.
        """
        names, counted = self._accelerators(accelerator)
        if count is not None and counted is not None and count != counted:
            raise InvalidValue(
                f"the accelerator says {counted:g}, the count says {count:g}",
                hint="give one of them",
            )
        query = Query(
            accelerators=names,
            count=counted if count is None else _positive(count, "count"),
            memory_gb_at_least=_memory_gb(memory_at_least),
            provider=self._providers(provider),
            region=region,
            zone=zone,
            instance_type=instance_type,
            markets=_markets(market),
            max_micros_hour=None if max_price is None else _micros(max_price),
            fresh_within_days=_days(fresh_within),
            include_marked=include_marked,
            sort=sort,
        )
        return queries.select(self.table, self.accelerators, query, today or clock.today())

    def _accelerators(
        self, wanted: str | Sequence[str] | None
    ) -> tuple[frozenset[str] | None, float | None]:
        if wanted is None:
            return None, None
        several = [wanted] if isinstance(wanted, str) else list(wanted)
        if not several:
            raise InvalidValue("no accelerator is named", hint='"none" asks for CPU-only machines')
        names: set[str] = set()
        counts: set[float | None] = set()
        for text in several:
            if text.strip().lower() in ("none", "cpu"):
                names.add("")
                counts.add(None)
                continue
            match = self.names.resolve(text)
            names.update(match.names)
            counts.add(match.count)
        if len(counts) > 1:
            raise InvalidValue(
                "several accelerators with different counts cannot be asked for at once",
                hint="leave the counts out of the names, or ask once for each",
            )
        return frozenset(names), counts.pop() if counts else None

    def _providers(self, wanted: Patterns) -> Patterns:
        if wanted is None:
            return None
        several = [wanted] if isinstance(wanted, str) else list(wanted)
        resolved = [provider_name(p) for p in several]
        known = self.table.columns["provider"].values
        for text in resolved:
            if not any(c in text for c in "*?[") and text not in known:
                close = nearest(text, known)
                raise NotFound(
                    f"no provider is called {text!r}",
                    hint=f"did you mean {' or '.join(close)}?"
                    if close
                    else f"known: {', '.join(self.providers)}",
                    choices=close,
                )
        return resolved


def _markets(market: str | Sequence[str] | None) -> tuple[Market, ...]:
    if market is None:
        return ()
    several = [market] if isinstance(market, str) else market
    asked = {m.strip().lower().replace("-", "_") for m in several}
    unknown = asked - set(MARKETS)
    if unknown:
        raise InvalidValue(
            f"no market is called {sorted(unknown)[0]!r}", hint=f"one of {', '.join(MARKETS)}"
        )
    return tuple(m for m in MARKETS if m in asked)


def _memory_gb(memory: str | float | None) -> float | None:
    if memory is None:
        return None
    if isinstance(memory, str):
        return parse_bytes(memory) / 1e9
    return _positive(memory, "memory_at_least")


def _micros(price: str | float) -> int:
    if isinstance(price, str):
        return parse_money(price)
    return micros_from_usd(_positive(price, "max_price"))


def _days(age: str | timedelta | None) -> float:
    if age is None:
        return queries.FRESH_WITHIN_DAYS
    if not isinstance(age, str | timedelta):
        raise InvalidValue(f"fresh_within is {age!r}", hint='write "30d", or a timedelta')
    seconds = parse_duration(age) if isinstance(age, str) else age.total_seconds()
    return _positive(seconds, "fresh_within") / 86_400


def _positive(value: float, name: str) -> float:
    if not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InvalidValue(f"{name} is {value!r}, which cannot be")
    return value
