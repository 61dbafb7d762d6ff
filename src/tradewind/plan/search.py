"""Every way to buy the work's machines, with what finishing takes and costs. Pure, and in columns.

offers × numbers of machines × markets  →  Candidates
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.estimate.columns import Model
from tradewind.estimate.constants import Constants
from tradewind.model import Accelerator, Workload
from tradewind.plan import finish, speeds
from tradewind.plan.finish import Situation
from tradewind.plan.goods import Goods
from tradewind.plan.rates import Rates, home
from tradewind.plan.speeds import Group, Speeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tradewind.plan.goods import Column, Flags, Numbers

MODES = ("on_demand", "spot", "held")
NODES = (1, 2, 4, 8, 16, 32, 64, 128)  # of other numbers few divide a batch
USUAL_NODES = 16  # the most machines that are tried where no limit is given
_SLOW_NETWORK = 10.0  # Gbit/s of a machine, below which several are not tried together
_WHOLE_NODE = 8  # accelerators
_NOTICES = {"aws": 120.0, "gcp": 30.0, "azure": 30.0, "ibm": 120.0, "oci": 120.0}


@dataclass(slots=True)
class Candidates:
    """One entry a way: a row of the goods, so many machines, on a market."""

    good: Numbers  # into the goods
    group: Numbers  # into the speeds
    nodes: Column
    mode: Numbers  # into MODES
    fall_back: Flags  # on-demand machines are held too, to keep the deadline
    hours: Column
    hours_low: Column
    hours_high: Column
    cost: Column  # micro-dollars
    cost_low: Column
    cost_high: Column
    chance: Column
    work_h: Column
    startup_h: Column
    on_demand_h: Column
    spot_h: Column
    interruptions: Column
    every_s: Column
    parts: dict[str, Column]  # of `cost`

    def __len__(self) -> int:
        return len(self.good)


@dataclass(slots=True)
class Search:
    goods: Goods
    groups: list[Group]
    of_group: dict[tuple[int, int], int]  # (kind, nodes) → group
    speeds: Speeds
    picked: tuple[Numbers, Numbers, Numbers, Numbers]
    found: Candidates
    outlasted: bool  # by the work: machines that are held, but not for long enough


def at_deadline(known: Search, workload: Workload, rates: Rates, deadline_s: float) -> Search:
    """The same machines and speeds, weighed for another deadline."""
    found = _weighed(
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
        base = accelerators[workload.work.accelerator]
        fast = speeds.of_measured(workload.work, base, groups, constants)
    if workload.checkpoint.size_bytes:
        fast.state_bytes = float(workload.checkpoint.size_bytes)
    picked = _picked(workload, goods, allowed, of_group, fast)
    found = _weighed(workload, goods, groups, fast, rates, deadline_s, picked)
    late = (found.mode == MODES.index("held")) & (found.hours_high > goods.held_h[found.good])
    outlasted = bool(late.any())
    if outlasted:
        good, group, nodes, mode = (column[~late] for column in picked)
        picked = good, group, nodes, mode
        found = _weighed(workload, goods, groups, fast, rates, deadline_s, picked)
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
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
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
        return nothing, nothing, nothing, nothing
    good, of_good, number, mode_of = (np.concatenate(part) for part in zip(*parts, strict=True))
    return good, of_good, number, mode_of


def _cheapest_zone(goods: Goods, rows: Numbers, price: Column, most: Column) -> Numbers:
    """Of a type in a region, the zone with the lowest price; one with fewer to have is another."""
    import numpy as np

    order = np.lexsort((rows, price[rows]))
    rows = rows[order]
    key = (goods.place[rows] * len(goods.names) + goods.types[rows]) * 1_000_003 + most[rows]
    key = key * (len(goods.kinds) + 1) + goods.kind[rows]
    _, first = np.unique(key, return_index=True)
    return rows[first]


def _weighed(
    workload: Workload,
    goods: Goods,
    groups: list[Group],
    fast: Speeds,
    rates: Rates,
    deadline_s: float,
    picked: tuple[Numbers, Numbers, Numbers, Numbers],
) -> Candidates:
    import numpy as np

    good, group, nodes, mode = picked
    machines = nodes.astype(float)
    each = np.array([float(g.each) for g in groups] or [0.0])[group]
    moving = _moving(workload, goods, rates)
    place = goods.place[good]
    rented = ~goods.own[good]
    startup = np.where(rented, finish.BOOT_S, finish.OWN_BOOT_S) + _setup(workload)
    again = startup + moving.again_s[place] / machines
    startup = startup + moving.first_s[place] / machines
    notice = np.array([_NOTICES.get(provider, 0.0) for provider, _ in goods.places])[place]
    every = workload.checkpoint.every_s
    limits = workload.limits

    def situation(at: Any) -> Situation:
        return Situation(
            work_s=fast.seconds[group[at]],
            width=fast.width[group[at]],
            fits=fast.fits[group[at]],
            machines=machines[at],
            devices=machines[at] * each[at],
            startup_s=startup[at],
            again_s=again[at],
            state_bytes=fast.state_bytes,
            notice_s=notice[at],
            seen=goods.seen[good[at]],
            every_s=float(every) if every else None,
            deadline_s=deadline_s,
        )

    many = len(good)
    columns = {
        name: np.zeros(many)
        for name in ("hours", "on_demand", "spot", "interruptions", "every_s", "chance")
    }
    price = {name: np.nan_to_num(goods.prices[name][good]) for name in MODES}
    markets = limits.markets
    both = markets is None or "on_demand" in markets
    has_other = both & ~np.isnan(goods.prices["on_demand"][good])
    has_other &= goods.most["on_demand"][good] >= nodes
    fall_back = (mode == 1) & has_other & np.isfinite(deadline_s)
    for at, course_of in (
        (mode != 1, finish.on_demand),
        (fall_back, lambda s: finish.on_spot(s, fall_back=True)),
        ((mode == 1) & ~fall_back, lambda s: finish.on_spot(s, fall_back=False)),
    ):
        if at.any():
            course = course_of(situation(at))
            for name, column in columns.items():
                column[at] = getattr(course, name)
    width = fast.width[group]
    more, less = np.exp(width), np.exp(-width)
    hours = columns["hours"]
    high = hours * more
    high = np.where(fall_back, np.minimum(high, np.maximum(hours, deadline_s / 3600)), high)
    held = mode == 2
    kept_gb = workload.checkpoint.keep * fast.state_bytes / 1e9
    parts = {
        "on_demand": np.where(held, 0, columns["on_demand"] * price["on_demand"]) * machines,
        "spot": columns["spot"] * price["spot"] * machines * (mode == 1),
        "reserved": np.where(held, columns["on_demand"] * price["held"], 0) * machines,
        "egress": 1e6 * (moving.egress + moving.back * fast.state_bytes / 1e9)[place],
        "storage": 1e6 * (moving.copy_gb + kept_gb)[place] * moving.month[place] * hours / 730,
    }
    machine = parts["on_demand"] + parts["spot"] + parts["reserved"]
    rest = parts["egress"] + parts["storage"]
    return Candidates(
        good=good,
        group=group,
        nodes=machines,
        mode=mode,
        fall_back=fall_back & (columns["on_demand"] > 0),
        hours=hours,
        hours_low=hours * less,
        hours_high=high,
        cost=machine + rest,
        cost_low=machine * less + rest,
        cost_high=machine * more + rest,
        chance=columns["chance"],
        work_h=fast.seconds[group] / 3600,
        startup_h=startup / 3600,
        on_demand_h=columns["on_demand"],
        spot_h=columns["spot"],
        interruptions=columns["interruptions"],
        every_s=columns["every_s"],
        parts=parts,
    )


def _setup(workload: Workload) -> float:
    run = workload.run
    if run is None:
        return finish.SETUP_S
    if run.setup_s is not None:
        return float(run.setup_s)
    return finish.SETUP_S if run.setup else 0.0


class _Moving(NamedTuple):
    """By place. Data that lies elsewhere is copied there once, and kept while the work runs."""

    first_s: Column  # of one machine to fetch the data
    again_s: Column  # and later, from the copy
    egress: Column  # dollars for the data
    back: Column  # for bringing a gigabyte back
    copy_gb: Column
    month: Column  # for keeping a gigabyte


def _moving(workload: Workload, goods: Goods, rates: Rates) -> _Moving:
    import numpy as np

    data, start = workload.data, home(workload.data)
    size = float(data.size_bytes or 0) if data else 0.0
    near = np.array([start is None or start == place for place in goods.places])
    there = [0.0 if start is None else rates.egress(start, place) for place in goods.places]
    back = [0.0 if start is None else rates.egress(place, start) for place in goods.places]
    return _Moving(
        first_s=size / np.where(near, finish.STORE_RATE, finish.FAR_RATE),
        again_s=np.full(len(near), size / finish.STORE_RATE),
        egress=size / 1e9 * np.array(there),
        back=np.array(back),
        copy_gb=np.where(near, 0.0, size / 1e9),
        month=np.array([rates.month(provider) for provider, _ in goods.places]),
    )
