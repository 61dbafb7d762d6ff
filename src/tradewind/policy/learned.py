"""What was learned of spot capacity from measured series: the numbers, and where they came from.

`data/spot.json` is part of the package, like code: read once, and the same for everyone. It is
fitted by `tradewind calibrate --spot` and holds

    ages_s   an age of a spell falls into the last of these that it has reached
    up       losses an hour of a machine of that age, in a zone of the middle regime
    down     the same for capacity that comes back
    levels   logarithms by which a regime's hazards differ from the middle
    drift    moves an hour from a regime to each of its neighbours
    jump     moves an hour to any regime at all
    start    how likely each regime is where nothing was seen yet, for the best of so many zones
"""

from __future__ import annotations

import pkgutil
from functools import cache

import msgspec
from msgspec import Struct


class Learned(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    made_at: str
    sources: dict[str, float]
    """Series and their hours."""
    ages_s: tuple[float, ...]
    up: tuple[float, ...]
    down: tuple[float, ...]
    levels: tuple[float, ...]
    drift: float
    jump: float
    start: dict[int, tuple[float, ...]]


@cache
def learned() -> Learned:
    data = pkgutil.get_data("tradewind.policy", "data/spot.json")
    assert data is not None, "the package lacks policy/data/spot.json"
    return msgspec.json.decode(data, type=Learned)
