from __future__ import annotations

import gc
import gzip
import tracemalloc
import zlib
from pathlib import Path

import pytest

from tests.local_http import LocalHttp, Reply
from tests.tls import trusted
from tradewind.base.errors import SourceFailed
from tradewind.catalog.refresh.http import Http

HTTP = Http(retries=2, backoff_s=0.001)


def test_passing_faults_are_retried_and_lasting_ones_told(server: LocalHttp) -> None:
    server.on("/flaky", Reply(status=500), Reply(status=429), Reply({"fine": 1}))
    assert HTTP.get_json(f"{server.url}/flaky") == {"fine": 1}
    server.on("/down", Reply("be back soon", status=503))
    with pytest.raises(SourceFailed, match=r"/down: HTTP 503 .*be back soon") as caught:
        HTTP.get_json(f"{server.url}/down", query={"key": "secret"})
    assert caught.value.status == 503
    assert len(server.requests) == 6


def test_what_the_server_says_of_waiting_is_heard(server: LocalHttp) -> None:
    server.on("/busy", Reply(status=429, headers={"Retry-After": "0"}), Reply([1]))
    assert HTTP.get_json(f"{server.url}/busy") == [1]


def test_half_a_document_is_asked_for_again(server: LocalHttp) -> None:
    server.on("/cut", Reply({"whole": 1}, cut=4), Reply(b'{"whole":'), Reply({"whole": 1}))
    assert HTTP.get_json(f"{server.url}/cut") == {"whole": 1}


def test_posting_sends_json(server: LocalHttp) -> None:
    server.on("/graphql", lambda request: {"got": request.json})
    assert HTTP.post_json(f"{server.url}/graphql", {"query": "{x}"}) == {"got": {"query": "{x}"}}
    assert server.requests[0].headers["content-type"] == "application/json"


def test_a_query_is_encoded_and_never_shown(server: LocalHttp) -> None:
    server.on("/q", lambda request: request.query)
    assert HTTP.get_json(f"{server.url}/q?a=1", query={"b": "x y&z"}) == {"a": "1", "b": "x y&z"}
    with pytest.raises(SourceFailed) as caught:
        HTTP.get_json(f"{server.url}/none", query={"key": "secret"})
    assert "secret" not in str(caught.value)


def test_lines_come_as_they_arrive(server: LocalHttp) -> None:
    text = "".join(f"line {n} é\n" for n in range(5000))
    server.on("/long", text)
    told: list[tuple[int, int | None]] = []
    lines = list(HTTP.lines(f"{server.url}/long", progress=lambda *at: told.append(at)))
    assert "".join(lines) == text
    assert told[-1] == (len(text.encode()), len(text.encode()))


def test_a_stream_that_breaks_off_is_told(server: LocalHttp) -> None:
    server.on("/long", Reply("line\n" * 1000, cut=2000))
    with pytest.raises(SourceFailed, match="broke off"):
        list(HTTP.lines(f"{server.url}/long"))
    server.on("/bytes", Reply(b"\xff\xfe\xfd\n"))
    with pytest.raises(SourceFailed, match="broke off"):
        list(HTTP.lines(f"{server.url}/bytes"))
    with pytest.raises(SourceFailed, match="HTTP 404"):
        list(HTTP.lines(f"{server.url}/none"))


@pytest.mark.parametrize("cut", [None, 5])
def test_a_stream_that_is_refused_leaves_no_connection_open(
    server: LocalHttp, cut: int | None
) -> None:
    server.on("/none", Reply("nothing here", status=404, cut=cut))

    def refused() -> None:
        try:
            list(Http(retries=0).lines(f"{server.url}/none"))
        except SourceFailed as error:
            kept = error  # and with it this frame, so that only the collector frees them
            assert kept.status == 404

    refused()
    gc.collect()  # warns of a socket that nobody has closed, which fails the test


@pytest.mark.parametrize("header", ["authorization", "x-api-key", "api_key", "x-goog-api-key"])
def test_a_key_does_not_follow_a_redirect_elsewhere(server: LocalHttp, header: str) -> None:
    with LocalHttp() as other:
        other.on("/there", {"got": 1})
        server.on("/here", Reply(status=302, headers={"Location": f"{other.url}/there"}))
        assert HTTP.get_json(f"{server.url}/here", headers={header: "secret"}) == {"got": 1}
        assert header not in other.requests[0].headers


def test_endless_redirects_end(server: LocalHttp) -> None:
    server.on("/loop", Reply(status=302, headers={"Location": "/loop"}))
    with pytest.raises(SourceFailed, match="too many redirects"):
        HTTP.get_json(f"{server.url}/loop")


def test_a_key_with_a_stray_character(server: LocalHttp) -> None:
    server.on("/x", {})
    for key in ("abc\n", "abc…"):
        with pytest.raises(SourceFailed) as caught:
            HTTP.get_json(f"{server.url}/x", headers={"authorization": key})
        assert "stray character" in (caught.value.hint or "")


def test_nobody_there_and_nobody_answering(server: LocalHttp) -> None:
    with pytest.raises(SourceFailed, match="Connection refused"):
        HTTP.get_json("http://127.0.0.1:9/")
    server.on("/slow", Reply({}, delay_s=0.8))
    quick = Http(retries=0, read_timeout_s=0.2)
    with pytest.raises(SourceFailed, match="timed out"):
        quick.get_json(f"{server.url}/slow")


def test_a_proxy_is_used_unless_told_otherwise(
    server: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "direct.invalid,127.0.0.1")
    server.on("/prices", {"by": "proxy"})
    behind = Http(retries=0, proxies={"http": server.url}, connect_timeout_s=1)
    assert behind.get_json("http://prices.invalid/prices") == {"by": "proxy"}
    with pytest.raises(SourceFailed):
        behind.get_json("http://direct.invalid/prices")


MIB = bytes(1 << 20)


def test_an_endless_document_is_cut_at_the_limit(
    server: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tradewind.catalog.refresh.http.LARGEST_JSON", 2 << 20)
    server.on("/endless", Reply(MIB, endless=True))
    with pytest.raises(SourceFailed, match="/endless: the answer is larger than 2 MiB"):
        HTTP.get_json(f"{server.url}/endless")
    assert len(server.requests) == 1


def test_what_unpacks_to_more_than_the_limit_is_not_held(
    server: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 MiB in 256 kB, twice packed."""
    monkeypatch.setattr("tradewind.catalog.refresh.http.LARGEST_JSON", 2 << 20)
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(packed.compress(MIB) for _ in range(256)), packed.flush()])
    server.on("/bomb", Reply(bomb, headers={"content-encoding": "gzip"}))
    server.on("/bombs", Reply(gzip.compress(bomb), headers={"content-encoding": "gzip, gzip"}))
    for path in ("/bomb", "/bombs"):
        tracemalloc.start()
        try:
            with pytest.raises(SourceFailed, match="larger than 2 MiB"):
                HTTP.get_json(server.url + path)
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()


def test_what_is_packed_is_unpacked(server: LocalHttp) -> None:
    packed = gzip.compress(b'{"fine": 1}')
    server.on("/packed", Reply(packed, headers={"content-encoding": "gzip"}))
    assert HTTP.get_json(f"{server.url}/packed") == {"fine": 1}


@pytest.mark.parametrize("status", [404, 500, 302])
def test_endless_answers_that_are_not_used_are_not_read(server: LocalHttp, status: int) -> None:
    """An error is shown by its beginning; one that is asked again, and a redirect, not at all."""
    moved = {"Location": "/fine"} if status == 302 else {}
    server.on("/x", Reply(MIB, status=status, headers=moved, endless=True))
    server.on("/fine", {"fine": 1})
    if status == 302:
        assert HTTP.get_json(f"{server.url}/x") == {"fine": 1}
        return
    with pytest.raises(SourceFailed, match=f"HTTP {status}"):
        HTTP.get_json(f"{server.url}/x")


def test_a_line_without_an_end_is_not_held(
    server: LocalHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/endless", Reply(b"x" * (1 << 20), endless=True))
    with pytest.raises(SourceFailed, match="larger than any price list"):
        list(HTTP.lines(f"{server.url}/endless"))
    monkeypatch.setattr("tradewind.catalog.refresh.http.LARGEST_TEXT", 2 << 20)
    server.on("/lines", Reply(b"x\n" * (1 << 19), endless=True))
    with pytest.raises(SourceFailed, match="larger than any price list"):
        for _ in HTTP.lines(f"{server.url}/lines"):
            pass


def test_one_connection_serves_many_documents(server: LocalHttp) -> None:
    """Read to its end, an answer leaves its connection for the next."""
    server.on("/page", {"fine": 1})
    own = Http(retries=0)
    for _ in range(3):
        own.get_json(f"{server.url}/page")
    (pool,) = (own._pools._direct.pools[key] for key in list(own._pools._direct.pools.keys()))
    assert pool.num_connections == 1


def test_https_does_not_lead_to_plain_http(
    server: LocalHttp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.on("/prices", {"cheap": 1})
    with LocalHttp(trusted(tmp_path, monkeypatch)) as secure:
        secure.on("/fine", {"fine": 1})
        assert HTTP.get_json(f"{secure.url}/fine") == {"fine": 1}
        secure.on("/prices", Reply(status=302, headers={"Location": f"{server.url}/prices"}))
        with pytest.raises(SourceFailed, match="redirects to plain http"):
            HTTP.get_json(f"{secure.url}/prices")
