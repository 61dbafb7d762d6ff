"""The job of a replica's machine: a real engine, from its start to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec import json

from tests.eventually import eventually
from tests.served import engine as engine_script
from tradewind.model.service import EngineSpec
from tradewind.model.serving import Serving
from tradewind.supervisor import enginefigures
from tradewind.supervisor.engine import TELLS, VARIABLE, Engine

ENGINE = f"{sys.executable} {engine_script.__file__} $PORT"


class Running:
    def __init__(self, folder: Path, command: str, **given: Any) -> None:
        self.folder = folder
        self.tells, self.log = folder / "serving.json", folder / "log"
        spec = EngineSpec(job={"engine": command}, **given)
        env = {
            **os.environ,
            VARIABLE: json.encode(spec).decode(),
            TELLS: str(self.tells),
            "TRADEWIND_SAVE": str(folder / "save"),
            "TRADEWIND_PROGRESS": str(folder / "progress.json"),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tradewind.supervisor.engine"],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def said(self) -> Serving | None:
        try:
            return json.decode(self.tells.read_bytes(), type=Serving)
        except FileNotFoundError:
            return None

    def is_in(self, state: str) -> bool:
        said = self.said()
        return said is not None and said.state == state

    def until(self, state: str) -> Serving:
        eventually(lambda: self.is_in(state) or self.process.poll() is not None)
        said = self.said()
        assert said is not None
        assert said.state == state, self.log.read_text()
        return said

    def drain(self, within_s: float) -> None:
        (self.folder / "save").write_bytes(json.encode({"within_s": within_s}))
        self.process.send_signal(signal.SIGTERM)

    def ask(self, after: str) -> str:
        """What it answers once that file is there."""
        said = self.said()
        assert said is not None
        request = urllib.request.Request(
            f"http://127.0.0.1:{said.port}/v1/completions",
            json.encode({"prompt": "x", "after": after}),
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    running: list[Running] = []

    def begin(command: str = ENGINE, **given: Any) -> Running:
        running.append(Running(tmp_path, command, **given))
        return running[-1]

    yield begin
    for each in running:
        each.process.terminate()
        each.process.wait(60)


def test_it_is_ready_when_its_health_check_passes_and_it_is_warm(start: Any) -> None:
    running = start(warm_up='{"prompt": "x"}')
    said = running.until("ready")
    assert said.port
    assert said.answered_s > 0
    assert said.warm_s > 0
    eventually(lambda: (found := running.said()) is not None and found.tokens_out == 10)


@pytest.mark.slow
def test_what_it_answers_is_finished_before_it_ends(start: Any, tmp_path: Path) -> None:
    running = start()
    running.until("ready")
    answers: list[str] = []
    asking = Thread(target=lambda: answers.append(running.ask(after=str(tmp_path / "go"))))
    asking.start()
    eventually(lambda: (found := running.said()) is not None and found.running == 1)
    running.drain(60)
    running.until("draining")
    (tmp_path / "go").touch()
    assert running.process.wait(60) == 0
    asking.join(60)
    assert answers == ['{"text": "hello"}']


@pytest.mark.parametrize(("given_s", "answers_s"), [(60, 55), (5, 4), (1, 0.8), (900, 120)])
def test_most_of_a_notice_is_for_answers(tmp_path: Path, given_s: float, answers_s: float) -> None:
    """What the supervisor gives has its own margin already."""
    save = tmp_path / "save"
    save.write_bytes(json.encode({"within_s": given_s}))
    spec = EngineSpec(job={"engine": "true"}, drain_s=120)
    made = Engine(spec, {TELLS: str(tmp_path / "serving.json"), "TRADEWIND_SAVE": str(save)})
    assert made.within_s() == pytest.approx(answers_s)


def test_an_engine_that_ends_by_itself_has_failed(start: Any) -> None:
    running = start("echo no memory; exit 3")
    assert running.process.wait(60) == 3
    said = running.log.read_text()
    assert "no memory" in said
    assert "the engine ended by itself, with exit code 3" in said
    assert start("true").process.wait(60) == 1  # no code is a good one


def test_a_health_check_that_never_passes_ends_it(start: Any) -> None:
    running = start(health="/nowhere", up_within_s=1)
    assert running.process.wait(60) == 1
    assert "GET /nowhere at port" in running.log.read_text()
    assert "did not pass within 1 s" in running.log.read_text()


def test_a_warm_up_that_fails_ends_it(start: Any) -> None:
    running = start(warm_up="{}", warm_path="/v1/completions", health="/health")
    running.until("ready")
    bad = start(f"{sys.executable} -m http.server --bind 127.0.0.1 $PORT", health="/", warm_up="{}")
    assert bad.process.wait(60) == 1
    assert "warming up was answered with 501" in bad.log.read_text()


def test_no_engine_outlives_it(start: Any) -> None:
    running = start()
    said = running.until("ready")
    running.drain(6)
    running.process.wait(60)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{said.port}/health", timeout=5)


def test_metrics_of_engines_are_read_in_our_words() -> None:
    vllm = enginefigures.read(
        '# HELP x\nvllm:num_requests_running{engine="0"} 2\nvllm:num_requests_running{engine="1"}'
        " 3\nvllm:num_requests_waiting 1.0\nvllm:kv_cache_usage_perc 0.25\n"
        "vllm:generation_tokens_total 1e3\nvllm:prompt_tokens_total NaN\nbroken line\n"
    )
    assert (vllm.running, vllm.waiting, vllm.cache, vllm.tokens_out) == (5, 1, 0.25, 1000)
    assert vllm.tokens_in == 0
    llama = enginefigures.read("llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\n")
    assert (llama.running, llama.waiting, llama.cache) == (1, 4, None)
    assert enginefigures.read("").running is None
