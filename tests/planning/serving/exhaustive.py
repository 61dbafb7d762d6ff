"""The best replicas, found by trying everything one by one in plain loops."""

from __future__ import annotations

from itertools import product
from math import ceil, comb, inf

import numpy as np

from tradewind.model.plan import REFUSAL
from tradewind.model.serve import Serve
from tradewind.planning.serving.layouts import most_rate
from tradewind.planning.serving.planner import Planner
from tradewind.planning.serving.search import cuts


def lightest(planner: Planner) -> float:
    """What the best weighs, micro-dollars a cycle; infinite where nothing will do."""
    traffic, serve = planner.traffic, planner.serve
    best = _pool(planner, traffic.mix, list(traffic.hours))
    for length in cuts(traffic.mix):
        divided = traffic.mix.split(length)
        assert divided is not None
        short, long, share = divided
        first = _pool(planner, short, [rate * share for rate in traffic.hours])
        second = _pool(planner, long, [rate * (1 - share) for rate in traffic.hours])
        best = min(best, first + second)
    assert serve is not None
    return best


def lightest_for_users(planner: Planner) -> float:
    """The same where users are in several places: by every division of them, and every machine."""
    traffic, far = planner.traffic, planner.sites.away
    assert far is not None
    best = inf
    for division in _divisions(list(range(len(planner.users)))):
        total = 0.0
        for users in division:
            share = sum(planner.users[n][1] for n in users)
            away = [max(far[i, n] for n in users) for i in range(len(planner.shelf))]
            total += _pool(planner, traffic.mix, [r * share for r in traffic.hours], away)
        best = min(best, total)
    return best


def _divisions(users: list[int]):  # type: ignore[no-untyped-def]
    if not users:
        yield []
        return
    first, rest = users[0], users[1:]
    for division in _divisions(rest):
        yield [[first], *division]
        for n in range(len(division)):
            yield [*division[:n], [first, *division[n]], *division[n + 1 :]]


def _pool(planner: Planner, mix, hours: list[float], away=None) -> float:  # type: ignore[no-untyped-def]
    shelf, serve = planner.shelf, planner.serve
    table = planner.layouts.tables(mix)
    best = inf
    for entry in range(len(shelf)):
        layout = int(shelf.layout[entry])
        one = table.take(np.array([layout]))
        targets = dict(serve.targets)
        if away is not None:
            if away[entry] == inf:
                continue
            delay = ceil(1e3 * away[entry] / 20 - 1e-9) * 20 / 1e3
            targets = {
                name: (seconds - (0 if name == "tpot" else delay), share)
                for name, (seconds, share) in targets.items()
            }
            if min(seconds for seconds, _ in targets.values()) <= 0:
                continue
        rate = float(most_rate(one, mix, targets, planner.traffic.cv)[0])
        each = rate * float(shelf.replicas[entry])
        if each <= 0:
            continue
        best = min(best, _entry(shelf, entry, each, hours, serve))
    return best


def _entry(shelf, entry: int, each: float, hours: list[float], serve: Serve) -> float:  # type: ignore[no-untyped-def]
    """The cheapest of an entry, and what it weighs."""
    needed = []
    for rate in hours:
        need = ceil(rate / each - 1e-9)
        if not (serve.scale_to_zero and rate == 0):
            up = max(serve.warm, 0 if serve.scale_to_zero else 1)
            need = max(need, ceil(up / float(shelf.replicas[entry])))
        needed.append(need)
    best, machines, on_spot = inf, 0, False
    commit = float(shelf.committed[entry])
    for committed in range(1 if np.isnan(commit) else max(needed) + 4):
        by_need = {
            need: _hour(shelf, entry, need, serve.availability, committed) for need in set(needed)
        }
        held = [by_need[need] for need in needed]
        costs = [cost for cost, _, _ in held]
        if inf in costs:
            continue
        rises = sum(
            max(now - before, 0) for before, now in zip([costs[-1], *costs], costs, strict=False)
        )
        total = sum(costs) + rises * float(shelf.start_h[entry])
        total += committed * commit * len(hours) if committed else 0.0
        if total < best:
            best = total
            machines = committed + max(first + second for _, first, second in held)
            on_spot = any(second for _, _, second in held)
    if best == inf:
        return inf
    had: float = shelf.had(entry, machines, on_spot)
    return best * (1 + REFUSAL * (1 / had - 1))


def _hour(  # type: ignore[no-untyped-def]
    shelf, entry: int, need: int, availability: float, committed: int
) -> tuple[float, int, int]:
    """Cost, machines on demand and machines on spot, beside those that are committed to."""
    if need == 0:
        return 0.0, 0, 0
    steady, spot = float(shelf.steady[entry]), float(shelf.spot[entry])
    best = (inf, 0, 0)
    for first, second in product(range(need + 4), range(need + 8)):
        if (first and np.isnan(steady)) or (second and np.isnan(spot)):
            continue
        if first > shelf.most_steady[entry] or second > shelf.most_spot[entry]:
            continue
        if first + committed + second < need + (1 if second else 0):
            continue
        up = first + committed
        if _up(need, up, second, float(shelf.steady_down[entry]), float(shelf.spot_down[entry])) < (
            availability
        ):
            continue
        cost = (first * steady if first else 0) + (second * spot if second else 0)
        best = min(best, (cost, first, second))
    return best


def _up(need: int, first: int, second: int, down: float, taken: float) -> float:
    total = 0.0
    for a, b in product(range(first + 1), range(second + 1)):
        if a + b >= need:
            total += (
                comb(first, a) * (1 - down) ** a * down ** (first - a)
                * comb(second, b) * (1 - taken) ** b * taken ** (second - b)
            )  # fmt: skip
    return total
