"""Real HAProxy before real llama.cpp servers: what reaches clients while replicas come and go."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.eventually import eventually
from tests.local_http import LocalHttp, Reply
from tests.replicas import Replicas
from tradewind.base.errors import BadFile, MissingExtra, NoAccess
from tradewind.front import requests
from tradewind.front.config import HEALTH
from tradewind.front.routes import Affinity, Backend, By, Front, Key, State
from tradewind.front.runner import Runner
from tradewind.front.stats import Health
from tradewind.measure.server import Reply as Measured
from tradewind.measure.server import Server
from tradewind.supervisor.meeting import free_port

pytestmark = pytest.mark.system

SECRET = "the-secret-key-of-alice-0123456789"
MODEL = "random-llama"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture
def replicas(weights: Path) -> Iterator[Replicas]:
    with Replicas(weights) as running:
        yield running


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(**options: Any) -> Running:
        running = Running(tmp_path / f"f{len(started)}", **options)
        started.append(running)
        return running

    yield start
    for running in started:
        running.runner.stop()


class Running:
    def __init__(self, folder: Path, **options: Any) -> None:
        self.front = Front(free_port(), **{"health_every_s": 0.2, **options})
        self.runner = Runner(folder)
        self.runner.start(self.front)

    def take(self, *wanted: Backend) -> None:
        """Until it is as wanted, and what is ready has passed its probe."""
        ready = {each.id for each in wanted if each.state is State.READY}
        there = {each.id for each in wanted}

        def done() -> bool:
            self.runner.apply(wanted)
            seen = self.runner.look().replicas
            up = {replica.id for replica in seen if replica.health is Health.UP}
            return up == ready and {replica.id for replica in seen} <= there

        eventually(done)

    def answers(self) -> dict[str, int]:
        """Requests by replica, as HAProxy counts them."""
        return {replica.id: replica.total for replica in self.runner.look().replicas}

    def server(self) -> Server:
        key = SECRET if self.front.keys else None
        scheme = "https" if self.front.certificate else "http"
        return Server(f"{scheme}://127.0.0.1:{self.front.port}/v1", key, {}, connections=64)

    def ask(self, prompt: str = "the river", tokens: int = 8) -> Measured:
        return self.server().ask(MODEL, prompt, tokens, 0.0)

    def plain(
        self, body: bytes = b"{}", *, key: str | None = None, path: str = "/v1/completions",
        headers: dict[str, str] | None = None, chunked: bool = False,
    ) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
        link = http.client.HTTPConnection("127.0.0.1", self.front.port, timeout=60)
        sent = {"content-type": "application/json", **(headers or {})}
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        try:
            link.request("POST", path, iter([body]) if chunked else body, sent)
            answer = link.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            link.close()

    def log(self, number: int) -> list[requests.Request]:
        eventually(lambda: len(list(self.runner.requests())) >= number)
        return list(self.runner.requests())


class Stream:
    """One streamed answer, read an event at a time; whole where its end was well-formed."""

    def __init__(self, port: int, tokens: int) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        body = {"model": MODEL, "prompt": "the river", "max_tokens": tokens, "stream": True}
        self._link.request(
            "POST", "/v1/completions", json.dumps({**body, "ignore_eos": True}),
            {"content-type": "application/json"},
        )  # fmt: skip
        self._answer = self._link.getresponse()
        assert self._answer.status == 200
        assert self.event().startswith(b"data: ")

    def event(self) -> bytes:
        line = self._answer.readline()
        while line == b"\n":
            line = self._answer.readline()
        return line

    def rest(self) -> bytes:
        try:
            return self._answer.read()
        finally:
            self._link.close()


def error(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body)["error"]
    assert set(found) == {"message", "type", "param", "code"}
    return found


class Load:
    """Clients that ask without pause until they are told to stop."""

    def __init__(self, running: Running, clients: int = 4, tokens: int = 8) -> None:
        self._stop = threading.Event()
        self.replies: list[Measured] = []
        self._server = running.server()
        self._tokens = tokens
        self._pool = ThreadPoolExecutor(clients)
        self._futures: list[Future[None]] = [self._pool.submit(self._work) for _ in range(clients)]

    def _work(self) -> None:
        while not self._stop.is_set():
            self.replies.append(self._server.ask(MODEL, "the river", self._tokens, 0.0))

    def more(self, number: int = 10) -> None:
        """So many answers from now."""
        goal = len(self.replies) + number
        eventually(lambda: len(self.replies) >= goal, within_s=120)

    def end(self) -> list[Measured]:
        self._stop.set()
        for future in self._futures:
            future.result()
        self._pool.shutdown()
        return self.replies


def test_the_configuration_is_one_that_haproxy_takes(front: Callable[..., Running]) -> None:
    """`start` checks each with `haproxy -c`; a warning is a failure here."""
    for affinity in (
        None, Affinity(By.HEADER, "x-session"), Affinity(By.COOKIE, "sid"), Affinity(By.PREFIX),
    ):  # fmt: skip
        running = front(affinity=affinity, keys=(Key.of("alice", SECRET),), threads=1)
        folder = running.runner.folder
        checked = subprocess.run(
            ["/usr/sbin/haproxy", "-c", "-f", str(folder / "front.cfg")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "WARNING" not in checked.stderr + checked.stdout
        assert (folder / "admin.sock").stat().st_mode & 0o777 == 0o600
        running.runner.stop()


def test_streams_pass_as_they_come_and_are_accounted_for(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front(keys=(Key.of("alice", SECRET),))
    running.take(replicas.backend(replicas.start()))
    server = running.server()
    assert server.choose(None) == MODEL
    server.probe(MODEL, "the river")
    reply = server.ask(MODEL, "the river and a boat", 48, 0.0)
    assert reply.error is None
    assert reply.output_tokens == 48
    assert len(set(reply.arrivals_s)) > 20, "events came one by one, not in one piece"
    logged = running.log(3)
    last = max(logged, key=lambda each: each.accepted_s)
    assert (last.key, last.replica, last.status, last.whole) == ("alice", "r1", 200, True)
    assert last.response_ms is not None
    assert last.total_ms > last.response_ms
    assert requests.by_key(logged)["alice"].requests == len(logged)
    for path in running.runner.folder.iterdir():
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_refusals_are_openais_errors(front: Callable[..., Running]) -> None:
    key = Key.of("alice", SECRET, requests_per_s=0.2)
    running = front(keys=(key,), body_bytes=50_000)
    with LocalHttp() as http:
        http.on("/health", "ok")
        http.on("/v1/completions", lambda request: {"length": len(request.body)})
        running.take(Backend("r1", "127.0.0.1", int(http.url.rpartition(":")[2])))
        for wrong in (None, "another-key-0123456789", ""):
            status, headers, body = running.plain(key=wrong)
            assert (status, error(body)["code"]) == (401, "invalid_api_key")
            assert headers["content-type"] == "application/json"
        status, _, body = running.plain(b"x" * 60_000, key=SECRET)
        assert (status, error(body)["code"]) == (413, "request_too_large")
        status, _, body = running.plain(b"x" * 20_000, key=SECRET, chunked=True)
        assert (status, error(body)["code"]) == (413, "length_required")
        # 0.2 a second is 2 in the window; the chunked one was the first of them.
        assert running.plain(b"x" * 49_999, key=SECRET)[0] == 200
        status, headers, body = running.plain(key=SECRET)
        assert (status, error(body)["code"]) == (429, "rate_limit_exceeded")
        assert int(headers["retry-after"]) >= 1
        running.runner.spend(key)
        status, headers, body = running.plain(key=SECRET)
        assert (status, error(body)["code"]) == (429, "insufficient_quota")
        running.runner.allow(key)
        # Another rate, and another key: without a reload.
        worker = running.runner.command("show info")
        more = (Key.of("alice", SECRET), Key.of("bob", "the-secret-key-of-bob-012345"))
        running.runner.start(Front(running.front.port, keys=more, **LIKE))
        assert running.plain(key=SECRET)[0] == 200
        assert running.plain(key="the-secret-key-of-bob-012345")[0] == 200
        assert pid(running.runner.command("show info")) == pid(worker)
        assert all("authorization" not in each.headers for each in http.requests)
        named = [each.headers.get("x-tradewind-key") for each in http.requests]
        assert named[-2:] == ["alice", "bob"]


LIKE: dict[str, Any] = {"health_every_s": 0.2, "body_bytes": 50_000}


def pid(info: str) -> str:
    return next(line for line in info.splitlines() if line.startswith("Pid:"))


def test_a_full_queue_and_a_long_wait_are_503_with_retry_after(
    front: Callable[..., Running],
) -> None:
    running = front(queue=1, queue_wait_s=1.0, hold_s=0.2)
    status, headers, body = running.plain()
    assert (status, error(body)["code"]) == (503, "no_replica")
    assert int(headers["retry-after"]) >= 1
    gate = threading.Event()

    def slow(_: Any) -> Reply:
        gate.wait(60)
        return Reply({"ok": True})

    with LocalHttp() as http, ThreadPoolExecutor(2) as pool:
        http.on("/health", "ok")
        http.on("/v1/completions", slow)
        port = int(http.url.rpartition(":")[2])
        running.take(Backend("r1", "127.0.0.1", port, at_once=1))
        first = pool.submit(running.plain)
        eventually(lambda: running.runner.look().replicas[0].current == 1)
        second = pool.submit(running.plain)
        eventually(lambda: running.runner.look().queued == 1)
        status, headers, body = running.plain()
        assert (status, error(body)["code"]) == (503, "queue_full")
        assert int(headers["retry-after"]) >= 1
        status, headers, body = second.result()  # it has waited for its second
        assert (status, error(body)["code"]) == (503, "no_replica")
        assert "retry-after" in headers
        gate.set()
        assert first.result()[0] == 200


def test_who_can_still_be_in_time_goes_before_who_is_late_anyway(
    front: Callable[..., Running],
) -> None:
    """Forty come in a second and twenty are answered. In turn, nearly all would be late."""
    in_time_s, takes_s = 0.5, 0.2

    def in_time(running: Running) -> int:
        with LocalHttp() as http, ThreadPoolExecutor(120) as pool:
            http.on("/health", "ok")
            http.on("/v1/completions", lambda _: Reply({"ok": True}, delay_s=takes_s))
            port = int(http.url.rpartition(":")[2])
            running.take(Backend("r1", "127.0.0.1", port, at_once=4))
            begun = time.monotonic()
            asked = []
            for n in range(120):
                time.sleep(max(begun + n / 40 - time.monotonic(), 0.0))
                asked.append(pool.submit(running.plain))
            assert {each.result()[0] for each in asked} == {200}  # nobody is forgotten
        return sum((each.queue_ms or 0) <= 1000 * in_time_s + 200 for each in running.log(120))

    in_turn = in_time(front(queue_wait_s=30.0))
    ordered = in_time(front(in_time_s=in_time_s, patient_s=10.0, queue_wait_s=30.0))
    assert ordered > 1.5 * in_turn


def test_with_no_replica_the_first_requests_wait_and_are_served(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(running.ask) for _ in range(3)]
        eventually(lambda: running.runner.look().held == 3)
        running.take(replicas.backend(replicas.start()))
        assert [each.result().error for each in waiting] == [None] * 3
    assert running.runner.look().held == 0
    assert all(each.held_ms > 0 for each in running.log(3))


def test_replicas_that_fail_their_probe_get_nothing(front: Callable[..., Running]) -> None:
    running = front()
    with LocalHttp() as good, LocalHttp() as sick:
        backends = []
        for name, http, status in (("good", good, 200), ("sick", sick, 503)):
            http.on("/health", Reply("so", status=status))
            http.on("/v1/completions", {"from": name})
            backends.append(Backend(name, "127.0.0.1", int(http.url.rpartition(":")[2])))
        running.runner.apply(backends)
        for _ in range(20):  # from the first moment on
            assert running.plain()[0] == 200
        assert not [each for each in sick.requests if each.path != "/health"]
        sick.on("/health", "well")
        running.take(*backends)
        sick.on("/health", Reply("", status=500))
        eventually(lambda: running.runner.look().replicas[1].health is Health.DOWN)
        before = len([each for each in sick.requests if each.path != "/health"])
        for _ in range(20):
            assert running.plain()[0] == 200
        assert len([each for each in sick.requests if each.path != "/health"]) == before


def test_a_replica_whose_answers_fail_is_ejected(front: Callable[..., Running]) -> None:
    """Its probe is well all the while, so it is tried again and again, and never for long."""
    running = front(health_every_s=2.0)
    with LocalHttp() as good, LocalHttp() as bad:
        backends: list[Backend] = []
        for http in (good, bad):
            http.on("/health", "ok")
            backends.append(Backend(f"r{len(backends)}", "127.0.0.1", int(http.url[17:])))
        good.on("/v1/completions", {"ok": True})
        bad.on("/v1/completions", Reply({"error": "broken"}, status=500))
        running.take(*backends)
        for _ in range(60):
            running.plain()
            if running.runner.look().replicas[1].health is Health.DOWN:
                break
        assert running.runner.look().replicas[1].health is Health.DOWN
        assert [running.plain()[0] for _ in range(5)] == [200] * 5


def test_killed_replicas_lose_no_request_that_has_not_begun_to_be_answered(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    names = [replicas.start() for _ in range(3)]
    running.take(*map(replicas.backend, names))
    load = Load(running)
    for name in names[:2]:
        load.more(8)
        replicas.kill(name)
    load.more(8)
    replies = load.end()
    failed = [reply for reply in replies if reply.error is not None]
    # Whoever had a first byte is told by a cut stream; all others were answered elsewhere. The
    # first byte is of the answer's head, which llama.cpp sends before the first token.
    assert all("cut" in (reply.error or "") for reply in failed), [r.error for r in failed]
    assert len(failed) <= 8
    logged = running.log(len(replies))
    assert all(each.status == 200 for each in logged)
    cut = [each for each in logged if not each.whole]
    assert len(cut) == len(failed)
    assert all(each.response_ms is not None and each.replica in names[:2] for each in cut)


def test_an_answer_whose_replica_dies_is_cut_and_never_looks_whole(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    running.take(*(replicas.backend(replicas.start()) for _ in range(2)))
    stream = Stream(running.front.port, 2000)
    (busy,) = [each.id for each in running.runner.look().replicas if each.current]
    replicas.kill(busy)
    with pytest.raises(http.client.IncompleteRead) as cut:
        stream.rest()
    assert b"[DONE]" not in cut.value.partial
    (logged,) = running.log(1)
    assert not logged.whole
    assert logged.retries == 0, "an answer that has begun is not asked for again"
    assert requests.by_key([logged])[""].failed == 1


def test_a_request_that_a_stopped_replica_has_not_answered_is_sent_elsewhere(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    first = replicas.start()
    running.take(replicas.backend(first))
    replicas.signal(first, signal.SIGSTOP)  # takes the request, and says nothing
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(running.ask)
        eventually(lambda: any(each.current for each in running.runner.look().replicas))
        second = replicas.start()
        running.runner.apply([replicas.backend(first), replicas.backend(second)])
        eventually(
            lambda: {e.id: e.health for e in running.runner.look().replicas}[second] is Health.UP
        )
        replicas.kill(first)
        assert waiting.result().error is None
    (logged,) = running.log(1)
    assert (logged.replica, logged.retries) == (second, 1)


def test_draining_finishes_answers_and_begins_none(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    first, second = replicas.start(), replicas.start()
    running.take(replicas.backend(first))
    stream = Stream(running.front.port, 300)
    old, new = replicas.backend(first), replicas.backend(second)
    running.runner.apply([new])  # the first one is not wanted any more
    eventually(lambda: running.runner.look().replicas[-1].health is Health.UP)
    for _ in range(6):
        assert running.ask().error is None
    assert running.answers()[first] == 1
    assert {each.id for each in running.runner.look().replicas} == {first, second}
    assert stream.rest().rstrip().endswith(b"data: [DONE]")
    running.take(new)
    assert set(running.answers()) == {second}
    running.take(Backend(old.id, old.address, old.port, at_once=old.at_once), new)


def test_replicas_come_and_go_under_load_and_the_front_is_reloaded(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    a, b, c = (replicas.backend(replicas.start()) for _ in range(3))
    running.take(a)
    load = Load(running)
    for wanted in ((a, b), (b,), (b, c), (a, c)):
        running.take(*wanted)
        load.more(6)
    running.runner.start(Front(running.front.port, health_every_s=0.2, request_s=20.0))
    load.more(6)
    assert {each.id for each in running.runner.look().replicas} == {a.id, c.id}
    replies = load.end()
    assert [reply.error for reply in replies if reply.error] == []


def test_affinity_sends_what_is_alike_to_one_replica(front: Callable[..., Running]) -> None:
    cases: list[tuple[Affinity, Callable[[Running, int], Any]]] = [
        (
            Affinity(By.HEADER, "x-session"),
            lambda run, n: run.plain(headers={"x-session": f"s{n}"}),
        ),
        (
            Affinity(By.COOKIE, "sid"),
            lambda run, n: run.plain(headers={"cookie": f"a=b; sid=s{n}"}),
        ),
        (
            Affinity(By.PREFIX, bytes=32),
            lambda run, n: run.plain(f"{n}".rjust(32, "p").encode() + b"and then"),
        ),
    ]
    for affinity, ask in cases:
        running = front(affinity=affinity)
        with LocalHttp() as one, LocalHttp() as two:
            backends: list[Backend] = []
            for http in (one, two):
                http.on("/health", "ok")
                http.on("/v1/completions", {"at": len(backends)})
                backends.append(Backend(f"r{len(backends)}", "127.0.0.1", int(http.url[17:])))
            running.take(*backends)
            places = [{ask(running, n)[2] for _ in range(4)} for n in range(12)]
            assert all(len(each) == 1 for each in places), affinity
            assert len(set.union(*places)) == 2, "and not all to the same"
            assert {running.plain()[0] for _ in range(4)} == {200}, "nothing to go by"
        running.runner.stop()


def test_two_fronts_stand_side_by_side(front: Callable[..., Running], replicas: Replicas) -> None:
    both = front(fronts=2), front(fronts=2)
    backend = replicas.backend(replicas.start())
    for running in both:
        running.take(backend)
        assert running.ask().error is None
    both[0].runner.stop()
    assert both[1].ask().error is None


def test_a_front_outlives_who_started_it_and_is_adopted(
    front: Callable[..., Running], replicas: Replicas
) -> None:
    running = front()
    running.take(replicas.backend(replicas.start()))
    master = (running.runner.folder / "haproxy.pid").read_text()
    other = Runner(running.runner.folder)
    other.start(running.front)
    assert (running.runner.folder / "haproxy.pid").read_text() == master
    assert [each.id for each in other.look().replicas] == ["r1"]
    assert running.ask().error is None
    stream = Stream(running.front.port, 60)
    with ThreadPoolExecutor(1) as pool:
        over = pool.submit(other.stop, finish_s=120)
        assert stream.rest().rstrip().endswith(b"data: [DONE]"), "running answers finish"
        over.result()
    assert not other.alive()
    other.stop()  # nothing to stop is nothing wrong


def test_https_and_what_can_be_wrong_with_it(
    front: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    issued = authority.issue_cert("127.0.0.1")
    whole, half = tmp_path / "front.pem", tmp_path / "half.pem"
    issued.private_key_and_cert_chain_pem.write_to_path(whole)
    issued.cert_chain_pems[0].write_to_path(half)
    running = front(certificate=str(whole))
    with LocalHttp() as http:
        http.on("/health", "ok")
        http.on("/v1/models", {"object": "list", "data": [{"id": MODEL}]})
        running.take(Backend("r1", "127.0.0.1", int(http.url[17:])))
        assert running.server().models() == [MODEL]
    for path, kind, says in (
        (tmp_path / "none.pem", NoAccess, "cannot be read"),
        (half, BadFile, "certificate"),
    ):
        with pytest.raises(kind, match=says) as refused:
            Runner(tmp_path / "bad").start(Front(free_port(), certificate=str(path)))
        assert "private key" in (refused.value.hint or "")


def test_a_port_that_is_taken_and_haproxy_that_is_missing(
    front: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = front()
    with pytest.raises(NoAccess, match="the port is taken"):
        Runner(tmp_path / "second").start(Front(running.front.port))
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(MissingExtra, match="HAProxy") as missing:
        Runner(tmp_path / "third").start(Front(free_port()))
    assert "apt install haproxy" in (missing.value.hint or "")


def test_the_fronts_own_health_needs_no_key_and_no_replica(front: Callable[..., Running]) -> None:
    running = front(keys=(Key.of("alice", SECRET),))
    link = http.client.HTTPConnection("127.0.0.1", running.front.port, timeout=30)
    link.request("GET", HEALTH)
    assert link.getresponse().status == 200
    link.close()
