from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.ledger.making import (
    HOUR_S,
    NOON_S,
    events_of,
    moment,
    names,
    postings_of,
    run_cost,
    run_costs,
)
from tests.lifecycle.builders import SPEC, SPOT, WAY, a_seen, state_of
from tradewind.ledger.budgets import (
    Budget,
    Budgets,
    Standing,
    cap,
    left_for,
    standing,
    standings,
)
from tradewind.ledger.postings import RunCost, cost_of
from tradewind.ledger.report import report
from tradewind.lifecycle.money import exposed, spent
from tradewind.model.timing import GRACE_S, UNATTENDED_S

USD = 10**6
NLP = Budgets(projects={"nlp": Budget(month=100 * USD)})


def nlp(hours: int, run_id: str = "r", start: str = "2026-11-02", **more: Any) -> RunCost:
    return run_cost(run_id, moment(start), (WAY, hours * HOUR_S), project="nlp", **more)


def stands(spent: int, what: str = "stop", month: int = 100 * USD) -> Standing:
    return Standing(
        project="nlp",
        month="2026-11",
        budget=Budget(month=month, what=what),
        spent=spent,
        committed=0,
        resets_s=moment("2026-12-01"),
    )


@pytest.mark.parametrize(
    ("spent", "what", "crossed", "words"),
    [
        (0, "stop", (), "$100.00 left"),
        (49_999_999, "stop", (), "$50.00 left"),
        (50 * USD, "stop", (50,), "more than half is spent; $50.00 left"),
        (
            80 * USD,
            "stop",
            (50, 80),
            "nearly spent; $20.00 left, then nothing more is bought",
        ),
        (80 * USD, "warn", (50, 80), "nearly spent; $20.00 left, then runs continue"),
        (
            100 * USD,
            "stop",
            (50, 80, 100),
            "spent; nothing more is bought before 2026-12-01",
        ),
        (110 * USD, "warn", (50, 80, 100), "over by $10.00; it only warns: runs continue"),
    ],
)
def test_thresholds_and_what_they_mean(
    spent: int, what: str, crossed: tuple[int, ...], words: str
) -> None:
    found = stands(spent, what)
    assert (found.crossed, found.words) == (crossed, words)
    assert found.left == max(100 * USD - spent, 0)
    assert found.share == spent / (100 * USD)


def test_a_budget_of_nothing_is_spent() -> None:
    assert stands(0, month=0).crossed == (50, 80, 100)
    assert stands(0, month=0).share == 0
    assert stands(1, month=0).share == 1


def test_only_this_month_counts() -> None:
    found = standing(
        postings_of(nlp(10, start="2026-10-31T18:00"), nlp(5, "r2")), NLP, "nlp", NOON_S
    )
    assert found is not None
    assert (found.month, found.spent) == ("2026-11", (4 + 5) * 3_600_000)
    assert found.committed == 0


def test_the_default_is_for_each_other_project() -> None:
    budgets = Budgets(
        projects={"nlp": Budget(month=100 * USD), "idle": Budget(month=1)},
        default=Budget(month=USD, what="warn"),
    )
    made = [
        nlp(1),
        run_cost("r2", moment("2026-11-02"), (WAY, HOUR_S), project="other"),
        run_cost("r3", moment("2026-11-02"), (WAY, 2 * HOUR_S)),
        run_cost("r4", moment("2026-10-02"), (WAY, HOUR_S), project="old"),
    ]
    found = standings(postings_of(*made), budgets, NOON_S)
    assert [(s.project, s.spent, s.budget.what) for s in found] == [
        ("", 7_200_000, "warn"),
        ("idle", 0, "stop"),
        ("nlp", 3_600_000, "stop"),
        ("other", 3_600_000, "warn"),
    ]
    assert [s.project for s in standings(postings_of(*made), NLP, NOON_S)] == ["nlp"]
    assert standing([], NLP, "other", NOON_S) is None
    assert not Budgets()
    assert NLP


@given(run_costs(), names)
def test_what_is_spent_is_what_the_month_s_report_says(made: list[RunCost], project: str) -> None:
    budgets = Budgets(default=Budget(month=1))
    found = standing(postings_of(*made), budgets, project, NOON_S)
    start, end = moment("2026-11-01"), moment("2026-12-01")
    lines = {line.what: line.micros for line in report(made, "project", start, end).lines}
    assert found is not None
    assert found.spent == lines.get(project or "(none)", 0)


def test_open_machines_commit_what_they_can_still_come_to() -> None:
    run = run_cost("r", NOON_S - HOUR_S, (WAY, None), outcome="", project="nlp")
    found = standing(run.postings, NLP, "nlp", NOON_S)
    assert found is not None
    assert found.spent == 3_600_000
    assert found.committed == (9 * HOUR_S + 120) * 1000  # stops after 10 h, billed a little longer
    late = moment("2026-11-30T23:00")
    run = run_cost("r", late - HOUR_S, (WAY, None), outcome="", project="nlp", now_s=late)
    found = standing(run.postings, NLP, "nlp", late)
    assert found is not None
    assert found.committed == (9 * HOUR_S + 120) * 1000  # bought this month, or limited by none


ENDLESS = replace(WAY, facts=replace(WAY.facts, ends="never"))


def test_machines_that_are_off_and_paid_for_are_counted_until_they_are_ended() -> None:
    run = run_cost("r", NOON_S - HOUR_S, (ENDLESS, None), outcome="", project="nlp")
    found = standing(run.postings, NLP, "nlp", NOON_S)
    assert found is not None
    assert found.committed == (9 * HOUR_S + 120 + UNATTENDED_S) * 1000
    run = run_cost("r", NOON_S - 20 * HOUR_S, (ENDLESS, None), outcome="", project="nlp")
    found = standing(run.postings, NLP, "nlp", NOON_S)
    assert found is not None
    assert found.spent == 20 * 3_600_000  # though its hard stop was ten hours ago
    assert found.committed == (UNATTENDED_S + GRACE_S) * 1000
    run = run_cost("r", NOON_S - 20 * HOUR_S, (ENDLESS, 12 * HOUR_S), outcome="", project="nlp")
    found = standing(run.postings, NLP, "nlp", NOON_S)
    assert found is not None
    assert (found.spent, found.committed) == (12 * 3_600_000, 0)


@given(st.integers(0, 14 * 24), st.integers(0, HOUR_S), st.integers(1, 3))
def test_what_is_committed_is_not_less_than_runs_reckon_with(
    hours: int, seconds: int, nodes: int
) -> None:
    """Whoever counts, what may still come of machines that do not end their bill is the same."""
    start_s = NOON_S - hours * HOUR_S - seconds
    way = replace(ENDLESS, nodes=nodes)
    events = events_of("r", start_s, (way, None), outcome="", nodes=nodes, project="nlp")
    posted = cost_of("r", events, NOON_S).postings
    found = standing(posted, NLP, "nlp", NOON_S)
    assert found is not None
    state, seen = state_of(*events), a_seen(clock_s=NOON_S)
    assert found.spent == spent(state, seen)
    assert found.spent + found.committed >= exposed(state, seen)


def test_what_is_left_for_a_run() -> None:
    spec = replace(SPEC, project="nlp")
    others = postings_of(nlp(10, "r1"), run_cost("x", NOON_S - 60, (SPOT, 60), project="x"))
    assert left_for("me", spec, others, NLP, NOON_S) == 64 * USD
    assert left_for("r1", spec, others, NLP, NOON_S) == 100 * USD
    assert left_for("me", replace(spec, project="x"), others, NLP, NOON_S) is None
    assert left_for("me", spec, postings_of(nlp(30, "r1")), NLP, NOON_S) == 0
    warn = Budgets(projects={"nlp": Budget(month=1, what="warn")})
    assert left_for("me", spec, others, warn, NOON_S) is None


def test_a_run_may_come_to_what_others_leave() -> None:
    spec = replace(SPEC, project="nlp")
    others = postings_of(nlp(10, "other"))
    assert cap("me", spec, others, NLP, NOON_S) == 64 * USD
    assert cap("me", spec, [], Budgets(), NOON_S) is None


def test_what_a_run_spent_before_is_not_this_month_s() -> None:
    spec = replace(SPEC, project="nlp")
    mine = nlp(10, "me", start="2026-10-31T18:00")  # 6 hours of them in October
    most = cap("me", spec, mine.postings, NLP, NOON_S)
    assert most == 100 * USD + 6 * 3_600_000
