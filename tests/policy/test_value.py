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
        for cached in (backward.few, value._values, value._rounding):
            cached.cache_clear()

    forget()
    yield
    monkeypatch.undo()
    forget()


def test_without_slack_it_costs_what_on_demand_costs() -> None:
    table = value.values(12 * HOUR, 6 * HOUR, 720.0, 720.0, 0.3, 600.0)
    curves = table.curves(10 * HOUR, False, 0, regimes().start(1), 0.3)
    held = table.at(curves[value.ON_DEMAND], 1.0)
    assert held == pytest.approx(10, abs=0.1)
    assert table.at(curves[value.ON_DEMAND], 5 * HOUR) < 5


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
    value._values.cache_clear()
    value._rounding.cache_clear()
    assert len(backward.few().at) == regimes().number
    for one, all_of_them in zip(quick, found(), strict=True):
        assert one == pytest.approx(all_of_them, rel=0.06)
