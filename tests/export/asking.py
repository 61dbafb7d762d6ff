"""What is asked for in tests of exports: real workloads, with plans of the built-in catalog."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tradewind import catalog as catalogs
from tradewind import workload
from tradewind.export import reading
from tradewind.export.asked import Asked
from tradewind.model import Workload
from tradewind.planning.planner import Planner
from tradewind.planning.serving.planner import Planner as Serving

EXAMPLES = Path(__file__).parents[2] / "examples"
DAY = datetime(2026, 11, 15, 12, tzinfo=UTC)  # of the built-in catalog
COMMAND = "tradewind export KIND work.yaml --out DIR"
FILES = sorted(
    path for path in EXAMPLES.glob("*/*.yaml") if path.name in ("work.yaml", "chat.yaml")
)
NAMES = [path.parent.name for path in FILES]


@cache
def example(name: str) -> Asked:
    """Of an example's workload file, as the command asks."""
    path = next(path for path in FILES if path.parent.name == name)
    return asked(workload.load(path, now=DAY), path.parent)


AT = {"terraform": "aws", "pulumi": "aws", "sagemaker": "aws", "batch": "aws", "vertex": "gcp",
      "azureml": "azure"}  # fmt: skip
"""Kinds that are written for machines of some clouds, and one of these."""
WITH = {("azureml", "pretrain-1.3b"): ("H100-SXM", "H100-NVL")}
"""Where the best there is of a maker whose images the service has none of."""

SECRETS = {"aws": "aws-ssm:/a/hf", "gcp": "gcp-secretmanager:hf", "": "aws-ssm:/a/hf",
           "azure": "file:~/.hf_token"}  # fmt: skip
"""One that their machines can read."""


def suited(kind: str, name: str) -> Asked:
    """An example's, planned where the kind is at home."""
    return at(name, AT[kind], *WITH.get((kind, name), ())) if kind in AT else example(name)


@cache
def at(name: str, provider: str, *accelerators: str) -> Asked:
    """An example's, planned there."""
    path = next(path for path in FILES if path.parent.name == name)
    work = workload.load(path, now=DAY)
    limits = replace(
        work.limits, providers=(provider,), accelerators=accelerators or work.limits.accelerators
    )
    return asked(replace(work, limits=limits), path.parent)


def of(data: dict[str, Any], folder: Path | None = None) -> Asked:
    """Of a workload as plain data."""
    return asked(workload.of(data), folder or Path("/nowhere"))


def asked(work: Workload, folder: Path) -> Asked:
    catalog = catalogs.load(account=False, now=DAY)
    if work.serve is not None:
        served = Serving(work, catalog, now=DAY).plans()
        return reading.of_serving(
            served, catalog, COMMAND, reading.Where(folder, folder / "deploy")
        )
    found = Planner(work, catalog, now=DAY).plans()
    if found.best is None and name_is_own(work):
        found = replace(found, best=found.front[0] if found.front else None)
    return reading.of_plans(found, catalog, COMMAND, reading.Where(folder, folder / "deploy"))


def name_is_own(work: Workload) -> bool:
    """Its machines are in an account file of its own: the nearest that can be bought does here."""
    return work.name == "own-4090s"
