"""Saves: as often as Young and Daly say for the hazards at that age."""

from __future__ import annotations

from functools import partial
from math import exp, inf

import pytest

from tradewind.policy import cadence


def test_a_fresh_machine_saves_often_and_an_old_one_seldom() -> None:
    assert cadence.every_s(60, 0) / 60 == pytest.approx(8, abs=0.5)
    assert cadence.every_s(60, 6 * 3600) / 60 == pytest.approx(30.5, abs=0.5)
    ages = [cadence.every_s(60, minutes * 60) for minutes in (0, 10, 20, 40, 80, 160, 320)]
    assert ages == sorted(ages)
    assert len(set(ages)) == 7


def test_more_machines_save_more_often_and_safe_ones_seldom() -> None:
    assert cadence.every_s(60, 0, machines=8) < cadence.every_s(60, 0)
    seldom = partial(cadence.every_s, age_s=0, spot=False, any_loss_h=inf)
    assert seldom(60) == 60 / cadence.SPARED
    assert seldom(1) == cadence.MOST_S
    assert seldom(600) == cadence.LONGEST_S


@pytest.mark.parametrize(("save_s", "minutes"), [(1, 7), (3, 12), (10, 22), (60, 54)])
def test_safe_machines_save_often_enough_that_a_kill_costs_minutes(
    save_s: float, minutes: float
) -> None:
    """Jobs are killed by hand, for want of memory, by a restart: about once a day is enough."""
    for age_s in (0.0, 30 * 3600.0):
        found = cadence.every_s(save_s, age_s, spot=False)
        assert found / 60 == pytest.approx(minutes, abs=1)
        assert save_s / found < cadence.SPARED * 4


def test_where_losses_are_noticed_saves_are_further_apart() -> None:
    noticed = cadence.every_s(60, 0, noticed=cadence.NOTICED)
    assert noticed / 60 == pytest.approx(23, abs=1)
    # Hardware fails all the same, and people err.
    assert cadence.every_s(10, 0, noticed=1.0) == cadence.every_s(10, 0, spot=False)


def test_no_more_than_the_slack_is_put_at_risk() -> None:
    assert cadence.every_s(60, 6 * 3600, slack_s=1000) == 0.75 * 1000
    assert cadence.every_s(60, 6 * 3600, slack_s=0) == 120  # half of the time is for work
    assert cadence.every_s(60, 0, spot=False, slack_s=2000) == cadence.every_s(60, 0, spot=False)


@pytest.mark.parametrize(("save_s", "mean_s"), [(10, 3600), (60, 2000), (300, 2000)])
def test_it_is_where_least_time_is_lost(save_s: float, mean_s: float) -> None:
    def whole(every_s: float) -> float:
        """Daly's time to finish, without what does not depend on it."""
        return (exp((every_s + save_s) / mean_s) - 1) / every_s

    best = cadence.daly_s(save_s, mean_s)
    assert whole(best) <= 1.001 * min(whole(s) for s in range(10, 6000, 10))


def test_a_save_longer_than_a_machine_lives_is_not_repeated() -> None:
    assert cadence.daly_s(5000, 2000) == 2000
    assert cadence.every_s(0, 0) == cadence.LEAST_S
    for save_s in (1800, 3600, 7200, 90_000):
        for spot in (False, True):
            assert cadence.every_s(save_s, 0, spot=spot) > save_s + cadence.LEAST_S
