from __future__ import annotations

from datetime import UTC

from tradewind import clock


def test_now_knows_its_zone_and_today_is_its_day() -> None:
    before = clock.today()
    assert clock.now().tzinfo is UTC
    assert before <= clock.today()


def test_ids_differ_and_sort_by_time() -> None:
    ids = [clock.new_id("run") for _ in range(50)]
    assert len(set(ids)) == 50
    assert all(i.startswith("run-") for i in ids)
    assert [i.split("-")[1] for i in ids] == sorted(i.split("-")[1] for i in ids)


def test_a_seed_repeats() -> None:
    assert clock.generator(7).random() == clock.generator(7).random()
    assert clock.generator().random() != clock.generator().random()
