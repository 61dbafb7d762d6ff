"""Where replicas can be bought, when, for how much: on demand always, on spot by series.

A series tells when a zone has machines. Where it says no more, those that run there are taken, with
a notice before. Series that end before the trace does begin again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.base import clock
from tradewind.services.replay import PERIOD_S
from tradewind.spot import cases, series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ON_DEMAND = ""
"""The zone of what is never taken."""


@dataclass(frozen=True)
class Market:
    name: str
    zones: tuple[str, ...]
    up: NDArray[np.bool_]
    """Zone × period."""
    price: NDArray[np.float64]
    """Micro-dollars an hour, the same shape."""
    on_demand: int
    notice_s: int

    @property
    def notice(self) -> int:
        """In periods: what is said within one is heard at its end."""
        return self.notice_s // PERIOD_S

    def taken(self) -> NDArray[np.int64]:
        """The next period in which the zone has no machines, this one among them."""
        import numpy as np

        periods = self.up.shape[1]
        found = np.full((len(self.zones), periods + 1), 10 * periods + 1000, np.int64)
        for at in range(periods - 1, -1, -1):
            found[:, at] = np.where(self.up[:, at], found[:, at + 1], at)
        return found


def without_spot(on_demand: int, periods: int) -> Market:
    import numpy as np

    none = np.zeros((0, periods))
    return Market("", (), none.astype(bool), none, on_demand, 0)


def read(
    path: Path, prices: Path | None, on_demand: int, seconds: int, notice_s: int, seed: int
) -> Market:
    """Of the file, the most series that were taken together (of two such groups the longer); prices
    are the same share of on-demand as there. `seed`: another part of them."""
    import numpy as np

    found = series.read(path, prices)
    groups = cases.groups(found, 1) or [cases.single(found[0], 1)]
    group = max(groups, key=lambda each: (len(each.zones), each.up.shape[1] * each.gap_s))
    periods = ceil(seconds / PERIOD_S)
    ticks = group.up.shape[1]
    begin = clock.generator(seed).randrange(ticks) if seed else 0
    at = (begin + np.arange(periods) * PERIOD_S // group.gap_s) % ticks
    share = group.prices[:, at] / group.on_demand
    return Market(group.name, group.zones, group.up[:, at], share * on_demand, on_demand, notice_s)
