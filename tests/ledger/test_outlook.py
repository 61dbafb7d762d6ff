"""What the month will come to, and what is unusually dear."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.ledger.making import HOUR_S, NOON_S, events_of, moment
from tests.lifecycle.builders import WAY
from tradewind.ledger.outlook import forecast, unusual
from tradewind.ledger.postings import RunCost, cost_of

DAY_S = 24 * HOUR_S


def run(name: str, start_s: int, hours: float, kind: str = "nightly") -> RunCost:
    events = events_of(name, start_s, (WAY, int(hours * HOUR_S)))
    found = cost_of(name, events, NOON_S)
    assert found.spec is not None
    return replace(found, spec=replace(found.spec, name=kind))


def test_days_alike_come_to_the_month_without_a_range() -> None:
    """From the 1st to the 15th at noon, two hours each day at two: so it goes on."""
    days = [run(f"r{d}", moment(f"2026-10-{d:02}T02:00"), 2) for d in range(18, 32)]
    days += [run(f"n{d}", moment(f"2026-11-{d:02}T02:00"), 2) for d in range(1, 16)]
    found = forecast([p for one in days for p in one.postings], NOON_S)
    each = days[0].micros
    assert found.spent == 15 * each
    assert found.days_left == pytest.approx(15.5)
    assert found.likely == pytest.approx(15 * each + 15.5 * each, rel=1e-6)
    assert (found.low, found.high) == (found.likely, found.likely)


def test_days_that_differ_widen_the_range_and_nothing_falls_below_what_is_spent() -> None:
    days = [run("a", moment("2026-11-02T00:00"), 20), run("b", moment("2026-11-12T00:00"), 1)]
    found = forecast([p for one in days for p in one.postings], NOON_S)
    assert found.spent <= found.low < found.likely < found.high


def test_nothing_spent_is_nothing_to_come() -> None:
    found = forecast([], NOON_S)
    assert (found.spent, found.likely, found.low, found.high) == (0, 0, 0, 0)


def test_a_run_at_three_times_its_kind_is_unusual() -> None:
    start = NOON_S - 5 * DAY_S
    kind = [run(f"r{n}", start, 2) for n in range(4)]
    dear = run("dear", start, 6.5)
    found = unusual([*kind, dear, run("other", start, 90, "alone")])
    assert [one.run_id for one in found] == ["dear"]
    assert found[0].times == pytest.approx(3.25, rel=0.01)
    assert found[0].others == 4
    assert unusual([*kind[:2], dear]) == []
    assert unusual([*kind, run("usual", start, 5)]) == []
