"""Our own policy on a trace, with machines that are taken."""

from __future__ import annotations

import numpy as np
import pytest

from tradewind.estimate.serving.mix import Mix
from tradewind.services.replay import PATIENT_S, PERIOD_S, Replicas, waited
from tradewind.sim.serving import compare, fleet, optimum, production
from tradewind.sim.serving.demand import Demand
from tradewind.sim.serving.market import Market, without_spot

KIND = Replicas(cold_s=180, slack_s=0.9, drain_s=15, patient_s=PATIENT_S)
PRICE = 600_000
MIX = Mix((100.0,), (100.0,), (1.0,))


def tides(hours: float, seed: int = 0) -> Demand:
    """Between 4 and 8 replicas, with noise by the second."""
    at = np.arange(int(hours * 3600))
    load = np.random.default_rng(seed).poisson(100 * (6 - 2 * np.cos(at / 3000))) / 100
    return Demand(load, 100 * load, MIX, 1.0)


def market(*zones: np.ndarray, notice_s: int = 120) -> Market:
    up = np.array(zones, bool)
    price = np.full(up.shape, PRICE / 3)
    return Market("test", tuple("abc"[: len(zones)]), up, price, PRICE, notice_s)


def late(demand: Demand, served: production.Served) -> float:
    found, lost = waited(demand.load, demand.requests, served.ready, KIND)
    assert lost == 0
    return float(found / demand.requests.sum())


def test_tides_are_followed_without_spot() -> None:
    demand = tides(3)
    served = production.run(demand, KIND, 0.99, 4, without_spot(PRICE, 1080))
    assert late(demand, served) < 0.01
    assert served.on_demand == 1
    assert served.machines.seconds < 1.5 * demand.load.sum()
    assert served.machines.cost == pytest.approx(served.machines.seconds / 3600 * PRICE)


def test_nothing_is_known_before_it_happens() -> None:
    demand = tides(1)
    other = demand.load.copy()
    other[1800:] = 0
    changed = Demand(other, 100 * other, MIX, 1.0)
    ready = [
        production.run(each, KIND, 0.99, 5, without_spot(PRICE, 360)).ready
        for each in (demand, changed)
    ]
    known = 1800 // PERIOD_S + 1
    assert np.array_equal(ready[0][:known], ready[1][:known])
    assert not np.array_equal(ready[0], ready[1])


def test_a_zone_that_is_taken_is_made_good_elsewhere_and_spot_costs_less() -> None:
    demand, taken = tides(2), np.ones(720)
    taken[300:420] = 0
    served = production.run(demand, KIND, 0.99, 4, market(np.ones(720), taken, np.ones(720)))
    assert served.machines.interruptions > 0
    assert served.machines.lost == 0  # answers take less than the notice
    assert served.on_demand < 0.01
    assert late(demand, served) < 0.01
    alone = production.run(demand, KIND, 0.99, 4, without_spot(PRICE, 720))
    assert served.machines.cost < 0.75 * alone.machines.cost


def test_without_any_spot_left_it_is_on_demand_and_spot_again_when_there_is() -> None:
    there = np.ones(1080)
    there[300:500] = 0
    served = production.run(tides(3), KIND, 0.99, 4, market(there))
    assert 0.1 < served.on_demand < 0.6
    assert served.ready[340:500].min() >= 4


def test_what_answers_longer_than_the_notice_is_lost_and_counted() -> None:
    there = np.ones(360)
    there[200:] = 0
    served = production.run(tides(1), KIND, 0.99, 4, market(there, notice_s=0))
    assert served.machines.lost > 0


def test_the_optimum_with_spot() -> None:
    need = np.repeat([2.0, 2.0, 1.0, 2.0], 90 * PERIOD_S)
    always, never = np.ones(360), np.zeros(360)
    alone = optimum.cost(need, KIND, without_spot(PRICE, 360))
    assert optimum.cost(need, KIND, market(never)) == pytest.approx(alone, rel=1e-6)
    assert optimum.cost(need, KIND, market(always)) == pytest.approx(alone / 3, rel=1e-6)
    half = np.ones(360)
    half[180:] = 0
    middle = optimum.cost(need, KIND, market(half))
    assert alone / 3 < middle < alone
    # Another zone for the second half, come up before it is needed: a cold start of each more.
    both = optimum.cost(need, KIND, market(half, 1 - half + np.roll(half, 30) * (half == 0)))
    assert both < middle


def test_others_get_spot_too_and_never_less_than_they_asked_for_while_there_is_any() -> None:
    wished = np.repeat([3.0, 5.0, 2.0], 120)
    taken = np.ones(360)
    taken[150:200] = 0
    ready, machines = fleet.bought(wished, market(np.ones(360), taken), KIND, np.ones(360), 1)
    assert ready[0] == 4
    assert machines.interruptions == 3
    assert ready[145] < 6  # after the notice, until others have come up
    assert ready[200] == 6
    assert ready[-1] == 3


def test_every_policy_is_at_least_what_it_was_on_demand() -> None:
    demand = tides(1)
    there = market(np.ones(360), np.ones(360))
    least, start = compare.least(demand, KIND, there)
    for found in compare.results(demand, KIND, 0.99, start, there, ("static", "hpa")):
        assert found.kept
        assert 0.9 * least < found.cost < 2.5 * least
