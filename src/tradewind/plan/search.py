"""Every way to buy the work's machines, with what finishing takes and costs. Pure, and in columns.

offers × numbers of machines × markets  →  Candidates
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import TYPE_CHECKING, Any

from tradewind.errors import NotFound
from tradewind.estimate.columns import Model
from tradewind.estimate.constants import Constants
from tradewind.model import Accelerator, Workload
from tradewind.plan import speeds
from tradewind.plan.goods import MODES, Goods
from tradewind.plan.rates import Rates
from tradewind.plan.speeds import Group, Speeds
from tradewind.plan.weigh import Candidates, Picked, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tradewind.plan.goods import Column, Flags, Numbers

NODES = (1, 2, 4, 8, 16, 32, 64, 128)  # of other numbers few divide a batch
USUAL_NODES = 16  # the most machines that are tried where no limit is given
_SLOW_NETWORK = 10.0  # Gbit/s of a machine, below which several are not tried together
_WHOLE_NODE = 8  # accelerators


@dataclass(slots=True)
class Search:
    goods: Goods
    groups: list[Group]
    of_group: dict[tuple[int, int], int]  # (kind, nodes) → group
    speeds: Speeds
    picked: Picked
    found: Candidates
    outlasted: bool  # by the work: machines that are held, but not for long enough


def at_deadline(known: Search, workload: Workload, rates: Rates, deadline_s: float) -> Search:
    """The same machines and speeds, weighed for another deadline."""
    found = weigh(
        workload, known.goods, known.groups, known.speeds, rates, deadline_s, known.picked
    )
    return replace(known, found=found)


def search(
    workload: Workload,
    model: Model | None,
    goods: Goods,
    accelerators: Mapping[str, Accelerator],
    rates: Rates,
    constants: Constants,
    deadline_s: float,
) -> Search:
    """`model` is what `train` names; None for work by measurement."""

    limits = workload.limits
    allowed = goods.in_place & goods.is_wanted & priced(goods, limits.markets)
    counts = _counts(workload)
    groups: list[Group] = []
    of_group: dict[tuple[int, int], int] = {}
    shared: dict[tuple[str, int, int, float], int] = {}
    for kind in sorted(set(goods.kind[allowed].tolist())):
        name, each, network = goods.kinds[kind]
        if each != int(each):
            continue  # a slice of an accelerator
        for nodes in counts:
            if nodes * each > (limits.max_accelerators or 10**9):
                continue
            if nodes > 1 and 0 < network < _SLOW_NETWORK:
                continue
            between = _network(network, nodes, each, accelerators[name])
            key = (name, int(each), nodes, between)
            if key not in shared:
                shared[key] = len(groups)
                groups.append(Group(accelerators[name], int(each), nodes, between))
            of_group[kind, nodes] = shared[key]
    if workload.train is not None:
        assert model is not None
        named = limits.accelerators is not None
        fast = speeds.of_training(workload.train, model, groups, constants, through_xla=named)
    else:
        assert workload.work is not None
        base = accelerators.get(workload.work.accelerator)
        if base is None:
            raise NotFound(
                f"no accelerator is called {workload.work.accelerator!r}",
                hint="`tradewind accelerators` lists them",
            )
        fast = speeds.of_measured(workload.work, base, groups, constants)
    if workload.checkpoint.size_bytes:
        fast.state_bytes = float(workload.checkpoint.size_bytes)
    picked = _picked(workload, goods, allowed, of_group, fast)
    found = weigh(workload, goods, groups, fast, rates, deadline_s, picked)
    late = (found.mode == MODES.index("held")) & (found.hours_high > goods.held_h[found.good])
    outlasted = bool(late.any())
    if outlasted:
        picked = Picked(*(column[~late] for column in picked))
        found = weigh(workload, goods, groups, fast, rates, deadline_s, picked)
    return Search(goods, groups, of_group, fast, picked, found, outlasted)


def priced(goods: Goods, markets: Sequence[str] | None) -> Flags:
    """Rows with a price to trust on a market that is allowed."""
    import numpy as np

    found = np.full(len(goods.rows), False)
    for mode in MODES:
        if markets is None or ("reserved" if mode == "held" else mode) in markets:
            found |= ~np.isnan(goods.prices[mode])
    return found


def _network(told: float, nodes: int, each: int, chip: Accelerator) -> float:
    """Gbit/s of a machine, those within a fifth as one; 0: what is usual. Of a single machine it
    does not matter, and where nobody tells, only whole nodes have a fast one."""
    if nodes == 1:
        return 0.0
    if not told:
        whole = each >= _WHOLE_NODE and not chip.link_type.startswith("PCIe")
        return 0.0 if whole else _SLOW_NETWORK
    return float(2.0 ** (round(4 * log2(told)) / 4))


def _counts(workload: Workload) -> list[int]:
    most = workload.limits.max_nodes or USUAL_NODES
    found = [n for n in NODES if n <= most]
    return found if most in found or most > NODES[-1] else [*found, most]


def _picked(
    workload: Workload,
    goods: Goods,
    allowed: Flags,
    of_group: dict[tuple[int, int], int],
    fast: Speeds,
) -> Picked:
    """Good, group, nodes and mode of every way that can be done at all."""
    import numpy as np

    markets = workload.limits.markets
    wide = max((nodes for _, nodes in of_group), default=0) + 1
    table = np.full((len(goods.kinds), wide), -1)
    for (kind, nodes), group in of_group.items():
        if np.isfinite(fast.seconds[group]):
            table[kind, nodes] = group
    parts: list[Any] = []
    for mode, name in enumerate(MODES):
        market = "reserved" if name == "held" else name
        if markets is not None and market not in markets:
            continue
        price = goods.prices[name]
        rows = np.flatnonzero(allowed & ~np.isnan(price))
        rows = rows[table[goods.kind[rows]].max(axis=1, initial=-1) >= 0]
        rows = _cheapest_zone(goods, rows, price, goods.most[name])
        for nodes in sorted({n for _, n in of_group}):
            of_row = table[goods.kind[rows], nodes]
            can = (of_row >= 0) & (goods.most[name][rows] >= nodes)
            here = rows[can]
            parts.append((here, of_row[can], np.full(len(here), nodes), np.full(len(here), mode)))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Picked(nothing, nothing, nothing, nothing)
    good, of_good, number, mode_of = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Picked(good, of_good, number, mode_of)


def _cheapest_zone(goods: Goods, rows: Numbers, price: Column, most: Column) -> Numbers:
    """Of a type in a region, the zone with the lowest price; one with fewer to have is another."""
    import numpy as np

    order = np.lexsort((rows, price[rows]))
    rows = rows[order]
    key = (goods.place[rows] * len(goods.names) + goods.types[rows]) * 1_000_003 + most[rows]
    key = key * (len(goods.kinds) + 1) + goods.kind[rows]
    _, first = np.unique(key, return_index=True)
    return rows[first]
