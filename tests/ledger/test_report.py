from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.ledger.making import HOUR_S, NOON_S, moment, postings_of, run_cost, run_costs
from tests.lifecycle.builders import SPOT, WAY, simulated
from tradewind.base.errors import InvalidValue
from tradewind.ledger.periods import between, by_day, day_name, month_name, next_month
from tradewind.ledger.postings import RunCost, cost_of
from tradewind.ledger.report import GROUPINGS, Line, Report, check_by, report

BY = [by for by in GROUPINGS if by != "tag:NAME"] + ["tag:team", "tag:none"]


def summed(made: Report) -> tuple[int, int, int, int, int]:
    return totals(*made.lines)


def totals(*lines: Line) -> tuple[int, int, int, int, int]:
    return (
        sum(line.micros for line in lines),
        sum(line.seconds for line in lines),
        sum(line.estimated for line in lines),
        sum(line.on_demand or 0 for line in lines),
        sum(line.saved or 0 for line in lines),
    )


@given(run_costs(), st.sampled_from(BY))
def test_whatever_it_is_grouped_by_it_sums_up_to_the_total(made: list[RunCost], by: str) -> None:
    found = report(made, by)
    assert summed(found) == totals(found.total)
    assert found.total.micros == sum(a.micros for a in made)
    assert len({line.what for line in found.lines}) == len(found.lines)


@given(
    run_costs(),
    st.sampled_from(BY),
    st.lists(st.integers(NOON_S - 50 * 86_400, NOON_S + 10 * 86_400), max_size=4),
)
def test_periods_sum_up_to_the_whole(made: list[RunCost], by: str, cuts: list[int]) -> None:
    ends = [None, *sorted(set(cuts)), None]
    parts = [report(made, by, since_s, until_s) for since_s, until_s in pairwise(ends)]
    for part in parts:
        assert summed(part) == totals(part.total)
    assert totals(*(part.total for part in parts)) == totals(report(made, by).total)


@given(run_costs())
def test_a_posting_is_its_days(made: list[RunCost]) -> None:
    for posting in postings_of(*made):
        days = list(by_day(posting))
        assert days[0].from_s == posting.from_s
        assert days[-1].to_s == posting.to_s
        assert sum(day.micros for day in days) == posting.micros
        assert sum(day.paid_s for day in days) == posting.paid_s
        assert all(day.micros >= 0 for day in days)
        assert len({day_name(day.from_s) for day in days}) == len(days)
        assert [day.open for day in days[:-1]] == [False] * (len(days) - 1)
        assert days[-1].open == posting.open


@pytest.mark.parametrize("by", BY)
def test_simulated_runs_sum_up(by: str) -> None:
    made = [
        cost_of(f"run-{seed}", [e for c in simulated(seed) for e in c.events]) for seed in range(30)
    ]
    found = report(made, by)
    assert summed(found) == totals(found.total)
    assert found.total.micros == sum(a.micros for a in made) > 0


def test_months_days_and_their_borders() -> None:
    assert month_name(moment("2026-11-30T23:59:59")) == "2026-11"
    assert next_month(moment("2026-12-31T23:59:59")) == moment("2027-01-01")
    assert next_month(moment("2027-01-31")) == moment("2027-02-01")
    run = run_cost("r", moment("2026-10-31T22:00"), (WAY, 4 * HOUR_S))
    assert [(line.what, line.micros) for line in report([run], "month").lines] == [
        ("2026-10", 7_200_000),
        ("2026-11", 7_200_000),
    ]
    assert [line.what for line in report([run], "day").lines] == ["2026-10-31", "2026-11-01"]
    (line,) = report([run], "run", moment("2026-10-31T23:00"), moment("2026-11-01")).lines
    assert (line.micros, line.seconds) == (3_600_000, 3600)
    assert report([run], "run", moment("2026-11-01T02:00")).lines == ()
    assert report([run], "run", None, moment("2026-10-31T22:00")).lines == ()


def test_what_took_no_time_belongs_to_its_moment() -> None:
    (posting,) = run_cost("r", NOON_S, (WAY, 0)).postings
    assert between(posting, NOON_S, NOON_S + 1) is posting
    assert between(posting, NOON_S - 1, NOON_S) is None
    assert between(posting, NOON_S + 1, None) is None


def test_predicted_against_actual() -> None:
    made = [
        run_cost("r1", NOON_S - 9 * HOUR_S, (WAY, HOUR_S), predicted_cost=3_000_000, project="p"),
        run_cost("r2", NOON_S - 9 * HOUR_S, (WAY, HOUR_S), predicted_cost=5_000_000, project="p"),
        run_cost("r3", NOON_S - 9 * HOUR_S, (WAY, HOUR_S), project="p"),
        run_cost(
            "r4", NOON_S - HOUR_S, (WAY, None), predicted_cost=9_000_000, outcome="", project="q"
        ),
    ]
    lines = {line.what: line for line in report(made, "run").lines}
    assert [(lines[r].predicted, lines[r].over_predicted) for r in ("r1", "r2", "r3", "r4")] == [
        (3_000_000, 600_000),
        (5_000_000, -1_400_000),
        (None, None),
        (9_000_000, None),  # it is not over
    ]
    lines = {line.what: line for line in report(made, "project").lines}
    assert (lines["p"].predicted, lines["p"].over_predicted) == (8_000_000, -800_000)
    assert (lines["q"].predicted, lines["q"].over_predicted) == (9_000_000, None)
    by_market = report(made, "market")
    assert [line.predicted for line in by_market.lines] == [None]
    assert (by_market.total.predicted, by_market.total.over_predicted) == (17_000_000, -800_000)
    cut = report(made, "run", NOON_S - 9 * HOUR_S + 60)
    assert {line.what: line.predicted for line in cut.lines} == {
        "r1": None, "r2": None, "r3": None, "r4": 9_000_000,
    }  # fmt: skip


def test_predicted_hours_stand_beside_elapsed_ones() -> None:
    run = run_cost("r", NOON_S - 9 * HOUR_S, (SPOT, HOUR_S), (WAY, HOUR_S), predicted_hours=1.5)
    (line,) = report([run]).lines
    assert (line.predicted_hours, line.elapsed_hours) == (1.5, 2.0)
    (line,) = report([run], "run", NOON_S - 8 * HOUR_S).lines
    assert (line.predicted_hours, line.elapsed_hours) == (None, None)


def test_what_was_saved() -> None:
    made = [
        run_cost("r1", NOON_S - 9 * HOUR_S, (SPOT, HOUR_S), (WAY, HOUR_S)),
        run_cost("r2", NOON_S - 9 * HOUR_S, (SPOT, HOUR_S), ways=(SPOT,)),
    ]
    found = report(made)
    lines = {line.what: line for line in found.lines}
    assert (lines["r1"].on_demand, lines["r1"].saved) == (7_200_000, 2_400_000)
    assert (lines["r2"].on_demand, lines["r2"].saved) == (None, None)
    assert (found.total.on_demand, found.total.saved) == (7_200_000, 2_400_000)


def test_moved_data_is_in_its_groups() -> None:
    way = replace(SPOT, start_cost=500)
    run = run_cost("r", NOON_S - 9 * HOUR_S, (way, HOUR_S))
    assert {line.what: line.micros for line in report([run], "machine").lines} == {
        "r-1-m0": 1_200_000,
        "data, leg 1 of r": 500,
    }
    (line,) = report([run], "leg").lines
    assert (line.what, line.micros, line.machines, line.estimated) == ("r leg 1", 1_200_500, 1, 500)
    assert line.saved == 2_400_000


def test_open_machines_are_counted() -> None:
    run = run_cost("r", NOON_S - 30 * HOUR_S, (WAY, HOUR_S), (WAY, None), outcome="")
    assert [line.open for line in report([run], "leg").lines] == [1, 0]
    assert [line.open for line in report([run], "day").lines] == [0, 1]
    assert report([run], "run", None, NOON_S - HOUR_S).total.open == 0


def test_runs_that_cost_nothing_show_up_as_runs() -> None:
    run = run_cost("r", NOON_S, outcome="", predicted_cost=7)
    (line,) = report([run]).lines
    assert (line.what, line.name, line.micros, line.predicted) == ("r", "of r", 0, 7)
    assert report([run], "run", 0).lines == ()
    assert report([run], "project").lines == ()
    abandoned = RunCost(run_id="x", spec=None, outcome="", postings=())
    assert report([abandoned]).lines == ()
    assert report([]).total.micros == 0


@pytest.mark.parametrize(
    ("by", "advice"),
    [("proyect", "project"), ("tag", "tag:NAME"), ("tag:", "tag:NAME"), ("xyz", "one of run, leg")],
)
def test_there_is_no_such_grouping(by: str, advice: str) -> None:
    with pytest.raises(InvalidValue, match=advice):
        check_by(by)
    assert check_by("instance-type") == "instance_type"
    assert check_by("tag:my-team") == "tag:my-team"
