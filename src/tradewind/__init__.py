"""Tradewind: finish GPU work on time, for the least money, on any cloud.

    import tradewind
    catalog = tradewind.catalog.load()
    for offer in catalog.offers(accelerator="H100-SXM", count=8, market="spot")[:5]:
        print(offer.provider, offer.region, offer.spot)

    work = tradewind.workload.load("work.yaml")    # or tradewind.Workload(train=tradewind.Train(…))
    print(work.total_tokens, work.total_steps)

    found = tradewind.plan(work)
    print(found.best.instance_type, found.best.hours, found.best.cost)

    run = tradewind.run("work.yaml")               # on this computer; detach=True returns at once
    print(run.outcome, run.step, run.cost, [line.text for line in run.logs()][-1])
    print(tradewind.runs())

Sub-packages are imported when first touched, so `import tradewind` costs next to nothing.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from tradewind.base.version import __version__ as __version__

if TYPE_CHECKING:
    from tradewind import catalog as catalog
    from tradewind import workload as workload
    from tradewind.api.handle import Run as Run
    from tradewind.api.handle import run as run
    from tradewind.api.handle import runs as runs
    from tradewind.api.planned import plan as plan
    from tradewind.api.services import Service as Service
    from tradewind.api.services import serve as serve
    from tradewind.base import errors as errors
    from tradewind.model import (
        Checkpoint,
        Data,
        Job,
        Limits,
        Machines,
        Measured,
        Train,
        Workload,
    )

# On a rented machine a job finds this package, and what it needs lies elsewhere: behind all that
# the job has itself (supervisor/job.py).
if (_site := os.environ.get("TRADEWIND_SITE")) and _site not in sys.path:
    sys.path.append(_site)

__all__ = [
    "Checkpoint",
    "Data",
    "Job",
    "Limits",
    "Machines",
    "Measured",
    "Run",
    "Service",
    "Train",
    "Workload",
    "__version__",
    "catalog",
    "errors",
    "plan",
    "run",
    "runs",
    "serve",
    "workload",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name == "errors":  # what a script catches: `except tradewind.errors.TradewindError`
        return importlib.import_module("tradewind.base.errors")
    if name in ("catalog", "workload"):
        return importlib.import_module(f"tradewind.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'tradewind' has no attribute {name!r}")
    home = {"Run": "api.handle", "run": "api.handle", "runs": "api.handle"}
    home |= {"Service": "api.services", "serve": "api.services"}
    home["plan"] = "api.planned"
    return getattr(importlib.import_module(f"tradewind.{home.get(name, 'model')}"), name)


def __dir__() -> list[str]:
    """All that is here, imported already or not: what tab completion shows."""
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "annotations", "os", "sys"})
