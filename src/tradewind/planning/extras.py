"""What machines are charged for beside their price: disk, address, requests. Pure, in columns.

Runs are told the same of their ways (providers/charges.py), so that a plan, a budget and a bill
count alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tradewind.model import beside
from tradewind.model.beside import NOTHING
from tradewind.planning.rates import Rates

if TYPE_CHECKING:
    from tradewind.model.ratecard import Place
    from tradewind.planning.goods import Column, Goods, Numbers


class Extras(NamedTuple):
    """Micro-dollars an hour, of all machines of each way."""

    disk: Column
    address: Column
    """On demand."""
    spot_address: Column
    requests: Column

    @property
    def safe(self) -> Column:
        return self.disk + self.address + self.requests

    @property
    def spot(self) -> Column:
        return self.disk + self.spot_address + self.requests


class _Charged(NamedTuple):
    """Of one machine, by row of the goods."""

    system_gb: Column
    gb_month: Column  # dollars
    address: Column
    spot_address: Column
    workers: Column
    asked: Column
    """A worker's requests of a store in its own place."""


def extras(
    goods: Goods,
    good: Numbers,
    nodes: Numbers,
    rates: Rates,
    start: Place | None,
    state_bytes: float,
    keep: int,
) -> Extras:
    """`start`: where checkpoints are kept, where that is known."""
    key = rates.card, rates.beside
    if key not in goods.charged:
        goods.charged[key] = _charged(goods, rates)
    found: _Charged = goods.charged[key]
    gb = beside.disk_gb(state_bytes, keep, nodes, found.system_gb[good])
    disk = beside.disk_hour(gb, found.gb_month[good])
    each = found.asked[good] if start is None else rates.requests(start)
    return Extras(
        disk=disk * nodes,
        address=found.address[good] * nodes,
        spot_address=found.spot_address[good] * nodes,
        requests=found.workers[good] * each * nodes,
    )


def _charged(goods: Goods, rates: Rates) -> _Charged:
    import numpy as np

    code = (goods.place * len(goods.names) + goods.types) * 2 + goods.own
    different, where = np.unique(code, return_inverse=True)
    known: dict[Place, float] = {place: rates.requests(place) for place in goods.places}
    rows: list[tuple[float, ...]] = []
    for one in different.tolist():
        place = goods.places[one // 2 // len(goods.names)]
        name = goods.names[one // 2 % len(goods.names)][1]
        asked = 0.0 if one % 2 else known[place]  # one's own may have a folder for a store
        safe = NOTHING if one % 2 else rates.beside(place[0], place[1], name, "on_demand")
        if safe is NOTHING:
            rows.append((0.0, 0.0, 0.0, 0.0, 1.0, asked))
            continue
        spot = rates.beside(place[0], place[1], name, "spot")
        month = rates.disk(place, safe) if safe.disk_gb else 0.0
        addresses = rates.address(place, safe), rates.address(place, spot)
        rows.append((float(safe.disk_gb), month, *addresses, float(safe.workers), asked))
    return _Charged(*np.array(rows or [(0.0,) * 6])[where].T)
