"""Perfect foresight is exact: what trying everything finds, and no policy beats it."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from tradewind.policy.names import POLICIES
from tradewind.spot.cases import Case, Config
from tradewind.spot.optimum import optimum
from tradewind.spot.simulate import simulate


def tried(case: Case) -> float:
    """Everything that can be done, by the rules as they are written."""
    config, zones = case.config, len(case.zones)

    @cache
    def least(tick: int, held: int, residual_s: int, left_s: int) -> float:
        if tick * case.gap_s >= config.deadline_s:
            return float("inf")
        if 0 <= held < zones and not case.up[held][tick]:
            held = -1
        found = least(tick + 1, -1, 0, left_s)
        for pick in range(zones + 1):
            if pick < zones and not case.up[pick][tick]:
                continue
            over_s = residual_s if pick == held else config.overhead_s
            price = case.prices[pick][tick] if pick < zones else case.on_demand
            end_s = tick * case.gap_s + over_s + left_s
            if over_s + left_s <= case.gap_s:
                later = 0.0 if end_s <= config.deadline_s else float("inf")
            else:
                burned = min(over_s, case.gap_s)
                later = least(tick + 1, pick, over_s - burned, left_s - case.gap_s + burned)
            found = min(found, price * case.gap_s + later)
        return found

    return least(0, -1, 0, config.work_s)


def some_case(rng: random.Random, zones: int, ticks: int) -> Case:
    gap_s = rng.choice([60, 90, 100])
    overhead_s = rng.choice([0, 30, 45, 60, 130, 200])
    work_s = rng.randint(1, ticks * gap_s // 2)
    deadline_s = rng.randint(work_s + overhead_s, max(ticks * gap_s, work_s + overhead_s))
    window = -(-deadline_s // gap_s) + 1
    often = rng.choice([0.3, 0.6, 0.9])
    return Case(
        Config(work_s, deadline_s, overhead_s),
        tuple(f"z{n}" for n in range(zones)),
        gap_s,
        [[rng.random() < often for _ in range(window)] for _ in range(zones)],
        [[rng.choice([1, 2, 3]) for _ in range(window)] for _ in range(zones)],
        4,
    )


def best_of(case: Case) -> float:
    found = optimum(
        np.array([case.up]), np.array([case.prices]), case.on_demand, case.gap_s, case.config
    )
    return float(found[0])


@pytest.mark.parametrize("zones", [1, 2, 3])
def test_it_is_what_trying_everything_finds(zones: int) -> None:
    for seed in range(150):
        case = some_case(random.Random(1000 * zones + seed), zones, 9)
        assert best_of(case) == tried(case), f"seed {1000 * zones + seed}"


@pytest.mark.parametrize("zones", [1, 3])
def test_no_policy_beats_it(zones: int) -> None:
    for seed in range(40):
        case = some_case(random.Random(seed), zones, 12)
        least = best_of(case)
        for name, policy in POLICIES.items():
            found = simulate(case, policy)
            assert found.late or found.cost >= least, f"seed {seed}, {name}"


def test_windows_are_solved_together_as_they_are_alone() -> None:
    rng = np.random.default_rng(3)
    up = rng.random((4, 2, 60)) < 0.5
    prices = rng.integers(1, 5, (4, 2, 60))
    config = Config(2400, 3300, 150)
    together = optimum(up, prices, 7, 60, config)
    alone = [optimum(up[n : n + 1], prices[n : n + 1], 7, 60, config)[0] for n in range(4)]
    assert together.tolist() == alone
