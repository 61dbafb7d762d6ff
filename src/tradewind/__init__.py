"""Tradewind: finish GPU work on time, for the least money, on any cloud.

    import tradewind
    catalog = tradewind.catalog.load()
    for offer in catalog.offers(accelerator="H100-SXM", count=8, market="spot")[:5]:
        print(offer.provider, offer.region, offer.spot)

    work = tradewind.workload.load("work.yaml")    # or tradewind.Workload(train=tradewind.Train(…))
    print(work.total_tokens, work.total_steps)

    found = tradewind.plan(work)
    print(found.best.instance_type, found.best.hours, found.best.cost)

Sub-packages are imported when first touched, so `import tradewind` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradewind import catalog as catalog
    from tradewind import workload as workload
    from tradewind.model import (
        Checkpoint,
        Data,
        Job,
        Limits,
        Measured,
        Train,
        Workload,
    )
    from tradewind.plan.planner import plan as plan

__version__ = "0.1.0"
__all__ = [
    "Checkpoint",
    "Data",
    "Job",
    "Limits",
    "Measured",
    "Train",
    "Workload",
    "__version__",
    "catalog",
    "plan",
    "workload",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in ("catalog", "plan", "workload"):
        return importlib.import_module(f"tradewind.{name}")
    if name in __all__:
        return getattr(importlib.import_module("tradewind.model"), name)
    raise AttributeError(f"module 'tradewind' has no attribute {name!r}")
