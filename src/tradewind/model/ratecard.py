"""What providers charge for beside machines: storage, requests, disks, addresses, traffic. Pure.

The rows are dated facts with a source each (catalog/data/rates.csv); here a price is looked up. A
region that has no row costs as the dearest of its provider, and a provider without any as the row
of `*`, if there is one: both are assumptions, which `Found.assumed` puts into words, so that who
uses the price can say so. Where nothing is known a NotFound is raised: no price is ever taken as
zero. A gigabyte is what the provider bills as one, which AWS and Google count as 2³⁰ bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tradewind.base.errors import NotFound
from tradewind.model.rate import Rate

CATEGORIES = {
    "object_storage": ("USD/GB-month", "objects kept in a bucket"),
    "requests_write": ("USD/million", "requests that write or list"),
    "requests_read": ("USD/million", "requests that read"),
    "block_storage": ("USD/GB-month", "a machine's disk"),
    "public_address": ("USD/hour", "a machine's public address"),
    "control_plane": ("USD/hour", "a managed Kubernetes cluster, without its nodes"),
    "egress_inter_region": ("USD/GB", "traffic to another region"),
    "egress_internet": ("USD/GB", "traffic out of the cloud"),
    "queued_share": ("ratio", "a machine that is waited for, of its on-demand price"),
}
"""By name, the unit of its prices, and what is charged for."""
BY_ITEM = ("queued_share", "block_storage")
"""Of these, rows differ by `item`: an instance type or a glob of some, or a kind of disk."""
ANY = "*"
Place = tuple[str, str]
"""Provider and region."""


@dataclass(frozen=True, slots=True)
class Found:
    rate: Rate
    assumed: str = ""
    """Why it is not known to be so, in words; empty where it is."""

    @property
    def usd(self) -> float:
        assert self.rate.value is not None  # as the card has it
        return self.rate.value

    @property
    def micros(self) -> int:
        return round(self.usd * 1_000_000)


class RateCard:
    def __init__(self, rates: Sequence[Rate]) -> None:
        self.rates = tuple(rates)
        self._named: dict[tuple[str, str, str], Rate] = {}
        self._of: dict[tuple[str, str], list[Rate]] = {}
        self._found: dict[tuple[str, ...], Found] = {}  # asked for before: plans ask for all places
        for rate in self.rates:
            self._of.setdefault((rate.provider, rate.category), []).append(rate)
            self._named.setdefault((rate.provider, rate.category, rate.region), rate)

    def has(self, category: str, provider: str) -> bool:
        """Whether a price of the provider's own is known."""
        return (provider, category) in self._of

    def find(
        self, category: str, provider: str, region: str, to: str = "", item: str = ""
    ) -> Found:
        """`to`: the region that traffic goes to. `item`: of this kind, where the provider has
        several; else the first that the card has."""
        asked = (category, provider, region, to, item)
        if asked not in self._found:
            self._found[asked] = self._find(*asked)
        return self._found[asked]

    def _find(self, category: str, provider: str, region: str, to: str, item: str) -> Found:
        own = self._of.get((provider, category), [])
        if item:
            own = [rate for rate in own if rate.item == item]
            for rate in own:
                if rate.region == region:
                    return Found(rate, _derived(rate, f"{CATEGORIES[category][1]} ({item})"))
        else:
            for place in (f"{region}/{to}", region):
                if (named := self._named.get((provider, category, place))) is not None:
                    return Found(named)
        for rate in own:
            if _fits(rate.region, region, to):
                return Found(rate)
        what = CATEGORIES[category][1] + (f" ({item})" if item else "")
        if own:
            dearest = max(own, key=lambda rate: rate.value or 0)
            return Found(
                dearest,
                f"no price is known for {what} at {provider} in {region or 'a region not named'}:"
                f" the highest of its other regions is assumed, {price(dearest)} in"
                f" {dearest.region}",
            )
        for rate in self._of.get((ANY, category), []):
            return Found(
                rate, f"no price is known for {what} at {provider}: {price(rate)} is assumed"
            )
        raise NotFound(
            f"no price is known for {what} at {provider}",
            hint=f"tradewind catalog rates --category {category} lists what is known",
        )

    def queued_share(self, provider: str, region: str, instance_type: str) -> float | None:
        """Of its on-demand price, what such a machine costs whoever waits for it; None: it cannot
        be waited for, as far as is known."""
        for rate in self._of.get((provider, "queued_share"), []):
            if fnmatchcase(instance_type, rate.item) and _fits(rate.region, region, ""):
                return rate.value
        return None

    def traffic(self, start: Place, end: Place) -> Found | None:
        """For a gigabyte from one (provider, region) to another; None: within one it is free. A
        provider that has no price between its regions charges as for the internet."""
        if start == end:
            return None
        if start[0] == end[0] and (start[0], "egress_inter_region") in self._of:
            return self.find("egress_inter_region", *start, end[1])
        return self.find("egress_internet", *start)


def _derived(rate: Rate, what: str) -> str:
    """Of a kind of its own that nobody has read the price of in that region."""
    if rate.evidence != "derived":
        return ""
    return (
        f"the price of {what} at {rate.provider} in {rate.region} is derived, and was not read"
        f" there: {price(rate)} of {rate.as_of}, {rate.note or rate.source}"
    )


def price(rate: Rate) -> str:
    """`$0.023/GB-month`"""
    return f"${rate.value:g}/{rate.unit.partition('/')[2]}"


def _fits(pattern: str, region: str, to: str) -> bool:
    start, _, end = pattern.partition("/")
    return fnmatchcase(region, start) and fnmatchcase(to, end or ANY)
