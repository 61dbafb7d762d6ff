"""`tradewind compare`: instance types side by side."""

from __future__ import annotations

from typing import Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.units import usd
from tradewind.catalog import comparison
from tradewind.catalog.comparison import Compared
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.catalog.offers import accelerators, age, place
from tradewind.model import MARKETS

_PER = (("per accelerator-hour", "acc"), ("per PFLOP-hour", "pflop"), ("per GB-hour", "gb"))


@click.command(
    "compare",
    cls=Command,
    examples="""
    # two types of two providers, side by side
    tradewind compare p5.48xlarge gpu_8x_h100_sxm5
    """,
)
@click.argument("types", nargs=-1, required=True, metavar="TYPE...")
@click.option(
    "-r",
    "--region",
    multiple=True,
    metavar="GLOB",
    help="Only prices of these regions. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--plot", metavar="FILE", help="Draw the comparison into FILE.png, .svg or .html.")
def command(
    types: tuple[str, ...], region: tuple[str, ...], as_json: bool, plot: str | None
) -> None:
    """Compare instance types side by side: hardware, prices, and the ratios between them.

    TYPE is an instance type of any provider, or provider/TYPE where several use the name. Prices
    are those of the cheapest region on each market; × is relative to the best of those shown.
    """
    catalog, today = catalogs.load(), clock.today()
    compared = comparison.compare(catalog, types, region=region, today=today)
    if plot is not None:
        from tradewind.cli.catalog.plots import plot_comparison

        plot_comparison(catalog, compared, plot)
        render.remark(f"drawn: {plot}")
        if not as_json:
            return
    if as_json:
        render.print_json([_document(c) for c in compared])
        return
    lines: list[tuple[str, list[str]]] = [
        ("provider", [c.offer.provider for c in compared]),
        ("accelerators", [accelerators(c.offer) for c in compared]),
        ("memory", _best([c.memory_gb for c in compared], "GB", high=True)),
        ("peak (dense)", _best([c.pflops for c in compared], "PFLOP/s", high=True, digits=2)),
        ("bandwidth", _best([c.bandwidth_tbps for c in compared], "TB/s", high=True, digits=1)),
        ("link", [c.kind.intra_node_link if c.kind else "" for c in compared]),
        ("network", _best([c.network_gbps for c in compared], "Gbps", high=True)),
        ("RDMA", [c.kind.rdma_type if c.kind else "" for c in compared]),
        ("vCPU", [render.number(c.offer.vcpus) for c in compared]),
        ("RAM", [_gb(c.offer.memory_gb) for c in compared]),
        ("local NVMe", [_gb(c.offer.local_nvme_gb) for c in compared]),
        ("spot notice", [_notice(c) for c in compared]),
        ("regions", [str(c.regions) for c in compared]),
    ]
    for market in MARKETS:
        words = market.replace("_", "-")
        micros = [c.micros(market) for c in compared]
        lines.append(("", [" " if any(micros) else "" for _ in compared]))
        lines.append((f"{words} $/h", _ratios(micros)))
        lines.append(("  where, age", [_where(c, market, today) for c in compared]))
        lines.append(
            ("  median region", [render.money(c.median_micros.get(market)) for c in compared])
        )
        for label, unit in _PER:
            lines.append((f"  {label}", _ratios([_per(c, market, unit) for c in compared])))
    spot = [_discount(c) for c in compared]
    lines += [("", [" " if any(spot) else ""] * len(compared)), ("spot saves (median place)", spot)]
    render.facts([c.name for c in compared], lines)


def _per(c: Compared, market: Any, unit: str) -> float | None:
    units = {"acc": c.offer.accelerator_count, "pflop": c.pflops, "gb": c.memory_gb}
    return c.per(market, units[unit])


def _ratios(micros: list[float | None]) -> list[str]:
    """Money, with how many times the cheapest."""
    known = [m for m in micros if m]
    least = min(known, default=0)
    return [
        ""
        if m is None
        else render.money(m) + (f"  {m / least:.2f}×" if least and len(known) > 1 else "")
        for m in micros
    ]


def _best(values: list[float | None], unit: str, *, high: bool, digits: int = 0) -> list[str]:
    known = [v for v in values if v]
    most = max(known, default=0)
    return [
        ""
        if not v
        else f"{v:,.{digits}f} {unit}" + (f"  {v / most:.2f}×" if len(known) > 1 and high else "")
        for v in values
    ]


def _gb(value: float | None) -> str:
    return f"{render.number(value)} GB" if value else ""


def _notice(c: Compared) -> str:
    return f"{c.kind.spot_notice_s} s" if c.kind and c.kind.spot_notice_s else ""


def _where(c: Compared, market: Any, today: Any) -> str:
    if market not in c.best:
        return ""
    offer, price = c.best[market]
    parts = [place(offer), price.term, age(price, today)]
    return ", ".join(part for part in parts if part)


def _discount(c: Compared) -> str:
    return "" if c.spot_saves is None else f"{c.spot_saves:.0%}"


def _document(c: Compared) -> dict[str, Any]:
    prices = {}
    for market, (offer, price) in c.best.items():
        prices[market] = {
            "usd_per_hour": usd(price.micros_hour),
            "region": offer.region,
            "zone": offer.zone or None,
            "term": price.term or None,
            "as_of": price.as_of.isoformat() if price.as_of else None,
            "source": price.source,
            "median_region_usd_per_hour": usd(round(c.median_micros[market])),
            **{
                f"usd_per_{name}": None if value is None else usd(round(value))
                for name, value in (
                    ("accelerator_hour", _per(c, market, "acc")),
                    ("pflop_hour", _per(c, market, "pflop")),
                    ("gb_hour", _per(c, market, "gb")),
                )
            },
        }
    return {
        "provider": c.offer.provider,
        "instance_type": c.name,
        "accelerator": c.offer.accelerator or None,
        "accelerator_count": c.offer.accelerator_count,
        "accelerator_memory_gb_total": c.memory_gb,
        "peak_pflops": c.pflops,
        "memory_bandwidth_tb_per_s": c.bandwidth_tbps,
        "network_gbps": c.network_gbps,
        "rdma": (c.kind.rdma_type or None) if c.kind else None,
        "intra_node_link": c.kind.intra_node_link if c.kind else None,
        "vcpus": c.offer.vcpus,
        "memory_gb": c.offer.memory_gb,
        "local_nvme_gb": c.offer.local_nvme_gb,
        "regions": c.regions,
        "spot_saves": None if c.spot_saves is None else round(c.spot_saves, 4),
        "prices": prices,
    }
