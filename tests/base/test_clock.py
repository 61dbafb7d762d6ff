from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tradewind.base import clock
from tradewind.base.errors import InvalidValue


def test_now_knows_its_zone_and_today_is_its_day() -> None:
    before = clock.today()
    assert clock.now().tzinfo is UTC
    assert before <= clock.today()


def test_the_clock_can_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15")
    assert clock.now() == datetime(2026, 11, 15, tzinfo=UTC)
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T01:00+02:00")
    assert clock.today().isoformat() == "2026-11-15"
    monkeypatch.setenv("TRADEWIND_NOW", "yesterday")
    with pytest.raises(InvalidValue, match="no date or time"):
        clock.now()


def test_ids_differ_and_sort_by_time() -> None:
    ids = [clock.new_id("run") for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(i.startswith("run-") for i in ids)
    assert [i.split("-")[1] for i in ids] == sorted(i.split("-")[1] for i in ids)


def test_a_seed_repeats() -> None:
    assert clock.generator(7).random() == clock.generator(7).random()
    assert clock.generator().random() != clock.generator().random()
