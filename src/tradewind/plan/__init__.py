"""The cheapest way to finish a workload in time: enumerate, price, rank, explain what lost.

import tradewind
found = tradewind.plan(tradewind.workload.load("work.yaml"))
print(found.best.instance_type, found.best.cost, found.best.chance)

The package itself can be called, so that `tradewind.plan(…)` is the function and
`tradewind.plan.planner` the module, whichever of them was imported first.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.catalog import Catalog
    from tradewind.model import Workload
    from tradewind.model.plan import Plans


class _Callable(ModuleType):
    def __call__(
        self,
        workload: Workload,
        *,
        catalog: Catalog | None = None,
        now: datetime | None = None,
        explain: bool = True,
        closer: bool = False,
    ) -> Plans:
        """The cheapest ways to finish in time, what was given up for them, why the rest lost.

        `explain`: with losers, and what other deadlines would cost. `closer`: with `others`.
        """
        from tradewind.plan.planner import plan

        return plan(workload, catalog=catalog, now=now, explain=explain, closer=closer)


sys.modules[__name__].__class__ = _Callable
