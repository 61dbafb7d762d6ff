"""Machines of an account's own, such as nodes of a cluster, as offers beside the catalog's: with
our names of their accelerators, and with a price.

The price is the account file's, for who has told one; else that of the type that a machine is like
in the catalog, for the part of it that it is, with its share of what the cluster itself costs.
Where there is neither, it is nothing, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from tradewind.base.errors import TradewindError
from tradewind.base.units import format_money, format_names
from tradewind.catalog import clusters, ratecard
from tradewind.catalog.account import Account
from tradewind.catalog.observations import Observations
from tradewind.model import MARKETS, Observation
from tradewind.providers.offered import Like, Offered, Type, Types

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.catalog.table import Row

ASSUMED_GBPS = 10.0
"""Between nodes of whose network nobody has told: the least that several are planned with."""
_SEEN_FOR = timedelta(minutes=10)
"""What is free now may be taken then."""
_ANYWHERE = ("own", "*", "")


@dataclass(frozen=True, slots=True)
class Joined:
    catalog: Catalog
    offers: int
    warnings: tuple[str, ...]


def known_types(catalog: Catalog) -> Types:
    """What a cloud may ask of the catalog."""

    def of(provider: str) -> Mapping[str, Type]:
        return {
            name: Type(name=name, accelerator=each.accelerator, count=each.accelerator_count)
            for name, each in catalog.instance_types(provider).items()
            if each.accelerator
        }

    return of


def joined(catalog: Catalog, offered: Mapping[str, Sequence[Offered]], now: datetime) -> Joined:
    """By cloud. The catalog that it was is left as it is."""
    join = _Join(catalog, now)
    rows = [row for name, several in offered.items() for row in join.rows(name, several)]
    if not rows:
        return Joined(catalog, 0, tuple(join.warnings))
    account = catalog.account or Account("account.yaml")
    table = catalog.table
    for market, replaced in join.replaced.items():
        table = table.marked(market, replaced)
    made = replace(
        catalog,
        table=table.extended(rows),
        # They come last, as the account's own do: by that place their number is known.
        account=replace(account, offers=(*account.offers, *rows)),
        observations=_with(catalog.observations, join.seen),
    )
    return Joined(made, len(rows), tuple(dict.fromkeys(join.warnings)))


class _Join:
    def __init__(self, catalog: Catalog, now: datetime) -> None:
        self._catalog, self._now = catalog, now
        self.warnings: list[str] = []
        self.seen: list[Observation] = []
        self.replaced: dict[str, dict[int, str]] = {}
        """Prices of account.yaml that offers here have instead, by market and row."""

    def rows(self, cloud: str, several: Sequence[Offered]) -> Iterable[Row]:
        """One for each kind of machine in a place, with its price on every market that it is on."""
        found: dict[tuple[str, str, str], Row] = {}
        unpriced: list[str] = []
        slow: list[str] = []
        for each in several:
            accelerator = self._accelerator(each)
            if accelerator is None or each.machines < 1 or each.market not in MARKETS:
                continue
            like = self._like(each.like)
            price, source = self._price(cloud, each, like)
            if price is None:
                whole = each.like.instance_type or each.instance_type
                unpriced.append(f"{whole} in {each.region}")
                price, source = 0, "no price is known"
            gbps = each.network_gbps or self._gbps(each, like)
            if gbps is None:
                slow.append(each.region)
                gbps = ASSUMED_GBPS
            self.seen += self._looked(cloud, each)
            priced = {each.market: price, f"{each.market}_source": source}
            row = found.get((each.region, each.instance_type, accelerator))
            if row is not None:  # spot and not, which a run may use one after the other
                row |= priced
                row["machines"] = max(row["machines"], each.machines)
                continue
            found[each.region, each.instance_type, accelerator] = {
                "provider": cloud,
                "region": each.region,
                "zone": "",
                "instance_type": each.instance_type,
                "accelerator": accelerator,
                "accelerator_count": each.count,
                "accelerator_memory_gb": each.memory_gb,
                "vcpus": each.vcpus,
                "memory_gb": each.ram_gb,
                "local_nvme_gb": None,
                "network_gbps": gbps,
                "machines": each.machines,
                "own": False,
                **priced,
            }
        if unpriced:
            unpriced = list(dict.fromkeys(unpriced))
            self.warnings.append(
                f"no price is known for {format_names(unpriced, 3)}: it counts as $0 an hour."
                " account.yaml tells one:"
                f" offers: [{{name: {unpriced[0].partition(' in ')[0]}, provider: {cloud},"
                f" region: {unpriced[0].partition(' in ')[2]}, accelerator: …, on_demand: $2}}]"
            )
        if slow:
            self.warnings.append(
                f"how fast the network between machines of {format_names(sorted(set(slow)), 3)} is"
                f" nobody has told: {ASSUMED_GBPS:g} Gbit/s is assumed for several"
            )
        return found.values()

    # -- which accelerator of ours -----------------------------------------------------------------

    def _accelerator(self, each: Offered) -> str | None:
        known = self._catalog.instance_types(each.like.provider).get(each.like.instance_type)
        if known is not None and known.accelerator in self._catalog.accelerators:
            return known.accelerator
        if not each.accelerator:
            self.warnings.append(
                f"which accelerator {each.instance_type} in {each.region} has, no label of its says"
            )
            return None
        try:
            names = self._catalog.names.resolve(each.accelerator).names
        except TradewindError as error:
            self.warnings.append(f"{each.instance_type} in {each.region}: {error.message}")
            return None
        if len(names) > 1 and each.memory_gb and each.count >= 1:
            has = self._catalog.accelerators
            least = min(abs(has[name].memory_gb - each.memory_gb) for name in names)
            near = [n for n in names if abs(has[n].memory_gb - each.memory_gb) <= least]
            names = tuple(near)
        return names[0]

    # -- what it costs -----------------------------------------------------------------------------

    def _like(self, like: Like) -> Like:
        """With the provider, where only one has such a type."""
        if like.provider or not like.instance_type:
            return like
        column = self._catalog.table.columns
        types = column["instance_type"].where(lambda name: name == like.instance_type)
        rows = [i for i, code in enumerate(column["instance_type"].codes) if code in types]
        own = self._catalog.table.own
        providers = {column["provider"][row] for row in rows if not own[row]}
        if len(providers) != 1:
            return like
        return Like(
            provider=providers.pop(),
            region=like.region,
            instance_type=like.instance_type,
            share=like.share,
        )

    def _price(self, cloud: str, each: Offered, like: Like) -> tuple[int | None, str]:
        told = self._told(cloud, each)
        if told is not None:
            return told
        if each.usd_hour is not None:
            return round(each.usd_hour * 1_000_000), each.usd_words
        found, where = self._listed(like, each.market)
        if found is None:
            return None, ""
        price = found * like.share
        words = f"{like.instance_type} at {like.provider} {where}"
        if like.share != 1:
            words = f"{like.share:.4g} of {words}"
        if each.fee_share:
            try:
                fee = ratecard.card().find("control_plane", like.provider, like.region)
            except TradewindError:
                pass
            else:
                price += fee.micros * each.fee_share
                words += f", with its share of {format_money(fee.micros)} an hour for the cluster"
        return round(price), words

    def _told(self, cloud: str, each: Offered) -> tuple[int, str] | None:
        """By the account file: for this cloud and place, or for machines of its own anywhere."""
        table = self._catalog.table
        column = table.columns
        for row in (row for row, own in enumerate(table.own) if own):
            name, region = column["instance_type"][row], column["region"][row]
            if column["provider"][row] not in (cloud, "own"):
                continue
            if region not in (each.region, *_ANYWHERE):
                continue
            if name not in (each.instance_type, each.like.instance_type):
                continue
            prices = table.prices[each.market]
            micros = prices.micros[row]
            if micros is None:
                continue
            if column["provider"][row] == cloud:
                marks = self.replaced.setdefault(each.market, {})
                marks[row] = f"{cloud} tells itself what there is"
            share = 1.0 if name == each.instance_type else each.like.share
            return round(micros * share), str(prices.source[row])
        return None

    def _listed(self, like: Like, market: str) -> tuple[float | None, str]:
        """In the catalog: of its region, the middle of what zones ask; else of all regions."""
        if not like.provider or not like.instance_type:
            return None, ""
        table = self._catalog.table
        column, prices = table.columns, table.prices[market]
        types = column["instance_type"].where(lambda name: name == like.instance_type)
        rows = [
            row
            for row, code in enumerate(column["instance_type"].codes)
            if code in types
            and column["provider"][row] == like.provider
            and prices.micros[row] is not None
            and not prices.mark[row]
        ]
        here = [row for row in rows if column["region"][row] == like.region]
        if not here and rows:
            self.warnings.append(
                f"the catalog has no {market.replace('_', '-')} price of {like.instance_type} in"
                f" {like.region or 'a region that is not told'}: that of {like.provider}'s others"
                " is assumed"
            )
        found = [prices.micros[row] or 0 for row in here or rows]
        where = like.region if here else "elsewhere"
        return (median(found), where) if found else (None, "")

    # -- what else ---------------------------------------------------------------------------------

    def _gbps(self, each: Offered, like: Like) -> float | None:
        """As the type that it is like has; None: nobody knows."""
        if not like.provider:
            return None
        known = self._catalog.instance_types(like.provider).get(like.instance_type)
        stated = known.network_gbps if known else None
        return clusters.link(like.provider, like.instance_type, stated).gbps * like.share or None

    def _looked(self, cloud: str, each: Offered) -> Iterable[Observation]:
        if each.free is None:
            return
        for there, machines in ((True, each.free), (False, each.free + 1)):
            if machines and (there or each.free < each.machines):
                yield Observation(
                    provider=cloud,
                    region=each.region,
                    zone="",
                    instance_type=each.instance_type,
                    market=each.market,  # type: ignore[arg-type]  # one of MARKETS
                    available=there,
                    seen_at=self._now,
                    expires_at=self._now + _SEEN_FOR,
                    source="looked",
                    machines=machines,
                )


def _with(before: Observations | None, seen: Iterable[Observation]) -> Observations:
    base = before or Observations({})
    latest, recent = dict(base.latest), dict(base.recent)
    for one in seen:
        key = (one.provider, one.region, one.zone, one.instance_type, one.market)
        recent[key] = (*recent.get(key, ()), one)
        if one.available or key not in latest:
            latest[key] = one
    return Observations(latest, base.unreadable, recent)
