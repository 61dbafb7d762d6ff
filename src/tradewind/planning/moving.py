"""What it costs to have work done away from where its data and its checkpoints lie. Pure.

Checkpoints are kept in one store: where runs are kept, if that is told, else where the data is.
Machines elsewhere pay for each that they write, and for the one that they begin from. Who says
nothing of either has told of no place, and moves nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tradewind.model import Data
from tradewind.model.ratecard import Place
from tradewind.model.usage import GB
from tradewind.planning.rates import Rates, home


class Moving(NamedTuple):
    """Micro-dollars."""

    bring: int
    """For the checkpoint, with each start."""
    bring_once: int
    """For the data, with each start too."""
    save: int
    """An hour, for the checkpoints that are written."""


def moving(
    rates: Rates,
    data: Data | None,
    place: Place,
    *,
    state_bytes: float,
    every_s: float,
) -> Moving:
    """Of machines in `place`."""
    lies, start = home(data), rates.home(data)
    size = float(data.size_bytes or 0) if data else 0.0
    state_gb = 1e6 * state_bytes / GB
    once = rates.egress(lies, place) if lies else 0.0
    there = rates.egress(start, place) if start else 0.0
    back = rates.egress(place, start) if start else 0.0
    return Moving(
        bring=round(there * state_gb),
        bring_once=round(once * 1e6 * size / GB),
        save=round(back * state_gb * 3600 / every_s),
    )


def saves(held_h: Any, every_s: Any) -> Any:
    """How many checkpoints are written: the last one always. One value or a column of them."""
    import numpy as np

    return np.maximum(held_h * 3600 / every_s, 1.0)
