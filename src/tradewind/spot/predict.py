"""What the planner would have said of a case before it began, in the units of what it then cost."""

from __future__ import annotations

from tradewind.policy import outlook
from tradewind.spot.cases import Case


def predicted(case: Case, nodes: int) -> float:
    """Of a case in one zone, of which is known whether there is capacity at the start."""
    import numpy as np

    config, price = case.config, case.prices[0][0]
    hours = outlook.surface().hours(
        np.array([config.work_s / 3600]),
        np.array([config.deadline_s / 3600]),
        np.array([config.overhead_s / 3600]),
        np.array([price / case.on_demand]),
        np.array([float(nodes)]),
        np.array([1.0 if case.up[0][0] else -1.0]),
    )
    return 3600 * (price * float(hours.spot[0]) + case.on_demand * float(hours.on_demand[0]))
