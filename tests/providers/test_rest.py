"""Clouds by plain HTTP: what is asked again, what is sent once, and what each failure means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from msgspec import Struct

from tests.local_http import LocalHttp, Reply
from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.rest import Pace, Rest, Row, Said, Table, basic, bearer

KEY = "secret-of-mine"


def reads(body: bytes) -> Said:
    try:
        error = json.loads(body)["error"]
        return Said(error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return Said("", "")


TABLE = Table(
    codes={"sold-out": Row("no_capacity", "elsewhere"), "odd": Row("unknown")},
    reads=reads,
    key_hint="a new key",
)


class Answer(Struct):
    data: list[int]
    page_token: str | None = None


@pytest.fixture
def server() -> Iterator[LocalHttp]:
    with LocalHttp() as server:
        yield server


@pytest.fixture
def rest(server: LocalHttp) -> Rest:
    return Rest(server.url, bearer(KEY), TABLE, pause_s=0)


def error(status: int, code: str = "", message: str = "") -> Reply:
    return Reply({"error": {"code": code, "message": message}}, status=status)


def sent(rest: Rest) -> Answer:
    return rest.send("POST", "/launch", {"name": "x"}, Answer, "launching")


def test_a_question_and_a_deed(server: LocalHttp, rest: Rest) -> None:
    server.on("/things", {"data": [1, 2]})
    server.on("/launch", {"data": [3]})
    assert rest.get("/things", Answer, "listing", {"of": "mine"}).data == [1, 2]
    assert sent(rest).data == [3]
    asked, done = server.requests
    assert (asked.query, asked.headers["authorization"]) == ({"of": "mine"}, f"Bearer {KEY}")
    assert (done.method, done.json) == ("POST", {"name": "x"})


def test_a_key_by_name_and_password(server: LocalHttp) -> None:
    server.on("/things", {"data": []})
    Rest(server.url, basic("me"), TABLE).get("/things", Answer, "listing")
    assert server.requests[0].headers["authorization"] == "Basic bWU6"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (error(400, "sold-out"), "no_capacity"),
        (error(409, "never heard of"), "not_allowed"),
        (error(404), "not_found"),
        (error(429, "sold-out"), "throttled"),
        (Reply(b"", status=301, headers={"location": "http://elsewhere.invalid/"}), "not_allowed"),
    ],
)
def test_what_is_refused_was_not_done(
    server: LocalHttp, rest: Rest, reply: Reply, kind: str
) -> None:
    server.on("/launch", reply)
    with pytest.raises(Refused, match="launching: ") as caught:
        sent(rest)
    assert caught.value.kind == kind
    assert len(server.requests) == (3 if kind == "throttled" else 1)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted(server: LocalHttp, rest: Rest, status: int) -> None:
    server.on("/launch", error(status, "?", "who are you?"))
    with pytest.raises(NoAccess, match=r"launching: who are you\?") as caught:
        sent(rest)
    assert caught.value.hint == "a new key"
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        error(500),
        error(503, "busy"),
        error(400, "odd"),
        Reply({"data": [1]}, cut=3),
        Reply(b"<html>"),
        Reply({"data": "many"}),
    ],
)
def test_what_may_have_been_done_is_not_sent_again(
    server: LocalHttp, rest: Rest, reply: Reply
) -> None:
    server.on("/launch", reply, {"data": [1]})
    with pytest.raises(OutcomeUnknown, match="launching: "):
        sent(rest)
    assert len(server.requests) == 1


def test_questions_are_asked_again(server: LocalHttp, rest: Rest) -> None:
    server.on("/things", error(500), Reply({"data": [1]}, cut=3), {"data": [1]})
    assert rest.get("/things", Answer, "listing").data == [1]
    server.on("/things", error(502))
    with pytest.raises(OutcomeUnknown):
        rest.get("/things", Answer, "listing")
    assert len(server.requests) == 6


def test_what_came_too_early_is_sent_again(server: LocalHttp, rest: Rest) -> None:
    server.on("/launch", error(429), {"data": [1]})
    assert sent(rest).data == [1]
    assert len(server.requests) == 2


def test_nobody_there_means_that_nothing_was_done() -> None:
    with LocalHttp() as gone:
        url = gone.url
    with pytest.raises(Refused, match="launching: ") as caught:
        sent(Rest(url, bearer(KEY), TABLE, pause_s=0))
    assert caught.value.kind == "throttled"


def test_pages_to_the_end(server: LocalHttp, rest: Rest) -> None:
    pages: dict[str, Any] = {
        "": {"data": [1], "page_token": "b"},
        "b": {"data": [2], "page_token": "c"},
        "c": {"data": [3]},
    }
    server.on("/things", lambda request: pages[request.query.get("page", "")])

    def listed() -> list[int]:
        found = rest.pages("/things", Answer, "listing", lambda page: page.page_token, "page")
        return [each for page in found for each in page.data]

    assert listed() == [1, 2, 3]
    pages["c"]["page_token"] = "b"
    with pytest.raises(OutcomeUnknown, match="the same page came twice"):
        listed()


def test_the_clouds_clock_is_its_answers(server: LocalHttp, rest: Rest) -> None:
    server.on("/things", {"data": []})
    ahead = clock.now() + timedelta(days=400)
    with pytest.MonkeyPatch.context() as patch:
        words = format_datetime(ahead, usegmt=True)
        patch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda self: words)
        rest.get("/things", Answer, "listing")
    assert 0 <= rest.at_s() - int(ahead.timestamp()) < 600


def test_requests_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [100.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    monkeypatch.setattr(clock, "sleep", sleep)
    pace = Pace({"*": 1.0, "launch": 12.0})
    for name in ("", "launch", "", "launch"):
        pace.wait(name)
    assert slept == [1.0, 1.0, 11.0]


def test_no_key_is_sent_in_clear() -> None:
    with pytest.raises(NoAccess, match="not encrypted"):
        Rest("http://cloud.example.com", bearer(KEY), TABLE)
