from __future__ import annotations

import pytest

from tradewind.measure import figures
from tradewind.measure.figures import Load
from tradewind.measure.loads import Sent
from tradewind.measure.prompts import fitted
from tradewind.measure.server import Reply


def reply(due: float, first: float, each: float, tokens: int, late: float = 0.0) -> Reply:
    moments = [due + first + each * i for i in range(tokens)]
    return Reply(due, due + late, moments, prompt_tokens=100, output_tokens=tokens)


def test_a_closed_loop_counts_tokens_while_all_clients_were_busy() -> None:
    # Two clients, requests of a second each, ten tokens at even distances.
    sent = Sent(0.0, 4.0)
    for client in range(2):
        for turn in range(5):
            sent.replies.append(reply(turn + client * 0.0, 0.05, 0.1, 10))
    found = figures.of(Load(100, 10, clients=2), sent)
    assert found.output_tokens_per_s == pytest.approx(20.0)  # the fifth turn is beyond the window
    assert found.requests_per_s == pytest.approx(2.0)
    assert found.ttft_ms["mean"] == pytest.approx(50.0)
    assert found.tpot_ms["p50"] == pytest.approx(100.0)
    assert found.e2e_ms["p99"] == pytest.approx(950.0)
    row = figures.row(found, {"engine": "vllm"})
    assert (row["mode"], row["concurrency"], row["quality"]) == ("closed-loop", 2, "ok")
    assert float(row["total_tokens_per_s"]) == pytest.approx(220.0)
    assert set(row) <= set(figures.COLUMNS)


def test_an_open_loop_that_keeps_up_answers_as_much_as_it_is_sent() -> None:
    sent = Sent(0.0, 9.5)
    sent.replies = [reply(0.5 * i, 0.2, 0.05, 21) for i in range(20)]
    found = figures.of(Load(100, 21, rate=2.0), sent)
    assert found.requests_per_s == pytest.approx(2.0, rel=0.06)


def test_latency_counts_from_when_a_request_was_due() -> None:
    sent = Sent(0.0, 1.0, [reply(0.0, 0.5, 0.1, 5, late=0.4)])
    found = figures.of(Load(100, 5, rate=1.0), sent)
    assert found.ttft_ms["p50"] == pytest.approx(500.0)
    assert found.late_ms == pytest.approx(400.0)


def test_events_of_several_tokens_count_as_the_server_says() -> None:
    sent = Sent(0.0, 10.0, [Reply(0.0, 0.0, [1.0, 2.0, 3.0], 50, 9)])
    found = figures.of(Load(50, 9, clients=1), sent)
    assert found.output_tokens_per_s == pytest.approx(0.9)
    assert found.tpot_ms["mean"] == pytest.approx(250.0)


def test_failed_requests_make_a_row_doubtful_and_are_named() -> None:
    sent = Sent(0.0, 1.0, [reply(0.0, 0.1, 0.1, 5), Reply(0.0, 0.0, error="500: oops")])
    row = figures.row(figures.of(Load(100, 5, clients=2), sent), {})
    assert row["quality"] == "doubtful: 1 of 2 requests failed"
    assert row["notes"] == "1× 500: oops"
    nothing = figures.of(Load(100, 5, clients=2), Sent(0.0, 1.0, [Reply(0, 0, error="x")]))
    assert figures.row(nothing, {})["quality"] == "failed"


def test_words_for_so_many_tokens_follow_from_two_prompts() -> None:
    prompts = fitted((40, 70), (120, 190))  # a token and a half a word, ten of a template
    from tradewind.base import clock

    assert len(prompts.of(310, clock.generator(1)).split()) == 200
    assert prompts.of(310, clock.generator(1)) == prompts.of(310, clock.generator(1))
