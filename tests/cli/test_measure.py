"""`tradewind measure` against servers that answer well, and against all others."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.local_http import LocalHttp, Reply, Request

LIGHT = ("--concurrency", "1,2", "--requests", "3", "--lengths", "50:8", "--rate", "200")


def events(*each: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(event)}\n\n" for event in each]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def stream(request: Request) -> Reply:
    """As vLLM streams completions."""
    asked = request.json
    tokens = asked["max_tokens"]
    words = len(asked["prompt"].split())
    texts = [{"choices": [{"text": " so", "finish_reason": None}]} for _ in range(tokens)]
    usage = {"prompt_tokens": 2 * words + 1, "completion_tokens": tokens}
    last = {"choices": [], "usage": usage}
    return Reply(events(*texts, last), headers={"content-type": "text/event-stream"})


def points(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def served(*names: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name} for name in names]}


def test_points_are_shown_and_written_in_the_schema_of_the_estimate(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "own.csv"
    stack = ("--on", "H100-SXM", "--engine", "vllm", "--as", "llama-3.1-8b", "--out", str(out))
    with LocalHttp() as http:
        http.on("/v1/models", served("llama"))
        http.on("/v1/completions", stream)
        found = cli("measure", http.url, *LIGHT, *stack, "--seed", "1")
        assert "2 at once" in found.out
        assert "200/s" in found.out
        sent = [r.json for r in http.requests if r.path.endswith("/completions")]
    prompts = [each["prompt"] for each in sent]
    assert len(set(prompts)) == len(prompts), "no prompt is sent twice"
    assert all(each["ignore_eos"] and each["stream"] for each in sent)
    rows = points(out)
    assert [row["mode"] for row in rows] == ["closed-loop", "closed-loop", "server"]
    assert {float(row["output_len"]) for row in rows} == {8.0}
    assert all(abs(float(row["input_len"]) - 50) <= 2 for row in rows), "two tokens a word"
    assert rows[0]["accelerator"] == "H100-SXM"
    assert all(row["quality"] == "ok" for row in rows)
    question = ("estimate", "--serve", "--model", "llama-3.1-8b", "--on", "H100-SXM", "--json")
    sharp = cli(*question, "--measured", str(out)).json
    assert "sharpened by 3 points" in sharp["band"]
    assert sharp["tpot_ms"] < cli(*question).json["tpot_ms"], "the server here is a faster one"


def test_a_file_that_is_there_grows(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "own.csv"
    few = ("--concurrency", "1", "--rate", "0", "--requests", "2", "--out", str(out))
    with LocalHttp() as http:
        http.on("/v1/models", served("llama"))
        http.on("/v1/completions", stream)
        for _ in range(2):
            cli("measure", http.url, *few)
    assert len(points(out)) == 2


def test_a_server_that_has_only_chat_and_knows_no_fields_but_openais(cli: Cli) -> None:
    def chat(request: Request) -> Reply:
        asked = request.json
        if "ignore_eos" in asked or "max_tokens" in asked:
            return Reply({"error": {"message": "unknown parameter"}}, status=400)
        tokens = asked["max_completion_tokens"]
        first = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
        texts = [{"choices": [{"delta": {"content": "x"}}]} for _ in range(tokens)]
        usage = {"prompt_tokens": 60, "completion_tokens": tokens}
        return Reply(events(first, *texts, {"choices": [], "usage": usage}))

    with LocalHttp() as http:
        http.on("/v1/models", served("gpt"))
        http.on("/v1/completions", Reply({"error": "no such path"}, status=404))
        http.on("/v1/chat/completions", chat)
        found = cli("measure", http.url, *LIGHT, "--json").json
    assert [each["quality"] for each in found["loads"]] == ["ok"] * 3


BODY = b'data: {"choices": [{"text": "a"}]}\n\n'


@pytest.mark.parametrize(
    ("answers", "options", "code", "says"),
    [
        ({"/v1/models": served("a", "b")}, (), 2, "one of a, b"),
        ({"/v1/models": served("a")}, ("--model", "gpt-4"), 3, "it serves a"),
        ({"/v1/models": Reply("<html>", status=404)}, (), 6, "OpenAI-compatible"),
        ({"/v1/models": "<html>hello</html>"}, (), 6, "OpenAI-compatible"),
        ({"/v1/models": Reply({"error": {"message": "no key"}}, status=401)}, (), 5, "--key-env"),
        (
            {"/v1/models": served("a"), "/v1/completions": {"choices": [{"text": "whole"}]}},
            (), 6, "not a stream of events",
        ),
        (
            {"/v1/models": served("a"), "/v1/completions": Reply({"detail": "busy"}, status=503)},
            (), 6, "503: busy",
        ),
        (
            {"/v1/models": served("a"), "/v1/completions": BODY}, (), 6, "cut before its end",
        ),
        (
            {"/v1/models": served("a"), "/v1/completions": Reply(BODY * 50, cut=100)},
            (), 6, "cut",
        ),
        (
            {
                "/v1/models": served("a"),
                "/v1/completions": b'data: {"error": {"message": "out of memory"}}\n\n',
            },
            (), 6, "out of memory",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_server_is_said(
    cli: Cli, answers: dict[str, Any], options: tuple[str, ...], code: int, says: str
) -> None:
    with LocalHttp() as http:
        for path, answer in answers.items():
            http.on(path, answer)
        for path in ("/v1/models", "/v1/completions", "/v1/chat/completions"):
            if path not in answers:
                http.on(path, Reply({"error": "nothing here"}, status=404))
        found = cli("measure", http.url, *LIGHT, *options)
    assert found.code == code
    assert says in found.err
    assert "Traceback" not in found.err


def test_streams_that_are_cut_later_are_counted_and_named(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "own.csv"
    seen = [0]

    def sometimes(request: Request) -> Reply:
        seen[0] += 1
        return Reply(BODY * 3, cut=60) if seen[0] % 3 == 0 else stream(request)

    with LocalHttp() as http:
        http.on("/v1/models", served("a"))
        http.on("/v1/completions", sometimes)
        options = ("--concurrency", "1", "--rate", "0", "--requests", "9", "--out", str(out))
        found = cli("measure", http.url, *options)
    assert "3 requests failed: the stream was cut" in found.err
    (row,) = points(out)
    assert row["quality"].startswith("doubtful: 3 of 9")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("nonsense",), "http://localhost:8000/v1"),
        (("http://127.0.0.1:1", "--lengths", "5"), "512:128"),
        (("http://127.0.0.1:1", "--lengths", "5:1"), "2 tokens or more"),
        (("http://127.0.0.1:1", "--concurrency", "x"), "not a number"),
        (("http://127.0.0.1:1", "--concurrency", "100000"), "up to 512"),
        (("http://127.0.0.1:1", "--rate", "-3"), "requests a second"),
        (("http://127.0.0.1:1", "--engine", "foo"), "sglang"),
        (("http://127.0.0.1:1", "--tp", "2"), "--on"),
    ],
)
def test_bad_options_are_refused_before_anything_is_asked(
    cli: Cli, options: tuple[str, ...], says: str
) -> None:
    found = cli("measure", *options)
    assert found.code == 2
    assert says in found.err


def test_no_server_is_said_with_what_to_look_at(cli: Cli) -> None:
    found = cli("measure", "http://127.0.0.1:1")
    assert found.code == 6
    assert "no server answers at http://127.0.0.1:1/v1" in found.err


def test_a_key_is_sent_and_never_in_clear_to_others(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    with LocalHttp() as http:
        http.on("/v1/models", served("a"))
        http.on("/v1/completions", stream)
        found = cli("measure", http.url, *LIGHT, "--key-env", "MY_KEY")
        assert http.requests[0].headers["authorization"] == "Bearer sk-very-secret"
    assert "sk-very" not in found.out + found.err
    exposed = cli("measure", "http://example.com:8000", "--key-env", "MY_KEY")
    assert exposed.code == 5
    assert "not encrypted" in exposed.err


def test_points_of_another_stack_are_refused(cli: Cli, tmp_path: Path) -> None:
    from tests.estimate.serving.test_rows import row

    path = tmp_path / "own.csv"
    cells = row(model="llama-3.1-8b", accelerator="A100-80GB", engine="sglang")
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(cells))
        table.writeheader()
        table.writerow(cells)
    question = ("estimate", "--serve", "--model", "llama-3.1-8b", "--on", "H100-SXM")
    found = cli(*question, "--measured", str(path))
    assert found.code == 2
    assert "it has sglang on A100-80GB" in found.err
