"""What a run is expected to cost in all, where its machines may be refused. Pure.

A plan is a list of ways, which are asked for in turn: the first that is had is taken. A way counts
with its cost and what its refusals are worth, `weighed`, so the list is in that order
(docs/design/014-capacity.md), and

    expected = Σ over the list of (chance that all before were refused, and this one is had) × its
               weighed cost + (chance that all were refused) × the last resort

Two ways on machines of one type are refused together as far as they can be: where the one that is
easier to have was refused, so was the other. Ways on other types know nothing of each other. The
last resort is to wait for the best way until it is had, at `LAST_RESORT` times its weighed cost; no
way that counts more than that is asked for.

So it is the mean, over what may be had, of the least that can then be paid: another way to choose
from never makes it more, and neither does one that is cheaper or easier to have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradewind.planning.goods import Column, Flags, Goods, Numbers
    from tradewind.planning.weigh import Candidates

LAST_RESORT = 1.5
_SURE = 1 - 1e-12


class Asking:
    """The ways that keep all limits, in the order in which they are asked for."""

    def __init__(self, found: Candidates, goods: Goods, order: Numbers) -> None:
        self._found, self._goods = found, goods
        self.order = order
        self.first = int(order[0]) if len(order) else None
        self._weighed: Column = found.weighed[order]
        self._had: Column = found.had[order]
        self._kind: Numbers = goods.types[found.good[order]]
        self._cut = len(order)
        if len(order):
            # Of the whole list nothing beyond the last resort counts.
            last = LAST_RESORT * float(self._weighed[0])
            self._cut = int(self._weighed.searchsorted(last, side="right"))

    def expected(self, i: int, *, no_slower: bool = False) -> float:
        """Micro-dollars, where way `i` is asked for first and all others after it: with `no_slower`
        only those that take no longer."""
        c = self._found
        first, had = float(c.weighed[i]), float(c.had[i])
        right: Flags | slice = slice(0, self._cut)
        if no_slower:
            right = c.hours[self.order] <= c.hours[i]
        weighed, chance, kind = self._weighed[right], self._had[right], self._kind[right]
        lowest = min(first, float(weighed[0])) if len(weighed) else first
        mine = kind == self._goods.types[c.good[i]]
        return had * first + (1 - had) * least(
            weighed, _after_refusal(chance, mine, had), kind, LAST_RESORT * lowest
        )


def _after_refusal(chance: Column, mine: Flags, had: float) -> Column:
    """Of what is as hard to have nothing is left, of what is easier a part."""
    import numpy as np

    left = np.maximum(chance - had, 0) / max(1 - had, 1 - _SURE)
    found: Column = np.where(mine, left, chance)
    return found


def least(weighed: Column, chance: Column, kind: Numbers, last: float) -> float:
    """The mean of the least weighed cost of those that are had, or `last`. They are in order."""
    import numpy as np

    cut = int(weighed.searchsorted(last, side="right"))
    weighed, chance, kind = weighed[:cut], np.minimum(chance[:cut], _SURE), kind[:cut]
    # Of each type, the best chance among those so far: what is refused is all up to it.
    by_kind = np.argsort(kind, kind="stable")
    _, number = np.unique(kind[by_kind], return_inverse=True)
    reached = np.maximum.accumulate(chance[by_kind] + 2 * number) - 2 * number
    before = np.concatenate([[0.0], reached[:-1]])
    before[np.flatnonzero(np.diff(number)) + 1] = 0.0
    step = np.empty(cut)
    step[by_kind] = np.log1p(-reached) - np.log1p(-before)
    refused = np.exp(np.cumsum(step))  # all up to each
    taken = np.concatenate([[1.0], refused])[:-1] - refused
    return float(taken @ weighed + (refused[-1] if cut else 1.0) * last)
