"""What other tools call providers and accelerators: a dated table, data/others.json."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from tradewind.export.commented import Why
from tradewind.export.exported import Refused
from tradewind.model.accelerator import Accelerator
from tradewind.model.plan import Plan
from tradewind.model.serveplan import ServingPool

_TABLE = Path(__file__).parent / "data" / "others.json"


class Tool(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: str
    """That was looked at."""
    providers: Mapping[str, str]
    """That it rents from, by our names."""
    regions: tuple[str, ...]
    """Providers whose regions it calls as we do."""
    accelerators: Mapping[str, str]
    """Where they are not as ours."""


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    as_of: str
    skypilot: Tool
    dstack: Tool
    sources: Mapping[str, str]


@cache
def table() -> Table:
    return json.decode(_TABLE.read_bytes(), type=Table)


def place(title: str, tool: Tool, bought: Plan | ServingPool) -> tuple[str, str]:
    """Provider and region by its names; no region where it has others."""
    if bought.own or bought.provider not in tool.providers:
        where = "machines of your own" if bought.own else bought.provider
        raise Refused(
            f"{title} {tool.version} rents nothing from {where}",
            nearest=f"--provider with one of {', '.join(tool.providers)}",
        )
    known = bought.provider in tool.regions
    return tool.providers[bought.provider], bought.region if known else ""


def accelerator(title: str, tool: Tool, chip: Accelerator, compact: str) -> str:
    if chip.compute_capability.startswith("tpu"):
        raise Refused(
            f"{title} names slices of {chip.name} by their machines, which the plan does not",
            nearest="--accelerator with a GPU, or tradewind run",
        )
    return tool.accelerators.get(chip.name, chip.name.replace("RTX-", compact))


def one_replica(title: str, pool: ServingPool) -> float:
    """Requests a second that it does within the targets."""
    if pool.replicas > 1:
        raise Refused(
            f"the plan puts {pool.replicas} replicas onto a machine, and {title} puts one",
            nearest="kubernetes, which has a pod for each",
        )
    return pool.rate_per_machine


def replicas(pool: ServingPool) -> tuple[int, int]:
    """In the quietest hour of the plan, and in its busiest."""
    hours = [hour.on_demand + hour.spot for hour in pool.hours]
    return min(hours), max(hours)


def where(secrets: Mapping[str, str], values: Any) -> Why:
    return Why(values, "; ".join(f"{name} is in {place}" for name, place in secrets.items()))
