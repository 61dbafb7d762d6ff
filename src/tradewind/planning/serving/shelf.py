"""Machines that replicas may stand on, as columns: offers joined with layouts. Pure.

One entry is a row of the catalog with one layout of the model: how many replicas a machine holds,
what it costs on each market, the share of the time it is down there, and how likely machines are
to be had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from tradewind.catalog import capacity, hazards
from tradewind.model import Limits
from tradewind.model.plan import weighed_cost
from tradewind.planning import weigh
from tradewind.planning.finish import BOOT_S, OWN_BOOT_S, STORE_RATE
from tradewind.planning.goods import COMMITTED, MODES, SPOT, Goods, allowed_modes
from tradewind.planning.serving.layouts import Layout
from tradewind.policy import spot

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Numbers = NDArray[np.int64]

ENGINE_S = 60.0  # an engine from its first line to its first token, without reading weights
_STEADY = ("on_demand", "held")


class SpotLife(NamedTuple):
    held_h: float  # from a start to the loss, of a machine of the usual kind
    there: float  # share of the time in which one of the zones has it


def spot_life() -> SpotLife:
    found = spot.of(1)
    anywhere = spot.Spot(spot.believed(1, 0, spot.REACH))
    return SpotLife(found.held_h, anywhere.there)


@dataclass(slots=True)
class Shelf:
    good: Numbers  # entry of Goods
    layout: Numbers  # into the layouts
    replicas: Column  # on one machine
    steady: Column  # micro-dollars an hour; NaN: none
    spot: Column  # the same, with the hours in which on-demand stands in
    steady_down: Column
    spot_down: Column
    start_h: Column
    most_steady: Column
    most_spot: Column
    own: NDArray[np.bool_]
    committed: Column  # micro-dollars an hour of a new commitment, for all hours; NaN: none
    term: Numbers  # of it, into MODES
    most_committed: Column
    most: Column  # machines at once, of all markets together
    refusals: Column  # what a dollar weighs with what they are worth, of one machine
    had: Callable[[int, int, bool], float]
    """The chance that so many machines of an entry are there, with some of them on spot or not."""

    def __len__(self) -> int:
        return len(self.good)


def joined(
    goods: Goods, layouts: Sequence[Layout], weight_bytes: float, limits: Limits, now: datetime
) -> Shelf:
    """Of all rows that limits allow. `weight_bytes` are read by a machine that starts."""
    import numpy as np

    each = goods.each
    allowed = goods.in_place & goods.is_wanted
    by_chip: dict[str, list[int]] = {}
    for n, layout in enumerate(layouts):
        by_chip.setdefault(layout.accelerator, []).append(n)
    names = [kind.accelerator for kind in goods.kinds]
    good: list[Numbers] = []
    number: list[Numbers] = []
    for code, name in enumerate(names):
        rows = np.flatnonzero((goods.kind == code) & allowed)
        for n in by_chip.get(name, ()):
            enough = rows[each[rows] >= layouts[n].tp]
            good.append(enough)
            number.append(np.full(len(enough), n))
    if not good:
        good, number = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    g, at = np.concatenate(good), np.concatenate(number)
    tp = np.array([layout.tp for layout in layouts] or [1])[at]
    allowed_to_buy = allowed_modes(limits)
    steady, way, most_steady = _cheapest(goods, g, [m for m in _STEADY if m in allowed_to_buy])
    terms = [m for m in MODES[COMMITTED:] if m in allowed_to_buy]
    committed, term, most_committed = _cheapest(goods, g, terms)
    taken = goods.prices["spot"][g] if limits.allows_market("spot") else np.full(len(g), np.nan)
    life = spot_life()
    own = goods.own[g]
    start_s = np.where(own, OWN_BOOT_S, BOOT_S) + ENGINE_S + weight_bytes / STORE_RATE
    notice = _notices(goods, g)
    held_h = life.held_h / np.maximum(goods.hazards[g], 1e-6)
    stood_in = ~np.isnan(steady)
    down_h = np.maximum(start_s - notice, 0.0) / 3600
    spot_down = down_h / (held_h + down_h)
    spot_down = np.where(stood_in, spot_down, 1 - life.there * (1 - spot_down))
    dear = life.there * taken + (1 - life.there) * np.where(stood_in, steady, taken)
    size = each[g]
    failing_h = spot.ON_DEMAND_FAILURE_H / size
    steady_down = (start_s / 3600) / (failing_h + start_s / 3600)
    keep = ~(np.isnan(steady) & np.isnan(dear) & np.isnan(committed))
    kept, way, stood_in = g[keep], way[keep], stood_in[keep]

    priors, modes = capacity.priors(), np.where(np.isnan(taken[keep]), way, SPOT)
    size = size[keep]

    def had(i: int, machines: int, on_spot: bool) -> float:
        chances = weigh.chance_of(
            goods, kept[i : i + 1], priors.size(size[i : i + 1], float(machines)),
            np.array([SPOT if on_spot else way[i]]), np.array([on_spot and stood_in[i]]), now,
        )  # fmt: skip
        return float(chances[0])

    one = weigh.chance_of(goods, kept, priors.size(size, 1.0), modes, stood_in, now)
    return Shelf(
        good=kept, layout=at[keep], replicas=np.floor(size / tp[keep]),
        steady=steady[keep], spot=dear[keep],
        steady_down=np.round(steady_down, 8)[keep], spot_down=np.round(spot_down, 6)[keep],
        start_h=(start_s / 3600)[keep],
        most_steady=most_steady[keep], most_spot=goods.most["spot"][kept], own=own[keep],
        committed=committed[keep], term=term[keep], most_committed=most_committed[keep],
        most=_most(limits, size),
        refusals=weighed_cost(1.0, one), had=had,
    )  # fmt: skip


def _cheapest(goods: Goods, at: Numbers, modes: Sequence[str]) -> tuple[Column, Numbers, Column]:
    """The price, the mode and the most machines of each."""
    import numpy as np

    found, number = np.full(len(at), np.nan), np.full(len(at), MODES.index("on_demand"))
    machines = np.zeros(len(at))
    for mode in modes:
        price, most = goods.prices[mode][at], goods.most[mode][at]
        better = ~np.isnan(price) & (most >= 1) & ~(price >= found)
        found = np.where(better, price, found)
        number = np.where(better, MODES.index(mode), number)
        machines = np.where(better, most, machines)
    return found, number, machines


def _most(limits: Limits, each: Column) -> Column:
    """Machines of all markets together."""
    import numpy as np

    found = np.full(len(each), np.inf)
    if limits.max_nodes is not None:
        found = np.minimum(found, limits.max_nodes)
    if limits.max_accelerators is not None:
        found = np.minimum(found, np.floor(limits.max_accelerators / each))
    return found


def _notices(goods: Goods, at: Numbers) -> Column:
    import numpy as np

    by_type = np.array([hazards.notice_s(provider) for provider, _ in goods.names])
    found: Column = by_type[goods.types[at]]
    return found
