"""What the store costs a run, in its ledger."""

from __future__ import annotations

from decimal import Decimal

from msgspec.structs import replace

from tests.ledger.making import HOUR_S, NOON_S, RATES, USED, events_of, run_cost
from tests.lifecycle.builders import SPOT, WAY
from tradewind.ledger import focus
from tradewind.ledger.postings import STORE, cost_of, postings, stored
from tradewind.ledger.report import report
from tradewind.model.event import MachineUsed, Stored
from tradewind.model.usage import GB, Usage, cost, kept

METERED = replace(SPOT, rates=RATES)


def test_a_line_for_each_price() -> None:
    events = events_of("run-1", NOON_S, (METERED, HOUR_S))
    lines = stored(events)
    assert [(p.line.what, p.micros) for p in lines if p.line] == [
        ("PUT, COPY, POST and LIST requests", 61_725),
        ("GET and HEAD requests", 311),
        ("traffic to the store's region", 931_323),
        ("traffic from the store's region", 186_265),
        ("objects that were removed again", 82_641),
        ("objects of the run", 8_265),
    ]
    assert {p.machine_id for p in lines} == {"run-1-1-m0", ""}
    assert [p.estimated for p in lines] == [False] * 5 + [True]
    assert all(p.seconds == 0 and p.kind == STORE for p in lines)
    assert sum(p.micros for p in lines) == cost(USED, RATES) + kept(10**15, RATES).micros
    assert len(postings(events)) == 1  # the machine's alone


def test_without_prices_nothing_is_posted() -> None:
    events = [*events_of("run-1", NOON_S, (SPOT, HOUR_S))]
    events.insert(4, MachineUsed(machine_id="run-1-1-m0", leg=1, usage=USED))
    assert stored(events) == []


def test_what_was_said_later_takes_its_place() -> None:
    events = events_of("run-1", NOON_S, (METERED, HOUR_S))
    events.append(MachineUsed(machine_id="run-1-1-m0", leg=1, usage=USED + Usage(writes=1000)))
    events.append(Stored(bytes=0, byte_s=0))
    micros = sum(p.micros for p in stored(events))
    assert micros == cost(USED, RATES) + 5_000


def test_a_machine_that_lives_has_its_line_until_now() -> None:
    events = events_of("run-1", NOON_S - 60, (METERED, None), outcome="")
    (first, *_) = stored(events, NOON_S)
    assert (first.from_s, first.to_s) == (NOON_S - 60, NOON_S)
    assert stored(events)[0].to_s == NOON_S - 60  # nobody says what time it is


def test_it_is_saved_on_machines_alone() -> None:
    made = run_cost("run-1", NOON_S, (METERED, HOUR_S), ways=(METERED, replace(WAY, rates=RATES)))
    line = report([made]).total
    store = sum(p.micros for p in made.postings if p.kind == STORE)
    assert line.store == store == made.micros - 1_200_000
    assert (line.on_demand, line.saved) == (3_600_000 + store, 2_400_000)
    assert line.seconds == HOUR_S


def test_without_a_price_on_demand_the_store_alone_is_not_one() -> None:
    moving = replace(METERED, start_cost=7_000)
    made = run_cost("run-1", NOON_S, (moving, HOUR_S), ways=(moving,))
    line = report([made]).total
    assert line.store > 0
    assert (line.on_demand, line.saved) == (None, None)


def test_groups() -> None:
    made = run_cost("run-1", NOON_S, (METERED, HOUR_S))
    found = {line.what: line.micros for line in report([made], "machine").lines}
    assert found == {
        "run-1-1-m0": 1_200_000 + cost(USED, RATES),
        "kept, leg 1 of run-1": 8_265,
    }


def test_rows_of_focus() -> None:
    made = cost_of("run-1", events_of("run-1", NOON_S, (METERED, HOUR_S)))
    rows = {
        row["ChargeDescription"].partition(" for leg")[0]: row for row in focus.rows(made.postings)
    }
    moved = rows["traffic to the store's region"]
    assert (moved["ServiceCategory"], moved["PricingUnit"]) == ("Networking", "GB")
    assert (moved["ContractedUnitPrice"], moved["BilledCost"]) == ("0.01", "0.931323")
    assert Decimal(moved["PricingQuantity"]) == round(Decimal(10**11) / GB, 12)
    asked = rows["GET and HEAD requests"]
    assert (asked["ServiceCategory"], asked["ServiceSubcategory"]) == ("Storage", "Object Storage")
    assert (asked["ConsumedQuantity"], asked["ConsumedUnit"]) == ("777", "Requests")
    assert asked["ListUnitPrice"] == "0.0000004"
    assert rows["objects of the run"]["PricingUnit"] == "GB-Months"
    assert {rows[name]["PricingCategory"] for name in rows} == {"Dynamic", "Standard"}


def test_what_is_left_costs_by_the_month_and_not_in_the_run() -> None:
    made = run_cost("run-1", NOON_S, (METERED, HOUR_S))
    assert (made.kept, made.kept_month) == (10**9, 21_421)
    assert report([made]).total.kept_month == 21_421
    assert run_cost("run-1", NOON_S, (SPOT, HOUR_S)).kept == 0
    assert run_cost("run-1", NOON_S, (METERED, None), outcome="").kept_month == 0
