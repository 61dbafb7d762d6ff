"""Creating in a bucket whose answers get lost, or that says 409 where it means "not yet"."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from tests.local_http import QuietServer
from tradewind.base.errors import SourceFailed
from tradewind.store.objects import ObjectStore


class Bucket:
    """An S3 server that deals with each PUT as the next of `fates` says."""

    def __init__(self) -> None:
        self.fates: list[str] = []
        self.objects: dict[str, bytes] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                assert self.headers["if-none-match"] == "*"
                fate = outer.fates.pop(0) if outer.fates else "well"
                if fate == "under way":
                    return self.say(409)
                if fate == "before":
                    return self.say(503)
                if fate == "another":
                    outer.objects.setdefault(self.path, b"another's")
                there = self.path in outer.objects
                outer.objects.setdefault(self.path, body)
                if fate == "after":
                    return self.say(500)
                if fate == "cut":
                    self.close_connection = True
                    return None
                return self.say(412 if there else 200)

            def do_GET(self) -> None:
                body = outer.objects.get(self.path)
                self.say(404 if body is None else 200, body or b"")

            def say(self, status: int, body: bytes = b"") -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.send_header("etag", '"x"')
                self.send_header("last-modified", "Sun, 15 Nov 2026 12:00:00 GMT")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def store(self) -> ObjectStore:
        env = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "y",
        }
        return ObjectStore("s3://runs", env=env, sleep=lambda _: None)


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    running = Bucket()
    yield running
    running.server.shutdown()
    running.server.server_close()


@pytest.mark.parametrize(
    ("fates", "won"),
    [
        (["well"], True),
        (["another"], False),
        (["under way", "under way", "well"], True),
        (["under way", "another"], False),
        (["before", "well"], True),
        (["before", "another"], False),
        (["after", "well"], True),  # done, answered 500; then 412, and it is ours
        (["cut", "well"], True),
        (["before", "cut", "before", "well"], True),
        (["after"] * 6, True),
    ],
)
def test_each_outcome_is_found_out(bucket: Bucket, fates: list[str], won: bool) -> None:
    bucket.fates = fates
    assert bucket.store().create("k", b"ours") is won
    assert list(bucket.objects.values()) == [b"ours" if won else b"another's"]


@pytest.mark.parametrize("fate", ["before", "under way"])
def test_what_cannot_be_found_out_is_said(bucket: Bucket, fate: str) -> None:
    bucket.fates = [fate] * 6
    with pytest.raises(SourceFailed):
        bucket.store().create("k", b"ours")
    assert bucket.store().create("k", b"ours")
