"""Small catalogs made by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from tradewind import catalog
from tradewind.base.units import micros_from_usd
from tradewind.catalog import doubts, files
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.facts import Facts
from tradewind.catalog.table import OfferTable, Row

TODAY = date(2026, 11, 15)
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
REAL = catalog.load(files.PACKAGED, account=False)


def row(
    provider: str = "aws",
    accelerator: str = "H100-SXM",
    count: float = 8,
    *,
    on_demand: float | None = None,
    spot: float | None = None,
    reserved_1y: float | None = None,
    reserved_3y: float | None = None,
    as_of: str = "2026-11-01",
    source: str = "test",
    **more: Any,
) -> Row:
    """One offer; prices in dollars an hour."""
    made: Row = {
        "provider": provider,
        "region": "us-east-1",
        "zone": "",
        "instance_type": f"{provider}-{count:g}x{accelerator or 'cpu'}",
        "accelerator": accelerator,
        "accelerator_count": count if accelerator else 0,
        "accelerator_memory_gb": REAL.accelerators[accelerator].memory_gb if accelerator else None,
        "vcpus": 96,
        "memory_gb": 1000,
        "local_nvme_gb": None,
        "network_gbps": None,
    }
    for group, price in (
        ("on_demand", on_demand),
        ("spot", spot),
        ("reserved_1y", reserved_1y),
        ("reserved_3y", reserved_3y),
    ):
        if price is not None:
            made |= {
                group: micros_from_usd(price),
                f"{group}_as_of": as_of,
                f"{group}_source": source,
            }
    return made | more


def facts(*rows: Row, judged: bool = True) -> Facts:
    listed = list(rows)
    if judged:
        doubts.judge(listed, REAL.accelerators)
    return Facts(
        made_at=NOW,
        accelerators=REAL.accelerators,
        offers=OfferTable.of(listed),
        make_instances=lambda: REAL.facts.instances,
        make_rates=lambda: REAL.facts.rates,
    )


def small(*rows: Row, judged: bool = True) -> Catalog:
    made = facts(*rows, judged=judged)
    return Catalog(made, made.offers, "test")
