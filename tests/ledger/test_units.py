from __future__ import annotations

from typing import Any

from tests.ledger.making import HOUR_S, NOON_S, events_of
from tests.lifecycle.builders import WAY
from tradewind.ledger.postings import RunCost, cost_of
from tradewind.ledger.units import unit_costs
from tradewind.model import Train
from tradewind.model.event import Ended, Event, LegOver, Progress, Resumed

HOUR = WAY.price


def a_run(run_id: str, over: LegOver, outcome: str = "succeeded", **spec: Any) -> RunCost:
    events = events_of(run_id, NOON_S - 5 * HOUR_S, (WAY, HOUR_S), outcome="", work=1000.0, **spec)
    ended = [Ended(outcome=outcome, reason="r")] if outcome else []
    return cost_of(run_id, [*events, over, *ended], NOON_S)


def test_a_finished_run_has_made_all_of_it_and_another_what_it_has_saved() -> None:
    amounts = {"tokens": 5e9, "epochs": 2.0}
    whole = a_run("a", LegOver(leg=1, cause="finished", reason="r", step=1000, saved=900),
                  amounts=amounts)  # fmt: skip
    half = a_run("b", LegOver(leg=1, cause="lost", reason="r", step=700, saved=500), "failed",
                 amounts=amounts)  # fmt: skip
    found = {(one.what, one.unit): one for one in unit_costs([whole, half], lambda r: r.run_id)}
    assert found["a", "tokens"].done == 5e9
    assert found["a", "tokens"].usd == HOUR / 1e6 / 5000
    assert found["a", "epochs"].usd == HOUR / 1e6 / 2
    assert found["b", "tokens"].usd == HOUR / 1e6 / 2500
    assert found["b", "steps"].done == 500


def test_runs_that_ended_with_nothing_are_in_the_price_of_their_group() -> None:
    good = a_run(
        "a", LegOver(leg=1, cause="finished", reason="r", step=1000), amounts={"tokens": 1e6}
    )
    bad = a_run("b", LegOver(leg=1, cause="lost", reason="r"), "failed", amounts={"tokens": 1e6})
    assert {one.unit: one.usd for one in unit_costs([good, bad], lambda r: "nlp")}["tokens"] == (
        2 * HOUR / 1e6
    )
    assert unit_costs([bad], lambda r: "nlp")[0].usd is None


def test_a_run_that_counts_nothing_and_succeeded_has_done_all() -> None:
    run = a_run("a", LegOver(leg=1, cause="finished", reason="r"), steps=False)
    assert run.done == 1000
    assert unit_costs([run], lambda r: "x") == []


def test_what_was_saved_by_the_way_counts_and_a_resumed_run_goes_on() -> None:
    events = events_of("a", NOON_S - 5 * HOUR_S, (WAY, HOUR_S), outcome="failed", work=1000.0)
    more: list[Event] = [Progress(leg=1, step=400.0, saved=300.0), Resumed(reason="r")]
    cost = cost_of("a", [*events, *more], NOON_S)
    assert cost.done == 300
    assert cost.outcome == ""


def test_requests_are_split_over_what_all_replicas_of_a_service_cost() -> None:
    over = LegOver(leg=1, cause="lost", reason="r")
    replicas = [a_run(f"r{n}", over, tags={"service": "chat"}, steps=False) for n in (1, 2)]
    (one,) = unit_costs(replicas, lambda r: r.run_id, [("chat", 8000.0), ("gone", 5.0)])
    assert (one.what, one.usd, one.runs) == ("chat", 2 * HOUR / 1e6 / 8, 2)


def test_what_a_training_comes_to() -> None:
    text = Train(model="llama-3.1-8b", tokens=10**9, sequence=8192, global_batch=512)
    assert text.amounts == {"tokens": 1e9}
    images = Train(model="resnet-50", epochs=3, dataset_samples=1000, global_batch=10)
    assert images.amounts == {"samples": 3000.0, "epochs": 3}
