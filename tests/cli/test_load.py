"""`tradewind load`: requests when they are due, whatever the server does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_measure import served, stream
from tests.local_http import LocalHttp, Reply, Request

SHORT = ("--rate", "40", "--duration", "1s", "--lengths", "30:6", "--seed", "1")


def ready(http: LocalHttp) -> None:
    http.on("/v1/models", served("llama"))
    http.on("/v1/completions", stream)


def test_percentiles_and_goodput(cli: Cli) -> None:
    with LocalHttp() as http:
        ready(http)
        found = cli("load", http.url, *SHORT, "--ttft", "60s", "--json").json
        text = cli("load", http.url, *SHORT, "--ttft", "60s", "--tpot", "1us").out
    assert found["requests"] == found["sent"] == found["good"]
    assert found["errors"] == {}
    assert found["attainment"] == 1.0
    assert found["targets_ms"] == {"ttft": 60000.0, "tpot": None, "e2e": None}
    assert set(found["ttft_ms"]) == set(found["e2e_ms"]) == {"mean", "p50", "p90", "p99"}
    assert found["output_tokens"] == 6
    assert "p99" in text
    assert "within all targets" in text


def test_arrivals_do_not_wait_for_answers(cli: Cli) -> None:
    """The server answers none until it has all of them."""
    together, seen = threading.Event(), [0]
    lock = threading.Lock()

    def last_opens(request: Request) -> Reply:
        if request.json["max_tokens"] == 6:
            with lock:
                seen[0] += 1
                if seen[0] == 20:
                    together.set()
            assert together.wait(60), "the load waits for answers"
        return stream(request)

    with LocalHttp() as http:
        http.on("/v1/models", served("llama"))
        http.on("/v1/completions", last_opens)
        options = ("--rate", "20", "--duration", "1s", "--arrivals", "constant")
        found = cli("load", http.url, *options, "--lengths", "30:6", "--json").json
    assert (found["requests"], found["sent"], found["errors"]) == (20, 20, {})


def test_a_trace_gives_arrivals_and_lengths(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = "".join(f"{1000 + 10 * n},{20 + 10 * n},{3 + n}\n" for n in range(5))
    path.write_text("t_s,input_tokens,output_tokens\n" + rows)
    with LocalHttp() as http:
        ready(http)
        found = cli("load", http.url, "--trace", str(path), "--rate", "20", "--json").json
        asked = sorted(r.json["max_tokens"] for r in http.requests if r.body)
    assert asked[2:] == [3, 4, 5, 6, 7], "after two that find out how to ask"
    assert found["e2e_ms"]["p99"] < 60_000, "the trace's 40 s are pressed into a fifth of one"
    assert found["requests"] == 5


def test_errors_are_counted_by_kind_and_meet_no_target(cli: Cli) -> None:
    seen = [0]

    def sometimes(request: Request) -> Reply:
        seen[0] += 1
        if seen[0] > 2 and seen[0] % 2:
            return Reply({"error": {"message": "no room"}}, status=503)
        return stream(request)

    with LocalHttp() as http:
        http.on("/v1/models", served("llama"))
        http.on("/v1/completions", sometimes)
        options = ("--rate", "20", "--duration", "1s", "--arrivals", "constant")
        found = cli("load", http.url, *options, "--lengths", "30:6", "--json").json
        seen[0] = 0
        text = cli("load", http.url, *options, "--lengths", "30:6")
    assert found["errors"] == {"503: no room": 10}
    assert found["attainment"] == 0.5
    assert found["goodput_requests_per_s"] == 10
    assert "10 requests failed: 503: no room" in text.err


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--rate", "0"), 2, "0.001"),
        (("--rate", "9999", "--duration", "2d"), 2, "a shorter --duration"),
        (("--duration", "soon"), 2, "length of time"),
        (("--duration", "0s"), 2, "less than a second"),
        (("--ttft", "fast"), 2, "500ms"),
        (("--lengths", "12"), 2, "512:128"),
        (("--trace", "/nonexistent.csv"), 5, "/nonexistent.csv"),
        ((), 6, "no server answers"),
    ],
)
def test_bad_input_is_said(cli: Cli, options: tuple[str, ...], code: int, says: str) -> None:
    found = cli("load", "http://127.0.0.1:1", *options)
    assert found.code == code
    assert says in found.err
    assert "Traceback" not in found.err


def test_traces_that_are_none(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    for text, says in (("a,b\n1,2\n", "no column t_s"), ("t_s,input_tokens,output_tokens\n", "no")):
        path.write_text(text)
        found = cli("load", "http://127.0.0.1:1", "--trace", str(path))
        assert found.code == 4
        assert says in found.err


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    with LocalHttp() as http:
        ready(http)
        found = cli("load", http.url, *SHORT, "--key-env", "MY_KEY")
        assert {r.headers.get("authorization") for r in http.requests} == {"Bearer sk-very-secret"}
    assert "sk-very" not in found.out + found.err
