"""How many replicas there should be now, from the load until now. Pure.

A rule has four numbers: how long the load is averaged, how far its growth is drawn out, how long a
replica is kept after it was last needed, and how full replicas may be. No such numbers are right
for every service, so they are not set: every few hours all rules of a grid are replayed over the
last two days of the service's own load, cold starts included, and the cheapest that would have kept
the target is taken. Until there is a day to replay, replicas are
filled less than that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from typing import TYPE_CHECKING, NamedTuple

from tradewind.services.replay import PERIOD_S, Outcome, Replicas, most_of_last, outcome

if TYPE_CHECKING:
    from tradewind.services.replay import Column

EVERY_S = 6 * 3600
"""Rules are chosen anew."""
BACK_S = 48 * 3600
"""What is replayed for that."""
_SPARE = 0.55
DAY_S, CAREFUL = 24 * 3600, 0.95
"""Until a whole day was seen, replicas are filled that much less."""
_SLOW_S = 600
"""The average that growth is measured against."""
_WINDOWS, _GROWTHS, _HOLDS = (20, 60), (0.0, 0.5, 1.0), (180, 360, 900)
_HALVINGS = 5
_DIGITS = 600
"""Natural ones, of the largest number that is reckoned with."""
_EMPTIEST, _FULLEST = 0.2, 0.95


@dataclass(frozen=True, slots=True)
class Rule:
    window_s: int
    growth: float
    """0: none; 1: as far again as the average of the window is above that of ten minutes."""
    hold_s: int
    fill: float
    """Load of a replica, at most."""


FIRST = Rule(60, 0.5, 360, 0.85)


def wanted(rule: Rule, load: Column, fewest: int) -> Column:
    """By period, from the load of periods until then."""
    return _filled(_held(rule, _averages(load)), rule.fill, fewest)


def wanted_now(rule: Rule, fill: float, periods_: Sequence[float]) -> int:
    """For the next period, from the load of the last ones: as `wanted`, and at least none."""
    import numpy as np

    # Of what is longer ago than all averages and the hold, nothing is left.
    back = (10 * max(rule.window_s, _SLOW_S) + rule.hold_s) // PERIOD_S
    load = np.array(periods_[-back:], dtype=float)
    windows = (rule.window_s, *((_SLOW_S,) if rule.growth else ()))
    held = _held(rule, _averages(load, windows))
    # An average never forgets all of it: a thousandth of a replica is none.
    return int(_filled(np.where(held < 1e-3, 0.0, held), fill, 0)[-1])


def _averages(load: Column, windows: Sequence[int] = (*_WINDOWS, _SLOW_S)) -> dict[int, Column]:
    return {window: _averaged(load, window) for window in windows}


def _held(rule: Rule, averages: dict[int, Column]) -> Column:
    """What there has to be room for."""
    import numpy as np

    now = averages[rule.window_s]
    if rule.growth:
        before = np.maximum(averages[_SLOW_S], 1e-9)
        now = now * np.maximum(now / before, 1.0) ** rule.growth
    return most_of_last(now, max(rule.hold_s // PERIOD_S, 1))


def _filled(held: Column, fill: float, fewest: int) -> Column:
    import numpy as np

    found: Column = np.maximum(np.ceil(held / fill - 1e-9), fewest)
    return found


def allowed(goal: float) -> float:
    """Of the lateness that the target allows, how much a replay may use up: the next hours will be
    a little different."""
    return _SPARE * goal


def chosen(
    load: Column, requests: Column, kind: Replicas, allowed: float, fewest: int = 1
) -> Rule | None:
    """The cheapest by which no more would have been late of this load; None: there is none."""
    seen = Seen(load, requests, kind, fewest)
    averages = _averages(periods(load))
    best: tuple[float, Rule] | None = None
    for rule in _grid():
        tried = _fullest(
            rule, _held(rule, averages), seen, allowed, inf if best is None else best[0]
        )
        if tried is not None and (best is None or tried[0] < best[0]):
            best = tried
    return None if best is None else best[1]


class Seen(NamedTuple):
    load: Column
    requests: Column
    kind: Replicas
    fewest: int

    def told(self, held: Column, fill: float, allowed: float) -> Outcome:
        import numpy as np

        ordered = _filled(held, fill, self.fewest)
        # What is seen in a period is answered in the next.
        ordered = np.concatenate([ordered[:1], ordered[:-1]])
        most_late = allowed * float(self.requests.sum())
        return outcome(self.load, self.requests, ordered, self.kind, most_late)


def _fullest(
    rule: Rule, held: Column, seen: Seen, allowed: float, below: float
) -> tuple[float, Rule] | None:
    """With the cost, if that is below: this rule with replicas as full as may be. Fuller ones are
    later and cost less, so halving finds it, and what costs too much at its fullest is left."""
    low, high, found = _EMPTIEST, _FULLEST, None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        told = seen.told(held, middle, allowed)
        if 1 - told.attainment <= allowed and not told.lost:
            low = middle
            found = (told.seconds, replace(rule, fill=middle)) if told.seconds < below else None
        elif told.seconds >= below:
            return None
        else:
            high = middle
    return found


def _grid() -> Iterator[Rule]:
    for window, growth, hold in itertools.product(_WINDOWS, _GROWTHS, _HOLDS):
        yield Rule(window, growth, hold, 0.0)


def periods(load: Column) -> Column:
    """The mean of each."""
    import numpy as np

    whole = -(-len(load) // PERIOD_S) * PERIOD_S
    padded = np.concatenate([load, np.full(whole - len(load), load[-1] if len(load) else 0.0)])
    found: Column = padded.reshape(-1, PERIOD_S).mean(axis=1)
    return found


def _averaged(load: Column, window_s: int) -> Column:
    """Exponentially, by a time constant of the window."""
    import numpy as np

    left = 1 - min(PERIOD_S / window_s, 1.0)
    if not left or not len(load):
        return load.astype(float)
    # As a sum of what is left of each: so many at a time that no number grows too large.
    most = max(int(_DIGITS / -log(left)), 1)
    found, now = [], float(load[0])
    for begin in range(0, len(load), most):
        part = load[begin : begin + most]
        shrunk = left ** np.arange(1, len(part) + 1)
        found.append(shrunk * (now + (1 - left) * np.cumsum(part / shrunk)))
        now = float(found[-1][-1])
    return np.concatenate(found)
