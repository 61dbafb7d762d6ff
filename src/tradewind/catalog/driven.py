"""What a run can launch: of whom our provider folders rent, and which chips the images that they
start from can drive. Plans ask it before they recommend a machine.

`data/driven.csv` has a line for each provider whose prices are in the catalog and that has a folder
(providers/registry.py). Its columns:

    provider
    drives            makers of chips that its images have drivers for, `|` between them; empty:
                      of all that it sells
    note              what the images are
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tradewind.base import csvfile
from tradewind.model.driven import is_old

TABLE = Path(__file__).parent / "data" / "driven.csv"


@cache
def _drives() -> dict[str, tuple[str, ...]]:
    return {
        cells["provider"]: tuple(filter(None, cells["drives"].split("|")))
        for _, cells in csvfile.rows(TABLE)
    }


def rented() -> tuple[str, ...]:
    return tuple(_drives())


def undriven(provider: str, chip: str, vendor: str) -> str:
    """Why none of the provider's usual images computes with it, in words; empty where one does or
    nobody knows."""
    drives = _drives().get(provider)
    if not drives:
        return ""
    if vendor not in drives:
        return f"the images of runs at {provider} have a driver for NVIDIA's GPUs alone"
    if is_old(chip):
        return f"the driver in the images of runs at {provider} begins with the T4"
    return ""


def not_ours(provider: str, chip: str, vendor: str) -> str:
    """Why a run cannot launch it; empty where it can."""
    if provider not in rented():
        return f"runs cannot rent at {provider}"
    return undriven(provider, chip, vendor)
