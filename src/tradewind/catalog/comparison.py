"""Instance types side by side, with the ratios people care about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median
from typing import Any

from tradewind.base.errors import NotFound
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.names import nearest
from tradewind.catalog.query import Selection, literal
from tradewind.model import MARKETS, Accelerator, InstanceType, Market, Offer, Price


@dataclass(frozen=True, slots=True)
class Compared:
    """One type: its hardware, and the cheapest place to buy it on each market."""

    offer: Offer  # of the cheapest place; hardware is the same in all
    kind: InstanceType | None
    accelerator: Accelerator | None
    regions: int
    best: dict[Market, tuple[Offer, Price]]
    median_micros: dict[Market, float]  # over regions, each at its cheapest
    spot_saves: float | None  # of on-demand in the same place, at the median

    @property
    def name(self) -> str:
        return self.offer.instance_type

    @property
    def memory_gb(self) -> float | None:
        """Of all accelerators together."""
        memory = self.offer.accelerator_memory_gb
        return memory * self.offer.accelerator_count if memory else None

    @property
    def pflops(self) -> float | None:
        """Dense training peak of all accelerators together, in PFLOP/s."""
        tflops = self.accelerator.training_tflops if self.accelerator else None
        return tflops * self.offer.accelerator_count / 1000 if tflops else None

    @property
    def bandwidth_tbps(self) -> float | None:
        """Memory bandwidth of all accelerators together, in TB/s."""
        each = self.accelerator.memory_bandwidth_gbps if self.accelerator else None
        return each * self.offer.accelerator_count / 1000 if each else None

    @property
    def network_gbps(self) -> float | None:
        rdma = self.kind.rdma_gbps_per_node if self.kind else None
        return rdma or self.offer.network_gbps or (self.kind.network_gbps if self.kind else None)

    def micros(self, market: Market) -> float | None:
        return self.best[market][1].micros_hour if market in self.best else None

    def per(self, market: Market, units: float | None) -> float | None:
        """Micro-dollars per accelerator-hour, PFLOP-hour or GB-hour at the cheapest place."""
        micros = self.micros(market)
        return micros / units if micros is not None and units else None


def compare(
    catalog: Catalog, types: Sequence[str], *, region: Sequence[str] | None, today: date
) -> list[Compared]:
    """The types named, as `TYPE` or `provider/TYPE`. Raises NotFound with the nearest names."""
    return [_compared(catalog, text, region, today) for text in types]


def _compared(catalog: Catalog, text: str, region: Sequence[str] | None, today: date) -> Compared:
    provider, slash, name = text.partition("/")
    if not slash:
        provider, name = "", text
    wanted: dict[str, Any] = {
        "provider": [provider] if provider else None,
        "instance_type": literal(name),
        "today": today,
    }
    everywhere = catalog.offers(**wanted, include_marked=True)
    if not everywhere:
        raise _unknown(catalog, text)
    sellers = sorted(set(everywhere.values("provider")))
    if len(sellers) > 1:
        choices = [f"{seller}/{name}" for seller in sellers]
        raise NotFound(
            f"{text!r} is sold by several providers: {', '.join(choices)}",
            hint=f"name one of them, for example {choices[0]}",
            choices=choices,
        )
    best: dict[Market, tuple[Offer, Price]] = {}
    medians: dict[Market, float] = {}
    places: set[str] = set()
    micros_of: dict[Market, dict[int, int]] = {}
    for market in MARKETS:
        found: Selection = catalog.offers(
            **wanted, region=region or None, market=market, sort="hour"
        )
        if found:
            best[market] = found[0], found.price(0)
            prices = (price.micros_hour for _, price in found.priced())
            micros_of[market] = dict(zip(found.rows, prices, strict=True))
            by_region: dict[str, int] = {}
            for offer, price in found.priced():  # cheapest first
                by_region.setdefault(offer.region, price.micros_hour)
            medians[market] = median(by_region.values())
            places |= set(by_region)
    if not best:
        hint = None
        if region:
            hint = f"it is sold in {', '.join(sorted(set(everywhere.values('region')))[:8])}"
        raise NotFound(
            f"no trusted price for {text!r}" + (" in those regions" if region else ""),
            hint=hint or f"`tradewind offers --all --type '{name}'` shows the doubtful ones",
        )
    offer = next(iter(best.values()))[0]
    return Compared(
        offer=offer,
        kind=catalog.instance_types(offer.provider).get(offer.instance_type),
        accelerator=catalog.accelerators.get(offer.accelerator),
        regions=len(places),
        best=best,
        median_micros=medians,
        spot_saves=_saving(micros_of.get("on_demand", {}), micros_of.get("spot", {})),
    )


def _saving(on_demand: Mapping[int, int], spot: Mapping[int, int]) -> float | None:
    ratios = [spot[row] / on_demand[row] for row in spot if on_demand.get(row)]
    return 1 - median(ratios) if ratios else None


def _unknown(catalog: Catalog, text: str) -> NotFound:
    known = catalog.table.columns["instance_type"].values
    name = text.rpartition("/")[2]
    if any(name.lower() == kind.name.lower() for kind in catalog.facts.instances):
        return NotFound(
            f"{text!r} is known, but no price of it is",
            hint="it may be sold by negotiation or in capacity blocks only",
        )
    inside = [k for k in known if name.lower() in k.lower()][:3]
    close = (inside or nearest(name, known)) if name else ()
    return NotFound(
        f"no instance type is called {text!r}",
        hint=f"did you mean {' or '.join(close)}?" if close else "`tradewind offers` lists types",
        choices=close,
    )
