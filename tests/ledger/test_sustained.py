from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.ledger.making import moment, postings_of, run_cost
from tests.lifecycle.builders import SPOT, WAY
from tradewind.ledger import focus, sustained
from tradewind.ledger.periods import by_day
from tradewind.ledger.postings import SUSTAINED, RunCost
from tradewind.ledger.report import report
from tradewind.model.run import Way
from tradewind.model.sustained import unpaid

STEPS = ((0, 10_000), (2_500, 8_000), (5_000, 6_000), (7_500, 4_000))
N1 = replace(WAY, sustained=STEPS)
DAY_S = 86_400
JUNE, JULY = moment("2026-06-01T00:00"), moment("2026-07-01T00:00")
DAY = 24 * WAY.price


def off(*runs: RunCost) -> int:
    found = [p for p in postings_of(*sustained.credited(runs)) if p.kind == SUSTAINED]
    return -sum(posting.micros for posting in found)


def lasting(name: str, start_s: int, *stays: tuple[Way, int | None], **more: int) -> RunCost:
    return run_cost(name, start_s, *stays, now_s=JULY, **more)


def test_a_whole_month_costs_three_tenths_less() -> None:
    assert off(lasting("run-1", JUNE, (N1, 30 * DAY_S))) == 30 * DAY * 3 // 10
    assert off(lasting("run-1", JUNE, (N1, 15 * DAY_S))) == 15 * DAY // 10
    assert off(lasting("run-1", JUNE, (N1, 30 * DAY_S // 4))) == 0
    assert off(lasting("run-1", JUNE, (WAY, 30 * DAY_S))) == 0


def test_the_month_begins_anew() -> None:
    assert off(lasting("run-1", JULY - 7 * DAY_S, (N1, 14 * DAY_S))) == 0


def test_machines_one_after_the_other_are_one_and_those_at_once_are_several() -> None:
    apart = [lasting(f"run-{n}", JUNE + n * 10 * DAY_S, (N1, 10 * DAY_S)) for n in range(3)]
    assert off(*apart) == 30 * DAY * 3 // 10
    at_once = [lasting(f"run-{n}", JUNE, (N1, 10 * DAY_S)) for n in range(3)]
    assert off(*at_once) == 3 * off(at_once[0]) > 0
    elsewhere = replace(N1, region="r2")
    assert off(apart[0], lasting("run-9", JUNE + 10 * DAY_S, (elsewhere, 10 * DAY_S))) == (
        off(apart[0]) * 2
    )


def test_what_is_up_is_discounted_until_now_and_spot_never() -> None:
    assert off(lasting("run-1", JUNE, (N1, None))) == 30 * DAY * 3 // 10
    assert off(lasting("run-1", JUNE, (SPOT, 30 * DAY_S))) == 0


def test_disks_and_addresses_cost_the_same_all_month() -> None:
    disk = replace(N1, price=N1.price + 7_000, disk_price=4_000, address_price=3_000)
    assert off(lasting("run-1", JUNE, (disk, 30 * DAY_S))) == 30 * DAY * 3 // 10


def test_reports_and_exports_have_it() -> None:
    runs = sustained.credited([lasting("run-1", JUNE, (N1, 30 * DAY_S), predicted_cost=1)])
    for by in ("run", "machine", "month", "day", "market"):
        made = report(runs, by)
        assert made.total.sustained == 30 * DAY * 3 // 10
        assert sum(line.micros for line in made.lines) == made.total.micros
    assert made.total.saved == made.total.sustained
    assert made.total.machines == 1
    rows = focus.rows(postings_of(*runs))
    credit = [row for row in rows if row["ChargeCategory"] == "Credit"]
    assert len(credit) == 30
    assert {row["PricingQuantity"] for row in credit} == {""}
    assert credit[0]["ChargeDescription"].startswith("sustained use of small on-demand")
    assert round(1e6 * sum(float(row["BilledCost"]) for row in rows)) == made.total.micros


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40 * DAY_S)), min_size=1, max_size=5),
    st.integers(1, 10**7),
)
def test_never_more_than_the_steps_allow_and_days_add_up(
    stays: list[tuple[int, int]], price: int
) -> None:
    way = replace(N1, price=price)
    whole = [lasting(f"run-{n}", JUNE + d * DAY_S, (way, s)) for n, (d, s) in enumerate(stays)]
    alone = sum(off(run) for run in whole)
    together = off(*whole)
    assert alone - len(stays) <= together <= sum(run.micros for run in whole) * 6 // 10
    for posting in postings_of(*sustained.credited(whole)):
        assert sum(part.micros for part in by_day(posting)) == posting.micros


def test_time_that_is_cut_costs_the_same() -> None:
    month = 30 * DAY_S
    pieces = [unpaid(STEPS, at, DAY_S, month) for at in range(0, month, DAY_S)]
    assert sum(pieces) == unpaid(STEPS, 0, month, month) == month * 3_000
