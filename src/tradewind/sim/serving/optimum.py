"""The least that could have been paid, knowing every request beforehand, with none late.

Every second needs so many replicas that nothing which arrives then waits too long. Replicas are
alike, so the k-th is needed whenever at least k are: between two such times it
is kept, or given up and started anew, whichever costs less. Level by level that is the optimum.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from tradewind.services.replay import PERIOD_S, Replicas, most_of_last
from tradewind.sim.serving.market import Market

if TYPE_CHECKING:
    from tradewind.services.replay import Column


_LONGEST_S = 34
"""What arrives within so long is looked at together."""


def needed(load: Column, kind: Replicas) -> Column:
    """Replicas by second: so many all through each span that its work is done in time. Enough for
    every request; somebody who crowds them within a span may do with a few per cent less."""
    import numpy as np

    total = np.concatenate([[0.0], np.cumsum(load)])
    need = np.zeros(len(load))
    for span in range(1, min(_LONGEST_S, len(load)) + 1):
        each = (total[span:] - total[:-span]) / (span + kind.slack_s)
        padded = np.concatenate([each, np.zeros(span - 1)])
        need = np.maximum(need, most_of_last(padded, span))
    return _in_time(load, np.ceil(need - 1e-9), kind.slack_s)


def _in_time(load: Column, need: Column, slack_s: float) -> Column:
    """With more where something would still be late, after longer than a span."""
    import numpy as np

    found, behind = [], 0.0
    for arrives, count in zip(load.tolist(), need.tolist(), strict=True):
        count = max(count, ceil((behind + arrives) / (1 + slack_s) - 1e-9))
        behind = max(behind + arrives - count, 0.0)
        found.append(count)
    return np.array(found, float)


def seconds(need: Column, kind: Replicas) -> float:
    """Of replicas that are paid. Those of the first moment are there already."""
    import numpy as np

    again = kind.cold_s + kind.drain_s
    paid = 0.0
    for level in range(1, int(need.max(initial=0)) + 1):
        edges = np.diff(np.concatenate([[0], (need >= level).astype(int), [0]]))
        begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        gaps = begins[1:] - ends[:-1]
        paid += float((ends - begins).sum() + np.minimum(gaps, again).sum())
        paid += min(float(begins[0]), float(kind.cold_s))
    return paid


def cost(need: Column, kind: Replicas, market: Market) -> float:
    """Micro-dollars, where replicas may be on spot: each of them moves between on demand and the
    zones as it pays, as if it had seen when they are taken; each move is a cold start, over before
    it is needed. Zones are as large as one likes, and within ten seconds nothing is paid before the
    first and after the last in which it is needed: so nobody can pay less."""
    import numpy as np

    if not market.zones:
        return seconds(need, kind) / 3600 * market.on_demand
    periods, levels = market.up.shape[1], int(need.max(initial=0))
    spans = _spans(need, levels, periods)
    cold = -(-kind.cold_s // PERIOD_S)
    sold = _always(market.up, cold)
    price = np.vstack([np.full(periods, float(market.on_demand)), market.price]) / 3600
    there = np.vstack([np.ones(periods, bool), market.up])
    starts = np.where(np.vstack([np.ones(periods, bool), sold]), price * kind.cold_s, np.inf)
    # State 0 is none; those of the first moment are there already.
    paid = np.zeros((levels, len(price) + 1))
    for at in range(periods):
        now, span = price[:, at], spans[:, at]
        leave = paid.copy()
        if at:
            leave[:, 1:] += np.where(there[:, at], now * kind.drain_s, 0.0)
        best = leave.min(axis=1)
        held_s = np.where(span > 0, span, PERIOD_S)
        moved = np.minimum(paid[:, 1:], (best[:, None] + starts[:, at]) if at else paid[:, 1:])
        paid[:, 1:] = np.where(there[:, at], moved + held_s[:, None] * now, np.inf)
        paid[:, 0] = np.where(span > 0, np.inf, np.minimum(paid[:, 0], best))
    return float(paid.min(axis=1).sum())


def _spans(need: Column, levels: int, periods: int) -> Column:
    """Seconds of each period from the first to the last in which a level is needed."""
    import numpy as np

    padded = np.zeros(periods * PERIOD_S)
    padded[: len(need)] = need
    by_period = padded.reshape(periods, PERIOD_S)
    found = np.zeros((levels, periods))
    for level in range(levels):
        on = by_period > level
        first, last = on.argmax(axis=1), PERIOD_S - on[:, ::-1].argmax(axis=1)
        found[level] = np.where(on.any(axis=1), last - first, 0)
    return found


def _always(up: Column, periods: int) -> Column:
    """Whether a zone had machines in all of the last so many periods."""
    import numpy as np

    return np.array([most_of_last((~each).astype(float), periods + 1) == 0 for each in up])
