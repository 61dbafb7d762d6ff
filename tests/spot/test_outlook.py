"""The planner's outlook against the policy: its tables, its reckoning, and what it then spends."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from tests.policy.test_outlook import cost
from tradewind.policy import expected, spot
from tradewind.policy.base import Known, Option
from tradewind.policy.outlook import UNIT, packaged
from tradewind.policy.regimes import regimes
from tradewind.policy.value import values
from tradewind.spot import outlook
from tradewind.spot.cases import Case, Config
from tradewind.spot.predict import predicted
from tradewind.spot.simulate import simulate

HOUR = 3600.0


@pytest.mark.parametrize(
    ("work_h", "time_h", "restart_h", "price", "near"),
    [
        (8.0, 8.18 + 8 * 0.25, 0.18, outlook.PRICES[3], 0.005),  # a point of the grid
        (20.0, 20.5 + 20 * 0.7, 0.5, outlook.PRICES[5], 0.005),
        (12.0, 18.0, 0.2, outlook.PRICES[2], 0.04),  # between points
        (30.0, 36.0, 0.1, outlook.PRICES[3], 0.04),
        (5.0, 8.0, 0.3, outlook.PRICES[4], 0.04),
    ],
)
def test_it_says_what_the_tables_say(
    work_h: float, time_h: float, restart_h: float, price: float, near: float
) -> None:
    slack_s, restart_s = (time_h - work_h) * HOUR, restart_h * HOUR
    table = values(time_h * HOUR, slack_s, restart_s, restart_s, price, 0.0)
    assert table.price == pytest.approx(price)
    for seen, machines in product((1, -1), (1, 4)):
        told = cost(work_h, time_h, restart_h, machines, seen, price=price)
        found = outlook.cost_h(table, work_h, time_h, restart_h, seen > 0, machines)
        assert told == pytest.approx(found, rel=near), (seen, machines)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize(("work_h", "time_h", "restart_h"), [(12.0, 18.0, 0.2), (24.0, 30.0, 0.1)])
def test_it_says_what_the_policy_reckons_with_before_it_begins(
    work_h: float, time_h: float, restart_h: float, up: bool
) -> None:
    start_s = restart_h * HOUR
    dear, cheap = 3_000_000, round(3_000_000 * outlook.PRICES[3])
    spot_option = Option("z", "spot", cheap, 1.0, start_s, again_s=start_s, up=up)
    safe = Option("c", "on_demand", dear, 1.0, start_s, again_s=start_s, up=True)
    known = Known(
        work_h * HOUR,
        (spot_option, safe),
        time_h * HOUR,
        all_work=work_h * HOUR,
        all_s=time_h * HOUR,
    )
    markets = expected._markets(known, safe)
    slack_s = (time_h - work_h) * HOUR
    classes = expected._classes(known, safe, markets, slack_s)
    costs = expected._costs(known, 1, markets, classes, slack_s)
    told = cost(work_h, time_h, restart_h, 1, 1 if up else -1, price=cheap / dear)
    assert told == pytest.approx(min(costs.values()), rel=0.05)


def market(rng: random.Random, ticks: int, gap_s: int) -> list[bool]:
    """Capacity as was learned that it comes and goes."""
    now = regimes()
    moves = now.moved(gap_s / HOUR)
    regime = rng.choices(range(now.number), now.start(1).tolist())[0]
    up, age_s, found = rng.random() < now.often_up[regime], 0.0, []
    for _ in range(ticks):
        found.append(bool(up))
        lost = 1 - np.exp(-now.hazards[regime, int(up), now.age(age_s)] * gap_s / HOUR)
        age_s += gap_s
        if rng.random() < lost:
            up, age_s = not up, 0.0
        regime = rng.choices(range(now.number), moves[regime].tolist())[0]
    return found


@pytest.mark.slow
def test_what_it_says_is_what_the_policy_then_spends() -> None:
    rng = random.Random(5)
    for config in (Config(12 * 3600, 18 * 3600, 720), Config(20 * 3600, 23 * 3600, 180)):
        window = config.window(600)
        spent = told = 0.0
        for _ in range(120):
            up = market(rng, window, 600)
            case = Case(config, ("z",), 600, [up], [[300] * window], 1000)
            spent += simulate(case, expected.choose).cost
            told += predicted(case, 1)
        assert told == pytest.approx(spent, rel=0.07), config.name


def test_the_one_in_the_package_is_what_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = packaged()
    axes = (whole.machines, whole.restart_h, whole.work_h, whole.slack, whole.prices)
    costs = np.array(whole.costs).reshape(2, *map(len, axes))[:, :2, 1:3, 2:4, :, 3:5]
    monkeypatch.setattr(outlook, "MACHINES", outlook.MACHINES[:2])
    monkeypatch.setattr(outlook, "RESTART_H", outlook.RESTART_H[1:3])
    monkeypatch.setattr(outlook, "PRICES", outlook.PRICES[3:5])
    monkeypatch.setattr(outlook, "WORK_H", outlook.WORK_H[2:4])
    monkeypatch.setattr(outlook, "HORIZONS", (outlook.WORK_H,))
    few = outlook.make("now")
    assert few.learned == whole.learned
    assert few.prices == whole.prices[3:5]
    assert np.array(few.costs) == pytest.approx(costs.ravel(), abs=0.02 * UNIT)


def test_cost_is_concave_in_the_price() -> None:
    rng = np.random.default_rng(3)
    rough = np.sort(rng.uniform(0.1, 1, (50, len(outlook.PRICES))), axis=1)
    found = outlook.concave(rough)
    assert (found >= rough).all()
    prices = np.array([*outlook.PRICES, 1.0])
    slopes = np.diff(np.concatenate([found, np.ones((50, 1))], axis=1)) / np.diff(prices)
    assert (np.diff(slopes, axis=1) <= 1e-9).all()


def test_a_belief_weighs_what_was_seen() -> None:
    for machines in (1, 8):
        seen = {look: spot.believed(machines, look) @ regimes().often_up for look in (-1, 0, 1)}
        assert seen[-1] < seen[0] < seen[1]
