"""What machines of one's own cost by the month: those whose prices are published."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from tradewind.economics import inputs, own_figures, owning
from tradewind.economics.use import Use

if TYPE_CHECKING:
    from tradewind.catalog import Catalog

YEARS = 3
SERVERS = own_figures.SERVERS


def servers(chip: str, accelerators: int) -> int:
    return ceil(accelerators / SERVERS[chip][0])


def month(catalog: Catalog, chip: str, many: int, *, place: str = "USA") -> float:
    """Dollars for `many` whole servers, whether they work or not."""
    each = SERVERS[chip][0]
    figures = inputs.typical(
        own_figures.inputs_for(catalog, chip, each, place=place, settings=["rent_usd_hour=1"])
    )
    use = Use((0.5 * each * many,), (1.0,))
    found = owning.cost(figures, use, many, owning.Terms(YEARS, each))
    return float(found.total - found.parts["rented"]) / (12 * YEARS)
