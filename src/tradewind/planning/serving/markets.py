"""On-demand and spot machines for a number that must be up: how many of each, and the chance. Pure.

A machine is down for a share of the time: on demand because hardware fails now and then, on spot
because machines are taken and a replacement takes a while to start. Machines fail independently of
each other; that is an assumption, and a plan says so. Where any machine is on spot there is one
more than is needed, so that targets hold in the minutes after one is taken.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import log, log1p
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

EXACT = 60
"""Up to so many machines every number on demand is tried; above it, every twentieth part."""
_MORE = 3  # on demand, beyond what is needed
_MOST_SPARES = 40


class Held(NamedTuple):
    on_demand: int
    spot: int
    chance: float  # that enough of them are up


@cache
def enough(
    need: int, spot_down: float, steady_down: float, availability: float
) -> tuple[Held, ...]:
    """For each number on demand, the fewest on spot with which the chance is reached. A share of 1
    means that there are none of that market."""
    found = []
    last: int | None = None
    for steady in _tried(need):
        if steady and steady_down >= 1:
            break
        held = _fewest(need, steady, spot_down, steady_down, availability)
        if held is None or (last is not None and held.spot >= last and steady > need):
            continue
        last = held.spot
        found.append(held)
        if held.spot == 0:
            break
    return tuple(found)


def _tried(need: int) -> list[int]:
    if need <= EXACT:
        return list(range(need + _MORE + 1))
    stride = need // 20
    return [*range(0, need, stride), *range(need, need + _MORE + need // 20 + 1)]


def _fewest(
    need: int, steady: int, spot_down: float, steady_down: float, availability: float
) -> Held | None:
    if steady >= need:
        chance = _chance(need, steady, 0, spot_down, steady_down)
        if chance >= availability:
            return Held(steady, 0, chance)
    if spot_down >= 1:
        return None
    least = max(need + 1 - steady, 1)
    # One more never lowers the chance, so the first that reaches it is found by doubling steps and
    # halving the last: thousands of machines need no more than a dozen looks.
    low, step = least - 1, 1
    most = least + _MOST_SPARES + need - 1
    while True:
        high = min(low + step, most)
        chance = _chance(need, steady, high, spot_down, steady_down)
        if chance >= availability:
            break
        if high == most:
            return None
        low, step = high, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        tried = _chance(need, steady, middle, spot_down, steady_down)
        if tried >= availability:
            high, chance = middle, tried
        else:
            low = middle
    return Held(steady, high, chance)


def _chance(need: int, steady: int, spot: int, spot_down: float, steady_down: float) -> float:
    import numpy as np

    if need <= 0:
        return 1.0
    first, above = _up(steady, steady_down), _at_least(spot, spot_down)
    fewest = max(need - spot, 0)  # of the first; with fewer, not even all of the second suffice
    if fewest > steady:
        return 0.0
    wanted = need - np.arange(fewest, steady + 1)
    return min(float(first[fewest:] @ above[np.maximum(wanted, 0)]), 1.0)


@lru_cache(maxsize=512)
def _at_least(count: int, down: float) -> Column:
    """The chance that at least 0, 1, … of so many are up."""
    import numpy as np

    found: Column = np.cumsum(_up(count, down)[::-1])[::-1]
    return found


@lru_cache(maxsize=512)
def _up(count: int, down: float) -> Column:
    """The chance that 0, 1, … of so many are up."""
    import numpy as np

    found = np.zeros(count + 1)
    if count == 0 or down >= 1:
        found[0] = 1.0
    elif down <= 0:
        found[-1] = 1.0
    else:
        ways = _log_factorials(1 << count.bit_length())
        n = np.arange(count + 1)
        ways = ways[count] - ways[: count + 1] - ways[count::-1]
        found = np.exp(ways + n * log1p(-down) + (count - n) * log(down))
    return found


@cache
def _log_factorials(most: int) -> Column:
    import numpy as np

    found: Column = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    return found
