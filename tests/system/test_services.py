"""Services for real: HAProxy, machines that are processes, engines; what users see and pay."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import json

import tradewind
from tests import llama_server
from tests.eventually import eventually
from tests.served import engine
from tradewind.api.fronts import folder
from tradewind.api.services import Service
from tradewind.base.errors import NoAccess
from tradewind.cli import app
from tradewind.front.runner import Runner
from tradewind.providers.local.provider import LocalProvider
from tradewind.supervisor.meeting import free_port

pytestmark = pytest.mark.system

SECRET = "the-secret-key-of-alice-0123456789"
FILE = """\
name: chat
serve: {{model: llama-3.1-8b, rate: 1/s, input: 200, output: 50, ttft: 1s, warm: {warm}}}
run:
  command: {command}
service:
  port: {port}
  at_once: 4
  drain: 20s
  up_within: 60s
{more}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "home"
    monkeypatch.setenv("TRADEWIND_HOME", str(place))
    monkeypatch.delenv("TRADEWIND_STORE", raising=False)
    monkeypatch.setenv("ALICE_KEY", SECRET)
    yield place
    for each in (place / "local" / "services").glob("*.json"):
        Runner(folder(each.stem)).stop()
    provider = LocalProvider(place, "memory://")
    provider.terminate([each.machine_id for each in provider.list_machines().machines])


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(command: str = "python engine.py $PORT", more: str = "", warm: int = 1) -> Path:
        place = tmp_path / "job"
        place.mkdir(exist_ok=True)
        shutil.copy(engine.__file__, place / "engine.py")
        path = place / "chat.yaml"
        port = free_port()
        path.write_text(FILE.format(command=command, port=port, more=more, warm=warm))
        return path

    return write


def ask(service: Service, body: dict[str, Any], key: str = "") -> tuple[int, bytes]:
    assert service.spec is not None
    link = http.client.HTTPConnection("127.0.0.1", service.spec.front.port, timeout=60)
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        link.request("POST", "/v1/completions", json.encode(body), headers)
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def controllers(service_id: str) -> list[int]:
    """Those in the background."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"watch" in words and service_id.encode() in words and b"tradewind" in words:
            found.append(int(path.parent.name))
    assert found
    return found


def test_up_asked_stopped_and_paid_to_the_last(home: Path, write: Callable[..., Path]) -> None:
    more = "  keys: {alice: 'env:ALICE_KEY'}\n  body: 2KB\n"
    service = tradewind.serve(write(more=more), detach=False)
    assert service.wait_ready(timeout=120)
    assert ask(service, {"prompt": "x"}, SECRET)[0] == 200
    assert ask(service, {"prompt": "x"}, "another-key-0123456789")[0] == 401
    assert ask(service, {"prompt": "x"})[0] == 401
    status, said = ask(service, {"prompt": "x" * 9000}, SECRET)
    assert (status, b"request_too_large" in said) == (413, True)
    assert SECRET not in "".join(
        path.read_text(errors="replace") for path in home.rglob("*") if path.is_file()
    )
    assert service.stop(120)
    bill = service.cost()
    runs = [tradewind.Run(each.run_id) for each in bill.replicas]
    assert bill.micros == sum(run.cost for run in runs) > 0
    assert sum(each.micros for each in bill.keys.values()) == bill.micros
    assert bill.tokens_out >= 10
    assert {run.phase for run in runs} == {"closed"}
    listed = LocalProvider(home, service.store.url).list_machines().machines
    assert [each for each in listed if each.ended_s is None] == []
    assert not Runner(folder(service.id)).running()


def test_kills_of_everything_lose_no_request(home: Path, write: Callable[..., Path]) -> None:
    """A preempted replica, a killed front, a killed controller, a killed engine; under load that a
    client asks again only where it was told so before the first byte."""
    service = tradewind.serve(write(warm=2))
    try:
        assert eventually(lambda: len(service.refresh().ready) >= 2, within_s=180)
        done, lost, over = [0], list[Any](), Event()

        def load() -> None:
            while not over.is_set():
                try:
                    status, said = ask(service, {"prompt": "x", "takes_s": 0.2})
                except OSError:
                    continue  # the front was dead: nobody had taken it
                except http.client.HTTPException as error:
                    lost.append(error)
                    continue
                done[0] += status == 200
                if status != 200 and b"replica" not in said:
                    lost.append((status, said))

        with ThreadPoolExecutor(4) as pool:
            for _ in range(4):
                pool.submit(load)
            try:
                eventually(lambda: done[0] > 10)
                first = service.refresh().ready[0]
                CliRunner().invoke(app.command, ["interrupt", first.run_id])
                number = max(service.state.every.values())
                eventually(
                    lambda: max(service.refresh().state.every.values()) > number, within_s=180
                )
                eventually(lambda: len(service.refresh().ready) >= 2, within_s=180)
                had = done[0]
                eventually(lambda: done[0] > had + 10)
                for each in controllers(service.id):
                    os.kill(each, signal.SIGKILL)
                service.detach()
                front = Runner(folder(service.id))
                pid = front._master()
                assert pid is not None
                os.kill(pid, signal.SIGKILL)
                eventually(lambda: front._master() not in (None, pid), within_s=120)
                eventually(lambda: len(service.refresh().ready) >= 2, within_s=180)
                had = done[0]
                eventually(lambda: done[0] > had + 10)
            finally:
                over.set()
        assert lost == []
    finally:
        assert service.stop(180)
    listed = LocalProvider(home, service.store.url).list_machines().machines
    assert [each for each in listed if each.ended_s is None] == []


@pytest.mark.long
def test_an_engine_that_crashes_at_start_shows_its_last_lines(
    home: Path, write: Callable[..., Path]
) -> None:
    path = write("echo loading; echo out of memory >&2; exit 3")
    done = subprocess.run(
        [sys.executable, "-m", "tradewind", "serve", str(path), "--local", "--yes"],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "| out of memory" in done.stdout
    assert "exit code 3" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert home.exists()


def test_a_port_that_is_taken_is_said_before_anything_is_recorded(
    home: Path, write: Callable[..., Path]
) -> None:
    import socket

    path = write()
    port = int(path.read_text().split("port: ")[1].split()[0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(NoAccess, match=str(port)):
            tradewind.serve(path)
    assert not list(home.rglob("services/*"))


@pytest.mark.long
def test_a_real_engine_behind_a_real_front(home: Path, write: Callable[..., Path]) -> None:
    path = write("sleep 1000000 | python llama_server.py . $PORT 4")
    shutil.copy(llama_server.__file__, path.parent)
    service = tradewind.serve(path, detach=False)
    assert service.wait_ready(timeout=300)
    status, said = ask(service, {"prompt": "hello", "max_tokens": 8})
    assert status == 200
    assert json.decode(said)["usage"]["completion_tokens"] == 8
    assert service.stop(180)
    assert home.exists()
