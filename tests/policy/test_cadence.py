"""Saves: as often as Young and Daly say for the hazards at that age."""

from __future__ import annotations

from math import exp

import pytest

from tradewind.policy import cadence


def test_a_fresh_machine_saves_often_and_an_old_one_seldom() -> None:
    assert cadence.every_s(60, 0) / 60 == pytest.approx(8, abs=0.5)
    assert cadence.every_s(60, 6 * 3600) / 60 == pytest.approx(37, abs=0.5)
    ages = [cadence.every_s(60, minutes * 60) for minutes in (0, 10, 20, 40, 80, 160, 320)]
    assert ages == sorted(ages)
    assert len(set(ages)) == 7


def test_more_machines_save_more_often_and_safe_ones_seldom() -> None:
    assert cadence.every_s(60, 0, machines=8) < cadence.every_s(60, 0)
    assert cadence.every_s(60, 0, spot=False) == 60 / cadence.SPARED
    assert cadence.every_s(1, 0, spot=False) == cadence.MOST_S
    assert cadence.every_s(600, 0, spot=False) == cadence.LONGEST_S


def test_where_losses_are_noticed_saves_are_further_apart() -> None:
    noticed = cadence.every_s(60, 0, noticed=cadence.NOTICED)
    assert noticed / 60 == pytest.approx(25, abs=1)
    assert cadence.every_s(10, 0, noticed=1.0) == cadence.MOST_S  # hardware fails all the same


def test_no_more_than_the_slack_is_put_at_risk() -> None:
    assert cadence.every_s(60, 6 * 3600, slack_s=2000) == 0.75 * 2000
    assert cadence.every_s(60, 6 * 3600, slack_s=0) == 120  # half of the time is for work
    assert cadence.every_s(60, 0, spot=False, slack_s=2000) == 60 / cadence.SPARED


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
