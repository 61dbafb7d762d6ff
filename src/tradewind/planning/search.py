"""Every way to buy the work's machines, with what finishing takes and costs. Pure, and in columns.

offers × numbers of machines × markets  →  Candidates
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import NotFound
from tradewind.estimate.columns import Model
from tradewind.estimate.constants import Constants
from tradewind.model import Accelerator, Limits, Workload
from tradewind.model.plan import weighed_cost
from tradewind.planning import speeds, sustained
from tradewind.planning.goods import HELD, MODES, SPOT, Goods, allowed_modes
from tradewind.planning.rates import Rates
from tradewind.planning.speeds import Group, Speeds
from tradewind.planning.weigh import Candidates, Picked, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tradewind.planning.goods import Column, Flags, Numbers

USUAL_NODES = 16  # the most machines that are tried where no limit is given
MOST_NODES = 128  # and where one is
_CAREFUL = 0.9  # of a bound that holds, so that rounding does not matter


@dataclass(slots=True)
class Search:
    goods: Goods
    groups: list[Group]
    of_group: dict[tuple[int, int], int]  # (kind, nodes) → group
    speeds: Speeds
    picked: Picked
    found: Candidates
    outlasted: bool  # by the work: machines that are held, but not for long enough


def at_deadline(
    known: Search, workload: Workload, rates: Rates, deadline_s: float, now: datetime
) -> Search:
    """The same machines and speeds, weighed for another deadline."""
    found = weigh(
        workload, known.goods, known.groups, known.speeds, rates, deadline_s, known.picked, now
    )
    return replace(known, found=found)


def narrowed(known: Search, most: float) -> Search:
    """Only the ways that may cost no more than `most`, weighed, whatever the deadline: each costs
    at least its work at the lowest of its prices."""
    import numpy as np

    c, prices = known.found, known.goods.prices
    paid = np.choose(c.mode, [prices[name][c.good] for name in MODES])
    paid = np.where(c.mode == SPOT, np.fmin(paid, prices["on_demand"][c.good]), paid)
    paid = paid * sustained.least(known.goods, c.good, c.mode)
    least = weighed_cost(_CAREFUL * c.work_h * c.nodes * paid, c.had)
    return replace(known, picked=Picked(*(column[least <= most] for column in known.picked)))


def search(
    workload: Workload,
    model: Model | None,
    goods: Goods,
    accelerators: Mapping[str, Accelerator],
    rates: Rates,
    constants: Constants,
    deadline_s: float,
    now: datetime,
) -> Search:
    """`model` is what `train` names; None for work by measurement."""

    limits = workload.limits
    allowed = goods.in_place & goods.is_wanted & priced(goods, limits)
    numbers = counts(limits)
    groups: list[Group] = []
    of_group: dict[tuple[int, int], int] = {}
    shared: dict[tuple[str, int, int, float], int] = {}
    for kind in sorted(set(goods.kind[allowed].tolist())):
        name, each, network = goods.kinds[kind]
        if each != int(each):
            continue  # a slice of an accelerator
        for nodes in numbers:
            if nodes * each > (limits.max_accelerators or 10**9):
                continue
            if nodes > 1 and not network:
                break  # nobody sells several of them together
            between = rounded(network) if nodes > 1 else 0.0
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
    found = weigh(workload, goods, groups, fast, rates, deadline_s, picked, now)
    late = (found.mode == HELD) & (found.hours_high > goods.held_h[found.good])
    outlasted = bool(late.any())
    if outlasted:
        picked = Picked(*(column[~late] for column in picked))
        found = weigh(workload, goods, groups, fast, rates, deadline_s, picked, now)
    return Search(goods, groups, of_group, fast, picked, found, outlasted)


def priced(goods: Goods, limits: Limits) -> Flags:
    """Rows with a price to trust on a market that is allowed."""
    import numpy as np

    found = np.full(len(goods.rows), False)
    for mode in allowed_modes(limits):
        found |= ~np.isnan(goods.prices[mode])
    return found


def rounded(gbps: float) -> float:
    """Networks within a fifth of each other count as one."""
    return float(2.0 ** (round(4 * log2(gbps)) / 4))


def counts(limits: Limits) -> list[int]:
    """Numbers of machines that are tried: each up to 16, then steps of an eighth, and the most."""
    most = limits.max_nodes or USUAL_NODES
    found = list(range(1, min(most, USUAL_NODES) + 1))
    while found[-1] < min(most, MOST_NODES):
        found.append(min(found[-1] + (1 << found[-1].bit_length() - 1) // 8, most))
    return found


def _picked(
    workload: Workload,
    goods: Goods,
    allowed: Flags,
    of_group: dict[tuple[int, int], int],
    fast: Speeds,
) -> Picked:
    """Good, group, nodes and mode of every way that can be done at all."""
    import numpy as np

    wide = max((nodes for _, nodes in of_group), default=0) + 1
    table = np.full((len(goods.kinds), wide), -1)
    for (kind, nodes), group in of_group.items():
        if np.isfinite(fast.seconds[group]):
            table[kind, nodes] = group
    parts: list[Any] = []
    for name in allowed_modes(workload.limits):
        mode = MODES.index(name)
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
    """Of a type in a region, the zone with the lowest price; one with fewer to have is another, and
    so is one of which something was seen."""
    import numpy as np

    known = np.zeros(len(goods.rows), dtype=np.int64)
    for several in goods.answers.values():
        for position in several:
            known[position] = position + 1

    order = np.lexsort((rows, price[rows]))
    rows = rows[order]
    key = (goods.place[rows] * len(goods.names) + goods.types[rows]) * 1_000_003 + most[rows]
    key = key * (len(goods.kinds) + 1) + goods.kind[rows]
    seen = known[rows]
    alike = np.unique(key, return_inverse=True)[1] * (len(goods.rows) + 1) + seen
    _, first = np.unique(alike, return_index=True)
    return rows[first]
