"""Given machines that somebody has in mind: what does the same work as fast, for less? Pure."""

from __future__ import annotations

from tradewind.base.errors import NotFound
from tradewind.catalog.names import nearest
from tradewind.model.plan import Plan
from tradewind.planning import choose
from tradewind.planning.goods import MODES
from tradewind.planning.planner import SHOWN, Planner

_SAME = 1.001  # times that are as good as equal


def instead_of(
    planner: Planner, instance_type: str, nodes: int | None = None
) -> tuple[Plan, tuple[Plan, ...]]:
    """What that type would do on demand, and the plans that take no longer and cost less.

    Without `nodes`, as many as finish the work cheapest. Raises NotFound where there is no such
    type, or no way to do the work on it.
    """
    import numpy as np

    found = planner.search()
    goods, candidates = found.goods, found.found
    wanted = instance_type.strip().lower()
    types = [i for i, (_, name) in enumerate(goods.names) if name.lower() == wanted]
    if not types:
        close = nearest(wanted, {name for _, name in goods.names})
        hint = f"did you mean {' or '.join(close)}?" if close else "`tradewind offers` lists them"
        raise NotFound(f"nobody offers {instance_type!r}", hint=hint, choices=close)
    mine = np.isin(goods.types[candidates.good], types) & (
        candidates.mode == MODES.index("on_demand")
    )
    if nodes is not None:
        mine &= candidates.nodes == nodes
    if not mine.any():
        number = f" {nodes} of" if nodes else ""
        raise NotFound(
            f"the work cannot be done on{number} {instance_type}",
            hint=f"`tradewind plan … --why {instance_type}` says why",
        )
    base = int(choose.ranked(candidates, mine)[0])
    faster = candidates.hours <= candidates.hours[base] * _SAME
    cheaper = candidates.cost < candidates.cost[base]
    sure = candidates.chance >= min(planner.workload.limits.sure, candidates.chance[base])
    order = choose.ranked(candidates, faster & cheaper & sure)
    few = choose.of_other_kinds(candidates, goods, order, SHOWN)
    return planner.value(found, base), tuple(planner.value(found, i) for i in few)
