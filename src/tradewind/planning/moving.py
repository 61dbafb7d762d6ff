"""What it costs to have work done away from where its data and its checkpoints lie. Pure.

Checkpoints are kept in one store, which a plan takes to be where the data is: machines elsewhere
pay for each that they write, and for the one that they begin from. Who says nothing of data has
told of no place either, and moves nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tradewind.model.ratecard import Place
from tradewind.planning.rates import Rates


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
    start: Place | None,
    place: Place,
    *,
    data_bytes: float,
    state_bytes: float,
    every_s: float,
) -> Moving:
    """Of machines in `place`, for data and checkpoints at `start`."""
    if start is None or start == place:
        return Moving(0, 0, 0)
    # Dollars for a gigabyte are a thousand times as many micro-dollars for a byte.
    there, back = rates.egress(start, place) / 1000, rates.egress(place, start) / 1000
    return Moving(
        bring=round(there * state_bytes),
        bring_once=round(there * data_bytes),
        save=round(back * state_bytes * 3600 / every_s),
    )


def saves(held_h: Any, every_s: Any) -> Any:
    """How many checkpoints are written: the last one always. One value or a column of them."""
    import numpy as np

    return np.maximum(held_h * 3600 / every_s, 1.0)
