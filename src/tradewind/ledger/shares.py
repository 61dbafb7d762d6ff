"""An amount divided by weights into whole parts that add up to it."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor


def shares(micros: int, weights: Mapping[str, float]) -> dict[str, int]:
    """What rounding leaves goes to the largest remainders; nothing where no weight is above 0. The
    amount may be below 0."""
    total = sum(weights.values())
    if total <= 0:
        return {}
    exact = {name: micros * weight / total for name, weight in weights.items()}
    found = {name: floor(each) for name, each in exact.items()}
    left = micros - sum(found.values())
    for name in sorted(exact, key=lambda each: found[each] - exact[each])[:left]:
        found[name] += 1
    return found
