"""`--plot`: which charts a command draws, and what it writes above and below them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from tradewind import pictures
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.comparison import Compared
from tradewind.catalog.query import Selection
from tradewind.cli import render
from tradewind.pictures import Chart, ComparedType, Provenance

_FEW = 4  # accelerators of which a chart by region can still be read


def plot_offers(catalog: Catalog, selection: Selection, file: str, chart: str | None) -> None:
    """The chart asked for; else by region for a few accelerators and the matrix for many. A page
    has room for all that apply."""
    names = {name for name in selection.values("accelerator") if name}
    few = len(names) <= _FEW
    charts: list[Chart] = []
    page = file.lower().endswith(".html") and chart is None
    if chart == "matrix" or page or (chart is None and not few):
        charts.append(pictures.matrix.data(selection, catalog.accelerators))
    if chart == "regions" or (chart is None and few):
        charts.append(pictures.regions.data(selection))
    if page:
        # Of every chip, whatever was asked for: one that was not is still sold.
        sold = catalog.offers(market="on_demand", today=selection.today)
        charts.append(pictures.timeline.data(catalog.accelerators, sold))
    subject = " and ".join(sorted(names)) if 0 < len(names) <= 2 else "accelerators"
    _draw(catalog, charts, file, f"Prices of {subject}")


def plot_timeline(catalog: Catalog, names: Sequence[str], file: str, today: date) -> None:
    known = {name: catalog.accelerators[name] for name in names}
    selection = catalog.offers(list(names), market="on_demand", today=today)
    _draw(catalog, [pictures.timeline.data(known, selection)], file, "Generations of accelerators")


def plot_comparison(catalog: Catalog, compared: Sequence[Compared], file: str) -> None:
    rows = [
        ComparedType(
            name=c.name,
            provider=c.offer.provider,
            region=_places(c),
            on_demand_micros_hour=_whole(c.micros("on_demand")),
            spot_micros_hour=_whole(c.micros("spot")),
            micros_accelerator_hour=_whole(c.per("on_demand", c.offer.accelerator_count)),
            micros_pflop_hour=_whole(c.per("on_demand", c.pflops)),
            accelerator_memory_gb=c.memory_gb,
            peak_pflops=c.pflops,
            network_gbps=c.network_gbps,
        )
        for c in compared
    ]
    prices = Provenance.of(price for c in compared for _, price in c.best.values())
    title = " against ".join(row.name for row in rows) if len(rows) <= 3 else "Instance types"
    _draw(catalog, [pictures.comparison.data(rows, prices)], file, title)


def _places(c: Compared) -> str:
    """Where the prices are from: the cheapest region of each market."""
    places = {m: c.best[m][0].region for m in ("on_demand", "spot") if m in c.best}
    if len(set(places.values())) == 1:
        return next(iter(places.values()))
    return ", ".join(f"{m.replace('_', '-')} in {region}" for m, region in places.items())


def _draw(catalog: Catalog, charts: Sequence[Chart], file: str, title: str) -> None:
    note = f"Tradewind, {catalog.origin} of {catalog.facts.made_at:%Y-%m-%d}"
    with render.busy(f"drawing {file}"):
        pictures.draw(charts, Path(file), title=title, note=note)


def _whole(micros: float | None) -> int | None:
    return None if micros is None else round(micros)
