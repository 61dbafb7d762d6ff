"""What a machine does first: it takes the kit, from a server that does not always give it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_http import LocalHttp, Reply
from tradewind.model.usage import Usage
from tradewind.providers.boot import first
from tradewind.store import meter

KIT = b"wheels" * 1000
SHA256 = hashlib.sha256(KIT).hexdigest()


CUT, OTHER, GOOD = Reply(KIT, cut=100), Reply(b"another"), Reply(KIT)


def no(status: int) -> Reply:
    return Reply(b"no", status)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHttp]:
    monkeypatch.setattr(first, "PAUSES_S", (0,) * 6)
    with LocalHttp() as running:
        yield running


def _take(server: LocalHttp, *answers: Reply) -> bytes:
    server.on("/kit.tar", *answers)
    link = f"{server.url}/kit.tar"
    taken = first.again("the kit", lambda: first.fetch_kit(link, SHA256))
    assert isinstance(taken, bytes)
    return taken


@pytest.mark.parametrize(
    "answers", [(CUT,), (OTHER,), (no(403),) * 2, (no(400),), (no(503),) * 5, (no(404), CUT, OTHER)]
)
def test_it_asks_again(server: LocalHttp, answers: tuple[Reply, ...]) -> None:
    assert _take(server, *answers, GOOD) == KIT
    assert len(server.requests) == len(answers) + 1


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((no(403),) * 3, "the kit: HTTP Error 403"),
        ((no(404), CUT, no(404), no(404)), "the kit: HTTP Error 404"),
        ((no(503),) * 7, "the kit: HTTP Error 503"),
        ((OTHER,) * 7, "the kit: it is not what it should be: its hash is"),
    ],
)
def test_it_gives_up(server: LocalHttp, answers: tuple[Reply, ...], words: str) -> None:
    with pytest.raises(SystemExit, match=words):
        _take(server, *answers)
    assert len(server.requests) == len(answers)


def test_all_that_it_read_is_counted(server: LocalHttp, tmp_path: Path) -> None:
    """The kit and the pass: the store charges for both."""
    text = json.dumps({"for_s": 3600}).encode()
    written = {"Last-Modified": "Mon, 05 Jan 2026 13:00:00 GMT"}
    server.on("/pass", Reply(text, headers=written))
    size = first.take_pass(f"{server.url}/pass", tmp_path / "pass.json")
    first.count(tmp_path / "used", "s3://runs/team", len(KIT), size)
    read = Usage(reads=2, bytes_out=len(KIT) + len(text))
    assert meter.total(tmp_path / "used", "runs") == read
