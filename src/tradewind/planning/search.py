"""Every way to buy the work's machines, with what finishing takes and costs. Pure, and in columns.

offers × numbers of machines × markets  →  Candidates
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite, log2
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import NotFound
from tradewind.estimate.columns import Model
from tradewind.estimate.constants import Constants
from tradewind.model import Accelerator, Limits, Workload
from tradewind.model.plan import weighed_cost
from tradewind.planning import speeds, sustained
from tradewind.planning.goods import HELD, MODES, Goods, allowed_modes
from tradewind.planning.rates import Rates
from tradewind.planning.speeds import USUAL, Care, Group, Speeds
from tradewind.planning.weigh import Candidates, Picked, weigh

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tradewind.planning.asking import Asking
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
    deadline_s: float
    asking: Asking | None = None  # of the ways that keep the limits, once it is known


def at_deadline(
    known: Search, workload: Workload, rates: Rates, deadline_s: float, now: datetime
) -> Search:
    """The same machines and speeds, weighed for another deadline."""
    found = weigh(
        workload, known.goods, known.groups, known.speeds, rates, deadline_s, known.picked, now
    )
    return replace(known, found=found, deadline_s=deadline_s, asking=None)


def narrowed(known: Search, most: float) -> Search:
    """Only the ways that may cost no more than `most`, weighed, whatever the deadline: each costs
    at least its work at the lowest of its prices."""
    import numpy as np

    c, prices = known.found, known.goods.prices
    paid = np.choose(c.mode, [prices[name][c.good] for name in MODES])
    both = known.picked.fall_back
    paid = np.where(both, np.fmin(paid, prices["on_demand"][c.good]), paid)
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
    care: Care = USUAL,
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
        fast = speeds.of_training(
            workload.train, model, groups, constants, through_xla=named, care=care
        )
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
    groups += [groups[i] for i in fast.second]
    picked = _picked(workload.limits, goods, allowed, of_group, fast, isfinite(deadline_s), care)
    found = weigh(workload, goods, groups, fast, rates, deadline_s, picked, now)
    late = (found.mode == HELD) & (found.hours_high > goods.held_h[found.good])
    outlasted = bool(late.any())
    if outlasted:
        picked = Picked(*(column[~late] for column in picked))
        found = weigh(workload, goods, groups, fast, rates, deadline_s, picked, now)
    return Search(goods, groups, of_group, fast, picked, found, outlasted, deadline_s)


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
    """Numbers of machines that are tried: each up to 16, then steps of an eighth. A larger limit
    never takes one away."""
    most = limits.max_nodes or USUAL_NODES
    found = list(range(1, USUAL_NODES + 1))
    while found[-1] < MOST_NODES:
        found.append(found[-1] + (1 << found[-1].bit_length() - 1) // 8)
    return [number for number in found if number <= most]


def _picked(
    limits: Limits,
    goods: Goods,
    allowed: Flags,
    of_group: dict[tuple[int, int], int],
    fast: Speeds,
    dated: bool,
    care: Care,
) -> Picked:
    """Good, group, nodes and mode of every way that can be done at all. With a deadline, spot that
    may fall back on on-demand machines of the same offer competes beside spot alone."""
    import numpy as np

    wide = max((nodes for _, nodes in of_group), default=0) + 1
    layouts: dict[int, list[int]] = {}  # of a group, as groups of their own
    usual = len(fast.seconds) - len(fast.second)
    for number, group in enumerate([*range(usual), *fast.second]):
        if np.isfinite(fast.seconds[number]):
            layouts.setdefault(group, []).append(number)
    deep = max(map(len, layouts.values()), default=1)
    table = np.full((deep, len(goods.kinds), wide), -1)
    for (kind, nodes), group in of_group.items():
        different = layouts.get(group, [])
        table[: len(different), kind, nodes] = different
    depth = (table >= 0).any(axis=1).sum(axis=0)
    modes = allowed_modes(limits)
    ways = [(name, False) for name in modes]
    if dated and "spot" in modes and "on_demand" in modes:
        ways.append(("spot", True))
    parts: list[Any] = []
    for name, fall_back in ways:
        mode = MODES.index(name)
        price, most = goods.prices[name], goods.most[name]
        other = np.zeros(len(price))
        if fall_back:
            other, most = goods.prices["on_demand"], np.minimum(most, goods.most["on_demand"])
        rows = np.flatnonzero(allowed & ~np.isnan(price) & ~np.isnan(other))
        rows = rows[table[0, goods.kind[rows]].max(axis=1, initial=-1) >= 0]
        if not care.zones:
            rows = _cheapest_zone(goods, rows, price, most, other)
        for nodes in sorted({n for _, n in of_group}):
            several = rows[most[rows] >= nodes]
            for of_kind in table[: depth[nodes], :, nodes]:
                of_row = of_kind[goods.kind[several]]
                here = several[of_row >= 0]
                same = [np.full(len(here), value) for value in (nodes, mode, fall_back)]
                parts.append((here, of_row[of_row >= 0], *same))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Picked(nothing, nothing, nothing, nothing, nothing.astype(bool))
    return Picked(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _cheapest_zone(
    goods: Goods, rows: Numbers, price: Column, most: Column, other: Column
) -> Numbers:
    """Of a type in a region, the zone with the lowest price; one with fewer to have is another, and
    so is one of which something was seen, or with another of the `other` price."""
    import numpy as np

    known = np.zeros(len(goods.rows), dtype=np.int64)
    for several in goods.answers.values():
        for position in several:
            known[position] = position + 1

    order = np.lexsort((goods.rank[rows], price[rows]))
    rows = rows[order]
    key = (goods.place[rows] * len(goods.names) + goods.types[rows]) * 1_000_003 + most[rows]
    key = key * (len(goods.kinds) + 1) + goods.kind[rows]
    seen = known[rows]
    alike = np.unique(key, return_inverse=True)[1] * (len(goods.rows) + 1) + seen
    if other.any():
        prices = np.unique(other[rows], return_inverse=True)[1]
        alike = np.unique(alike, return_inverse=True)[1] * (len(goods.rows) + 1) + prices
    _, first = np.unique(alike, return_index=True)
    return rows[first]
