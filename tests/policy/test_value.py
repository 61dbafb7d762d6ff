"""The tables of what finishing costs, where that is known otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tradewind.policy import backward, value
from tradewind.policy.regimes import regimes

HOUR = 3600.0


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def forget() -> None:
        backward.few.cache_clear()
        value.forget()

    forget()
    yield
    monkeypatch.undo()
    forget()


def test_without_slack_it_costs_what_on_demand_costs() -> None:
    table = value.values(12 * HOUR, 6 * HOUR, 720.0, 720.0, 0.3, 600.0)
    curves = table.curves(10 * HOUR, False, 0, regimes().start(1), 0.3)
    held = table.points.at(curves[value.ON_DEMAND], 1.0)
    assert held == pytest.approx(10, abs=0.1)
    assert table.points.at(curves[value.ON_DEMAND], 5 * HOUR) < 5


def test_costs_fall_with_slack_and_lie_between_spot_and_on_demand() -> None:
    table = value.values(24 * HOUR, 12 * HOUR, 180.0, 180.0, 0.3, 600.0)
    for up in (False, True):
        curves = table.curves(20 * HOUR, up, 2, regimes().start(1), 0.3)
        assert (np.diff(curves, axis=1) < 1e-3).all()
        work_h = 20 - table.slack / HOUR
        enough = table.slack > HOUR
        assert (curves[:, enough] >= 0.3 * work_h[enough] - 1e-3).all()
        assert (curves[:, enough] <= work_h[enough] + 0.2).all()


def test_a_price_near_on_demand_is_fine() -> None:
    for price in (0.02, 0.5, 0.9, 0.95, 2.0):
        table = value.values(12 * HOUR, 6 * HOUR, 180.0, 180.0, price, 600.0)
        assert np.isfinite(table.curves(9 * HOUR, True, 1, regimes().start(1), price)).all()


def test_a_few_regimes_tell_of_them_all(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> list[value.Column]:
        table = value.values(24 * HOUR, 8 * HOUR, 720.0, 720.0, 0.3, 600.0)
        return [
            table.curves(20 * HOUR, up, age, regimes().start(zones), 0.3)
            for up in (False, True)
            for age in (0, 3, 8)
            for zones in (1, 5)
        ]

    quick = found()
    monkeypatch.setattr(backward, "NODES", len(regimes().model.levels))
    backward.few.cache_clear()
    value.forget()
    assert len(backward.few().at) == regimes().number
    for one, all_of_them in zip(quick, found(), strict=True):
        assert one == pytest.approx(all_of_them, rel=0.06)


def test_tables_are_kept_only_while_they_fit(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    one = value.values(24 * HOUR, 8 * HOUR, 720.0, 720.0, 0.3, 600.0)
    assert value.values(23.9 * HOUR, 7.9 * HOUR, 720.0, 720.0, 0.3, 600.0) is one
    monkeypatch.setattr(value, "MOST_BYTES", 3 * one.bytes)
    for price in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        value.values(24 * HOUR, 8 * HOUR, 720.0, 720.0, price, 600.0)
        assert one.bytes <= value._tables.bytes <= 3 * one.bytes
    again = value.values(24 * HOUR, 8 * HOUR, 720.0, 720.0, 0.3, 600.0)
    assert again is not one
    assert all((a == b).all() for a, b in zip(again.kept, one.kept, strict=True))


def test_long_before_the_deadline_fewer_moments_are_kept() -> None:
    week = 7 * 24 * HOUR
    table = value.values(week, 24 * HOUR, 180.0, 180.0, 0.3, 600.0)
    assert len(table.kept) < 1 + week / table.step_s / value.KEEP / 1.5
    near_h = value.NEAR * table.step_s / HOUR
    belief = regimes().start(1)
    for hours in (near_h - 1, near_h, near_h + 1, near_h + 4, near_h + 7.9, 150.0, 168.0):
        _, kept_s = table._kept(hours * HOUR)
        assert abs(kept_s / HOUR - hours) <= (0.25 if hours <= near_h else 2)
        cost = table.points.at(
            table.curves(hours * HOUR, True, 8, belief, 0.3)[value.ON_DEMAND], 2.0
        )
        assert cost == pytest.approx(kept_s / HOUR, rel=0.01)  # without slack: on-demand all along
