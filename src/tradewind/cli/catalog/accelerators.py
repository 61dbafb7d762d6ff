"""`tradewind accelerators`: the facts about chips, and what the market asks for them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.units import usd
from tradewind.catalog import summary
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.summary import Sold
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column
from tradewind.model import Accelerator
from tradewind.model.accelerator import PRECISIONS


@click.command(
    "accelerators",
    cls=Command,
    examples="""
    # one chip: its facts, who sells it, for how much
    tradewind accelerators h100
    # all of them
    tradewind accelerators
    """,
)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--plot", metavar="FILE", help="Draw the timeline of generations into FILE.png, .svg or .html."
)
def command(name: str | None, as_json: bool, plot: str | None) -> None:
    """Facts about accelerators, who sells them and for how much.

    NAME in any spelling (h100, "A100 80G", trn1) shows one chip, or a family side by side. Without
    it, all are listed. Prices are dollars per accelerator-hour, the host's share included.
    """
    catalog, today = catalogs.load(), clock.today()
    names = list(catalog.accelerators if name is None else catalog.names.resolve(name).names)
    known = {n: catalog.accelerators[n] for n in names}
    if plot is not None:
        from tradewind.cli.catalog.plots import plot_timeline

        plot_timeline(catalog, names, plot, today)
        render.remark(f"drawn: {plot}")
        if not as_json:
            return
    market = summary.sold(catalog, names, today)
    if as_json:
        render.print_json([_document(known[n], market[n]) for n in names])
    elif name is not None:
        _sheets(known, market)
    else:
        _list(catalog, market)


def _list(catalog: Catalog, market: dict[str, Sold]) -> None:
    columns = [
        Column("NAME", keep=9),
        Column("VENDOR", keep=2),
        Column("ARCHITECTURE", keep=1, grow=True),
        Column("YEAR", right=True, keep=4),
        Column("GB", right=True, keep=8),
        Column("GB/s", right=True, keep=5),
        Column("TFLOP/s", right=True, keep=8),
        Column("FP8", right=True, keep=3),
        Column("LINK GB/s", right=True, keep=2),
        Column("WATT", right=True, keep=2),
        Column("SOLD BY", right=True, keep=6),
        Column("ON-DEMAND", right=True, keep=7),
        Column("MEDIAN", right=True, keep=6),
        Column("SPOT", right=True, keep=7),
    ]
    rows = []
    for name, chip in catalog.accelerators.items():
        on_demand, spot = (market[name].by_market.get(m) for m in ("on_demand", "spot"))
        rows.append(
            [
                name,
                chip.vendor,
                chip.architecture,
                str(chip.release_year),
                render.number(chip.memory_gb),
                render.number(chip.memory_bandwidth_gbps),
                render.number(chip.training_tflops),
                render.number(chip.fp8_tflops),
                render.number(chip.link_gbytes_per_s),
                render.number(chip.tdp_watts),
                str(len(market[name].sellers) or ""),
                render.money(on_demand.low) if on_demand else "",
                render.money(on_demand.median) if on_demand else "",
                render.money(spot.low) if spot else "",
            ]
        )
    render.table(columns, rows)
    render.note(
        "\nTFLOP/s: dense bf16, else fp16, else fp32. Prices, dollars per accelerator-hour: the "
        "lowest, and the median of providers' medians. `tradewind accelerators NAME` shows one."
    )


def _sheets(known: dict[str, Accelerator], market: dict[str, Sold]) -> None:
    """The facts of one chip, or of a family in columns, and then who sells each."""
    chips = list(known.values())
    facts: list[tuple[str, list[str]]] = [
        ("vendor", [c.vendor for c in chips]),
        ("architecture", [f"{c.architecture} ({c.release_year})" for c in chips]),
        ("memory", [f"{c.memory_gb:g} GB" for c in chips]),
        ("memory bandwidth", [_unit(c.memory_bandwidth_gbps, "GB/s") for c in chips]),
    ]
    for precision in PRECISIONS:
        unit = "TOP/s" if precision == "int8" else "TFLOP/s"
        facts.append((f"{precision}, dense", [_unit(c.peak(precision), unit) for c in chips]))
    facts += [
        ("link", [c.link_type for c in chips]),
        ("link bandwidth", [_unit(c.link_gbytes_per_s, "GB/s") for c in chips]),
        ("power", [_unit(c.tdp_watts, "W") for c in chips]),
        ("compute capability", [c.compute_capability for c in chips]),
        ("purchase price", [_unit(c.purchase_price_usd, "", "$") for c in chips]),
        ("uncertain", [", ".join(c.uncertain) for c in chips]),
        ("note", [c.note for c in chips]),
        ("source", [f"{c.source} [{c.evidence}]" for c in chips]),
    ]
    render.facts([c.name for c in chips], facts)
    for name in known:
        click.echo()
        _sellers(name, market[name])


def _sellers(name: str, sold: Sold) -> None:
    if not sold.sellers:
        render.note(f"No trusted price for {name}; `tradewind catalog doctor` lists the doubtful.")
        return
    columns = [
        Column(f"{name} FROM", keep=9),
        Column("OFFERS", right=True, keep=4),
        Column("REGIONS", right=True, keep=3),
        Column("COUNTS", keep=2, grow=True),
        Column("ON-DEMAND", right=True, keep=8),
        Column("median", right=True, keep=7),
        Column("highest", right=True, keep=5),
        Column("SPOT", right=True, keep=8),
        Column("median", right=True, keep=6),
        Column("RESERVED", right=True, keep=5),
    ]
    rows = []
    for seller in sold.sellers:
        on_demand, spot, reserved = (
            seller.by_market.get(m) for m in ("on_demand", "spot", "reserved")
        )
        rows.append(
            [
                seller.provider,
                f"{seller.offers:,}",
                str(seller.regions),
                " ".join(render.number(c, digits=3) for c in seller.counts),
                render.money(on_demand.low) if on_demand else "",
                render.money(on_demand.median) if on_demand else "",
                render.money(on_demand.high) if on_demand else "",
                render.money(spot.low) if spot else "",
                render.money(spot.median) if spot else "",
                render.money(reserved.low) if reserved else "",
            ]
        )
    render.table(columns, rows)
    parts = []
    for market, prices in sold.by_market.items():
        words = market.replace("_", "-")
        parts.append(
            f"{words} {render.money(prices.low)} to {render.money(prices.high)}, "
            f"median {render.money(prices.median)}"
        )
    render.note(f"{name}, dollars per accelerator-hour: {'; '.join(parts)}.")


def _unit(value: float | None, unit: str, before: str = "") -> str:
    return "" if value is None else f"{before}{render.number(value, digits=1)} {unit}".rstrip()


def _document(chip: Accelerator, sold: Sold) -> dict[str, Any]:
    def prices(ranges: dict[Any, summary.Range]) -> dict[str, Any]:
        return {
            market: {
                "offers": r.offers,
                "lowest_usd_per_accelerator_hour": usd(round(r.low)),
                "median_usd_per_accelerator_hour": usd(round(r.median)),
                "highest_usd_per_accelerator_hour": usd(round(r.high)),
            }
            for market, r in ranges.items()
        }

    return {
        **asdict(chip),
        "prices": prices(sold.by_market),
        "sold_by": [
            {
                "provider": s.provider,
                "offers": s.offers,
                "regions": s.regions,
                "counts": list(s.counts),
                "prices": prices(s.by_market),
            }
            for s in sold.sellers
        ],
    }
