"""A small catalog made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import date
from typing import Any

from tradewind.catalog import query
from tradewind.catalog.query import Query, Selection
from tradewind.catalog.table import OfferTable, Row
from tradewind.model import Accelerator

TODAY = date(2026, 11, 15)


def accelerator(name: str, vendor: str = "NVIDIA", **facts: Any) -> Accelerator:
    empty: dict[str, Any] = dict.fromkeys(f.name for f in fields(Accelerator))
    return Accelerator(
        **empty
        | {"name": name, "vendor": vendor, "release_year": 2022, "memory_gb": 80, "uncertain": ()}
        | facts
    )


ACCELERATORS = {
    one.name: one
    for one in (
        accelerator("H100", bf16_tflops=1000.0),
        accelerator("A100", bf16_tflops=312.0, memory_gb=40, release_year=2020),
        accelerator("RTX9", bf16_tflops=100.0, memory_gb=24),
        accelerator("RTX8", fp16_tflops=50.0, memory_gb=16, release_year=2020),
        accelerator("TPU", "Google", bf16_tflops=200.0, memory_gb=16),
        accelerator("K80", fp32_tflops=4.0, memory_gb=12, release_year=2014),
    )
}


def row(
    provider: str,
    accelerator: str,
    count: float = 1,
    *,
    on_demand: float | None = None,
    spot: float | None = None,
    reserved: float | None = None,
    region: str = "r1",
    **more: Any,
) -> Row:
    """An offer; prices in dollars per hour of the machine."""
    made: Row = {
        "provider": provider,
        "region": region,
        "zone": "",
        "instance_type": f"{count:g}x{accelerator}",
        "accelerator": accelerator,
        "accelerator_count": count,
    }
    groups = {"on_demand": on_demand, "spot": spot, "reserved_1y": reserved}
    for group, price in groups.items():
        if price is not None:
            made[group] = round(price * 1_000_000)
            made[f"{group}_as_of"] = "2026-11-01"
            made[f"{group}_source"] = f"list of {provider}"
    return made | more


def select(rows: Sequence[Row], **asked: Any) -> Selection:
    return query.select(OfferTable.of(rows), ACCELERATORS, Query(**asked), TODAY)


ROWS = (
    row("aws", "H100", 8, on_demand=32, spot=16),
    row("aws", "H100", 8, on_demand=40, region="r2"),
    row("aws", "A100", 8, on_demand=16),
    row("gcp", "H100", 1, on_demand=3),
    row("gcp", "TPU", 4, on_demand=4, spot=2),
    row("tiny", "H100", 2, on_demand=12, on_demand_mark="low: surely a mistake", spot=4.4),
    row("tiny", "RTX9", 1, on_demand=0.5),
    row("tiny", "RTX8", 0.5, on_demand=0.1, on_demand_as_of="2026-10-01"),
    row("tiny", "", 0, on_demand=0.01),
    row("old", "H100", 1, on_demand=0.5, on_demand_as_of="2025-01-01"),
)
